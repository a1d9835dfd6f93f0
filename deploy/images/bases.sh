#!/usr/bin/env bash
# Make the base images of the Dockerfiles from Debian's packages, where no registry of images is reachable: base-python,
# base-node, base-caddy and base-keycloak, or those that are named as arguments. It needs mmdebstrap, npm and Maven.
# BUILDAH is the command of Buildah with its options.
set -euo pipefail
cd "$(dirname "$0")/../.."
read -ra buildah <<<"${BUILDAH:-buildah}"
SUITE=${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf 'bases: %s\n' "$*" >&2; }

# NAME PACKAGES [FOLDER [OWNER]]: an image of Debian with these packages (of nothing without any), and FOLDER copied over it
base() {
    local container
    say "$1"
    container=$("${buildah[@]}" from scratch)
    if [ -n "$2" ]; then
        mmdebstrap --quiet --variant=minbase --include="ca-certificates,$2" "$SUITE" "$work/$1.tar"
        "${buildah[@]}" add --quiet "$container" "$work/$1.tar" / >/dev/null
        rm "$work/$1.tar"
    fi
    [ $# -lt 3 ] || "${buildah[@]}" copy --quiet --chown "${4:-0:0}" "$container" "$3" / >/dev/null
    "${buildah[@]}" config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
    "${buildah[@]}" commit --quiet --rm "$container" "localhost/$1" >/dev/null
}

[ $# -gt 0 ] || set -- python node caddy keycloak
for name in "$@"; do
    case $name in
    python) base base-python python3,python3-venv,python3-pip ;;
    node)
        # The service's image only copies these files. Node.js is a package of npm, too, in a version that can build the console.
        npm install --silent --no-audit --no-fund --prefix "$work/npm" node@22 npm@10
        mkdir -p "$work/node/usr/local/bin" "$work/node/usr/local/lib/node_modules"
        cp "$work/npm/node_modules/node/bin/node" "$work/node/usr/local/bin/"
        cp -r "$work/npm/node_modules/npm" "$work/node/usr/local/lib/node_modules/"
        base base-node "" "$work/node"
        ;;
    caddy)
        mkdir -p "$work/caddy/data" "$work/caddy/config"
        base base-caddy caddy,netcat-openbsd "$work/caddy"
        ;;
    keycloak)
        mkdir -p "$work/keycloak/opt"
        cp -rL "$(deploy/keycloak/fetch.sh)" "$work/keycloak/opt/keycloak"
        base base-keycloak openjdk-17-jre-headless "$work/keycloak" 1000:1000
        ;;
    *) say "$name is not a base image. Use python, node, caddy or keycloak."; exit 2 ;;
    esac
done
