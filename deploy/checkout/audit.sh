#!/usr/bin/env bash
# Look up the locked and shipped packages (Python, and the console's) in the public databases of vulnerabilities. A known
# vulnerability makes the script fail. An unreachable database is reported but does not, because it says nothing about the
# code.
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
1) cat "$log" >&2; say "Python: see the vulnerabilities above"; failed=1 ;;
*) say "Python: NOT checked, the database did not answer: $(grep -m1 -i 'cause' "$log" || tail -1 "$log")" ;;
esac

if ! command -v npm >/dev/null; then
    say "console: NOT checked, Node.js is not installed"
elif (cd web && npm audit --omit=dev --json --fetch-retries=1 --fetch-timeout=60000) >"$log" 2>/dev/null; then
    say "console: no known vulnerabilities"
elif grep -q '"vulnerabilities"' "$log"; then
    cat "$log" >&2
    say "console: see the vulnerabilities above"
    failed=1
else
    say "console: NOT checked, the database did not answer"
fi
exit $failed
