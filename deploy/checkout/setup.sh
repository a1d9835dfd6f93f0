#!/usr/bin/env bash
# Set up a checkout: uv, locked dependencies, generated code, the built console, the documentation site. It is quick, and
# says nothing, if nothing has changed. Arguments are passed to sync.sh and `uv sync` (for example --group bench).
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD

# The version that is installed if there is none.
UV_VERSION=0.13.9

source deploy/checkout/steps.sh

# Only one set-up may run at a time.
mkdir -p .cache
exec 9>.cache/setup.lock
flock 9
began_steps "$root/.cache/setup.log"

find_python() {
    local name
    # .venv's own Python comes first: with another one uv would create the environment again
    for name in .venv/bin/python python3.11 python3.12 python3.13 python3.14 python3; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            "$name" -c 'import sys; print(sys._base_executable)'
            return
        fi
    done
    stop "Python 3.11 or newer is needed (Debian and Ubuntu: apt install python3)"
}

find_uv() {
    local candidate
    for candidate in uv .cache/uv/bin/uv "$HOME/.local/bin/uv"; do
        if "$candidate" --version >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    say "installing uv, which installs the rest, into .cache/uv"
    # Debian without extra packages has neither pip nor a venv with pip.
    local way
    for way in uv_by_pip uv_by_venv uv_by_apt; do
        rm -rf .cache/uv
        if $way >.cache/uv-install.log 2>&1 && .cache/uv/bin/uv --version >/dev/null 2>&1; then
            echo .cache/uv/bin/uv
            return
        fi
    done
    cat .cache/uv-install.log >&2
    stop "uv could not be installed. Install uv or pip yourself (Debian and Ubuntu: apt install python3-pip) and try again"
}

uv_by_pip() {
    "$python" -m pip install --disable-pip-version-check --target .cache/uv "uv==$UV_VERSION"
}

uv_by_venv() {
    "$python" -m venv .cache/uv && .cache/uv/bin/python -m pip install --disable-pip-version-check "uv==$UV_VERSION"
}

uv_by_apt() {
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    local options=(-o Acquire::Retries=5 -o DPkg::Lock::Timeout=300)
    command -v apt-get && "${as_root[@]}" apt-get "${options[@]}" update && "${as_root[@]}" apt-get "${options[@]}" install -y --no-install-recommends python3-pip &&
        /usr/bin/python3 -m pip install --disable-pip-version-check --target .cache/uv "uv==$UV_VERSION"
}

# Package servers sometimes fail for a moment.
export UV_HTTP_RETRIES=${UV_HTTP_RETRIES:-8} UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-120} PIP_RETRIES=${PIP_RETRIES:-8}
export npm_config_fetch_retries=${npm_config_fetch_retries:-5}

python=$(find_python)
uv=$(find_uv)

# .venv keeps packages that are not asked for, such as another group's.
export UV=$uv
title="checking the locked dependencies" usual=5
if ! compgen -G ".venv/lib/python3*/site-packages/torch/version.py" >/dev/null; then
    title="installing the locked dependencies into .venv, about 1.0 GB to download, mostly PyTorch" usual=300
    [[ " $* " != *" --no-default-groups "* ]] || title=${title/1.0 GB/0.7 GB}
fi
step "$title" "$usual" deploy/checkout/sync.sh --inexact --python "$python" "$@" || exit 1

step "generating the code of the protocol" 10 .venv/bin/python proto/generate.py || exit 1

# What the console is made of: its own files but tests, and the interface of the service (the OpenAPI schema).
console_sources() {
    find web -path web/node_modules -prune -o -path web/dist -prune -o -name _gen -prune -o -name en.po -prune -o \
        -name '*.test.ts' -prune -o -name '*.test.tsx' -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 cat
    cat .cache/console-schema.json
}

# Write the schema again if the code that it is made of has changed, which takes a few seconds.
console_schema() {
    local code
    code=$(find service agents/trimtab_components -name '*.py' -not -path '*/_gen/*' -print0 | LC_ALL=C sort -z | xargs -0 cat | sha256sum)
    [ -s .cache/console-schema.json ] && [ "$code" = "$(cat .cache/console-schema-of 2>/dev/null)" ] && return
    step "reading the interface of the service" 6 env DJANGO_SETTINGS_MODULE=service.config.settings.test \
        .venv/bin/python -m service.manage spectacular --format openapi-json \
        --file .cache/console-schema.json || return 1
    echo "$code" >.cache/console-schema-of
}

# The tools that the build prints with know nothing of the step, so that they print no bars and no colours.
build_in_web() { cd web && PYTHON="$root/.venv/bin/python" npm run --silent build; }
install_in_web() { cd web && npm ci --no-audit --no-fund --loglevel=error; }

build_console() {
    [ -f web/package.json ] || return 0
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
        say "Node.js is not installed, so the web console is not built; everything else works"
        return 0
    fi
    if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'; then
        say "the web console needs Node.js 20.19 or newer (here: $(node --version)), so it is not built; everything else works"
        return 0
    fi
    # checksums of the sources tell whether the installation and the build are up to date
    local installed built
    installed=$(cat web/package-lock.json web/package.json | sha256sum)
    if [ "$installed" != "$(cat web/node_modules/.installed-from 2>/dev/null)" ]; then
        step "installing the console's packages" 60 install_in_web || return 1
        echo "$installed" >web/node_modules/.installed-from
    fi
    console_schema || return 1
    built=$(console_sources | sha256sum)
    if [ "$built" != "$(cat web/dist/.built-from 2>/dev/null)" ]; then
        step "building the console" 100 build_in_web || return 1
        echo "$built" >web/dist/.built-from
    fi
}

if ! build_console; then
    [ "${CI:-}" = true ] && stop "the web console could not be built"
    say "the web console could not be built (see above); everything else works"
fi

# `make demo` and `make up` do not install Sphinx; without it /docs says how to build the site. A page with a fault must
# not stop the work on something else; in continuous integration it does.
if ! compgen -G ".venv/lib/python3*/site-packages/furo" >/dev/null; then
    [ -d docs/_site ] || say "the documentation is not built, since its tools are not installed; \`make docs\` builds it"
elif ! step "building the documentation" 30 .venv/bin/python -m docs._ext.build --changed; then
    [ "${CI:-}" = true ] && stop "the documentation could not be built"
    say "the documentation could not be built (see above); everything else works"
fi
