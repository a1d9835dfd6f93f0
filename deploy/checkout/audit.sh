#!/usr/bin/env bash
# Looks up what is locked and shipped (Python, and the console's packages) in the public databases of vulnerabilities. One
# that is found fails; a database that cannot be asked is told and does not, for it says nothing about the code.
set -euo pipefail
cd "$(dirname "$0")/../.."

say() { printf 'audit: %s\n' "$*" >&2; }
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

uv=$(command -v uv || echo .cache/uv/bin/uv)
status=0
"$uv" audit --frozen --no-default-groups --preview-features audit-command \
    ${TRIMTAB_OSV_URL:+--service-url "$TRIMTAB_OSV_URL"} >"$log" 2>&1 || status=$?
case $status in
0) say "Python: $(tail -1 "$log")" ;;
1) cat "$log" >&2; say "Python: the above"; failed=1 ;;
*) say "Python: NOT looked up, the database could not be asked: $(grep -m1 -i 'cause' "$log" || tail -1 "$log")" ;;
esac

if ! command -v npm >/dev/null; then
    say "console: NOT looked up, Node.js is not installed"
elif (cd web && npm audit --omit=dev --json --fetch-retries=1 --fetch-timeout=60000) >"$log" 2>/dev/null; then
    say "console: no known vulnerabilities"
elif grep -q '"vulnerabilities"' "$log"; then
    cat "$log" >&2
    say "console: the above"
    failed=1
else
    say "console: NOT looked up, the database could not be asked"
fi
exit $failed
