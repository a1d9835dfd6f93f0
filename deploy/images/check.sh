#!/usr/bin/env bash
# Start each built image and wait until it answers as its health check asks. The service runs with embedded PostgreSQL, as
# the user of the image. `make images` runs it after build.sh, with the same BUILDAH, RUN_OPTIONS (of `buildah run`, such as
# "--isolation chroot") and IMAGES. The containers share the network of this machine and use the ports from 28470.
# PATIENCE is the number of seconds that a container has for its first answer.
set -euo pipefail
read -ra buildah <<<"${BUILDAH:-buildah}"
read -ra options <<<"${RUN_OPTIONS:-}"
PATIENCE=${PATIENCE:-180}

say() { printf 'images: %s\n' "$*" >&2; }
container=
process=
log=$(mktemp)
# PROCESS: print the processes that it has started, and theirs
below() {
    local child
    for child in $(pgrep -P "$1"); do
        below "$child"
        echo "$child"
    done
}
# End the container that runs, with all its processes, and remove it. Without namespaces nothing else ends them.
leave() {
    local processes
    if [ -n "$process" ]; then
        processes=$(below "$process")
        kill -TERM $processes 2>/dev/null || true
        wait "$process" 2>/dev/null || true
        kill -KILL $processes 2>/dev/null || true
        process=
    fi
    [ -z "$container" ] || "${buildah[@]}" rm "$container" >/dev/null || true
    container=
}
trap 'leave; rm -f "$log"' EXIT

# IMAGE TEST COMMAND...: start COMMAND in a container of IMAGE and repeat TEST (of bash) until it succeeds
answers() {
    local image=$1 test=$2 begin
    shift 2
    container=$("${buildah[@]}" from "localhost/$image")
    begin=$SECONDS
    "${buildah[@]}" run "${options[@]}" "$container" -- "$@" >"$log" 2>&1 &
    process=$!
    until bash -c "$test" >/dev/null 2>&1; do
        if ! kill -0 "$process" 2>/dev/null || [ $((SECONDS - begin)) -gt $PATIENCE ]; then
            cat "$log" >&2
            say "$image does not answer"
            exit 1
        fi
        sleep 1
    done
    say "$image answers after $((SECONDS - begin)) s"
    leave
}

get() { echo "exec 3<>/dev/tcp/127.0.0.1/$1; printf 'GET $2 HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3; grep -q '$3' <&3"; }

for name in ${IMAGES:-service agent proxy keycloak}; do
    case $name in
    service)
        answers trimtab "$(get 28470 /readyz '"workers": "ok"') && $(get 28470 / 'text/html')" \
            env TRIMTAB_ALLOWED_HOSTS=localhost trimtab-service up --data-dir /tmp/data --port 28470 --grpc-port 28471
        ;;
    agent)
        answers trimtab-agent "grep -q '^metric seconds = ' $log" sh -c \
            'trimtab-agent try "$(trimtab-agent workloads gcc-flags)/component.yaml" --state-dir /tmp/state; sleep 60'
        ;;
    proxy)
        answers trimtab-proxy "$(get 28480 / 'HTTP/1.. ')" env TRIMTAB_HOST=localhost TRIMTAB_HTTP_PORT=28480 \
            TRIMTAB_HTTPS_PORT=28443 HOME=/tmp caddy run --config /etc/caddy/Caddyfile --adapter caddyfile
        ;;
    keycloak)
        # with its data in memory, in place of the PostgreSQL that the image is prepared for
        answers trimtab-keycloak "$(get 28482 /sso/health/ready '"UP"')" /opt/keycloak/bin/kc.sh start-dev --import-realm \
            --db=dev-mem --http-relative-path=/sso --health-enabled=true --http-port=28481 --http-management-port=28482
        ;;
    esac
done
