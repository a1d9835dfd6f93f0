#!/usr/bin/env bash
# Build the images with Buildah: trimtab, trimtab-agent, trimtab-proxy and trimtab-keycloak, and print their sizes.
# `make images` runs it after `make wheels`.
#
# NODE_IMAGE, PYTHON_IMAGE, CADDY_IMAGE, KEYCLOAK_IMAGE: base images, also with digests (deploy/HOSTING.md).
# BUILDAH: the command with its options, such as "buildah --storage-driver vfs".
# BUILD_OPTIONS: options of `buildah build`, such as "--isolation chroot --volume /etc/pip.conf:/etc/pip.conf:ro".
# IMAGES: the images to build, by the names of their Dockerfiles; all by default.
set -euo pipefail
cd "$(dirname "$0")/../.."
read -ra buildah <<<"${BUILDAH:-buildah}"
read -ra options <<<"${BUILD_OPTIONS:-}"

say() { printf 'images: %s\n' "$*" >&2; }
command -v "${buildah[0]}" >/dev/null || { say "Buildah is not installed (Debian and Ubuntu: apt install buildah)"; exit 1; }

for name in ${IMAGES:-service agent proxy keycloak}; do
    file=deploy/images/$name.Dockerfile
    arguments=()
    for variable in $(sed -n 's/^ARG \([A-Z]*_IMAGE\)=.*/\1/p' "$file"); do
        [ -z "${!variable:-}" ] || arguments+=(--build-arg "$variable=${!variable}")
    done
    image=trimtab-$name
    [ "$name" != service ] || image=trimtab
    begin=$SECONDS
    "${buildah[@]}" build "${options[@]}" "${arguments[@]}" --file "$file" --tag "$image" . >&2
    size=$("${buildah[@]}" images --format '{{.Size}}' "localhost/$image")
    say "$image: $size, built in $((SECONDS - begin)) s"
done
