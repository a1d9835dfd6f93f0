#!/usr/bin/env bash
# Make first_version.sql.gz: a database of the first version of the service that worked, with data in it.
# The script checks out that version into a temporary folder, runs make_first_version.py with its code against
# embedded PostgreSQL, and writes what pg_dump prints. The result was made once. Make it again only if the data that it
# holds is to change; its times and random identifiers are different each time.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
version=99608d1 # "Embedded and hosted mode, make targets, CI"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
mkdir "$folder/source"
git -C "$root" archive "$version" | tar -x -C "$folder/source"
cd "$folder/source"
export PATH="$root/.venv/bin:$PATH" PYTHONPATH="$folder/source:$folder/source/sdk:$folder/source/agents"
python proto/generate.py
python "$here/make_first_version.py" "$folder/postgres" >"$folder/dump.sql"
gzip --best --no-name <"$folder/dump.sql" >"$here/first_version.sql.gz"
