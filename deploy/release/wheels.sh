#!/usr/bin/env bash
# Build the wheels into the folder that is given, which is emptied of earlier ones. `make wheels` runs it after the
# set-up, which generates the gRPC code and builds the console.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${1:?the folder for the wheels is missing}

say() { printf 'wheels: %s\n' "$*" >&2; }
uv=$(command -v uv || echo .cache/uv/bin/uv)

# Without the width of this terminal and the home of this user.
COLUMNS=400 XDG_STATE_HOME="~/.local/state" .venv/bin/argparse-manpage --module trimtab_agent.main --function parser --project-name trimtab-agent \
    --description "the agent that runs Trimtab's trials" --manual-title "Trimtab" \
    --url "" --output agents/trimtab-agent.1 >/dev/null

mkdir -p "$target"
rm -f "$target"/trimtab*.whl
for package in trimtab trimtab-components trimtab-agent trimtab-service; do
    "$uv" build --quiet --wheel --package "$package" --out-dir "$target"
done
if ! checked=$(NO_COLOR=1 .venv/bin/twine check --strict "$target"/trimtab*.whl 2>&1); then
    printf '%s\n' "$checked" >&2
    say "twine refuses a wheel; its words are above"
    exit 1
fi
cd "$target"
say "the wheels are in $PWD:"
for file in trimtab*.whl; do
    printf '    %s, %d KiB\n' "$file" "$((($(stat -c %s "$file") + 1023) / 1024))" >&2
done
