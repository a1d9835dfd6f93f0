#!/usr/bin/env bash
# Brings Keycloak's server onto this machine, once for each user, for tests and for a try on one machine, and prints its
# folder. Needs Java 17 and Maven. What it makes keeps its data in memory; see README.md for an installation.
set -euo pipefail

version=26.4.2
sha256=2a30e4602d63d4501a4a8263bfa4e14cbd5970b4116c618ea28f339b16190233
cache=${XDG_CACHE_HOME:-$HOME/.cache}/trimtab
home=$cache/keycloak-$version

say() { printf 'keycloak: %s\n' "$*" >&2; }

mkdir -p "$cache"
# Two at a time would get in each other's way.
exec 9>"$cache/keycloak.lock"
flock 9
if [ -e "$home/bin/kc.sh" ]; then
    echo "$home"
    exit
fi
for program in java mvn python3; do
    command -v $program >/dev/null || { say "$program is needed (Debian: openjdk-17-jre-headless, maven, python3)"; exit 1; }
done

work=$(mktemp -d "$cache/unfinished-XXXXXX")
trap 'rm -rf "$work"' EXIT
say "fetching Keycloak $version by Maven, 160 MB"
mvn --batch-mode --quiet org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
    -Dartifact="org.keycloak:keycloak-quarkus-dist:$version:zip" -DoutputDirectory="$work" -Dmdep.useBaseVersion=true >"$work/log" 2>&1 ||
    { tail -20 "$work/log" >&2; say "Maven could not fetch it"; exit 1; }
zip=$work/keycloak-quarkus-dist-$version.zip
echo "$sha256  $zip" | sha256sum --check --quiet >&2 || { say "the archive is not the one that is expected"; exit 1; }
python3 -m zipfile -e "$zip" "$work"
chmod +x "$work/keycloak-$version/bin/"*.sh
say "preparing it"
"$work/keycloak-$version/bin/kc.sh" build --db=dev-mem >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
mv "$work/keycloak-$version" "$home"
echo "$home"
