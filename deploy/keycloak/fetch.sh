#!/usr/bin/env bash
# Download Keycloak's server to this machine, once for each user, for tests and trials, and print its folder. It needs Java
# 17 and Maven. The server keeps its data in memory; README.md describes an installation.
set -euo pipefail

version=26.4.2
sha256=2a30e4602d63d4501a4a8263bfa4e14cbd5970b4116c618ea28f339b16190233
cache=${XDG_CACHE_HOME:-$HOME/.cache}/trimtab
home=$cache/keycloak-$version

say() { printf 'keycloak: %s\n' "$*" >&2; }

mkdir -p "$cache"
# Only one download may run at a time.
exec 9>"$cache/keycloak.lock"
flock 9
if [ -e "$home/bin/kc.sh" ]; then
    echo "$home"
    exit
fi
for program in java mvn python3; do
    command -v $program >/dev/null || { say "$program is not installed (Debian: openjdk-17-jre-headless, maven, python3)"; exit 1; }
done

work=$(mktemp -d "$cache/unfinished-XXXXXX")
trap 'rm -rf "$work"' EXIT
say "downloading Keycloak $version with Maven, 160 MB"
mvn --batch-mode --quiet org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
    -Dartifact="org.keycloak:keycloak-quarkus-dist:$version:zip" -DoutputDirectory="$work" -Dmdep.useBaseVersion=true >"$work/log" 2>&1 ||
    { tail -20 "$work/log" >&2; say "Maven could not download Keycloak"; exit 1; }
zip=$work/keycloak-quarkus-dist-$version.zip
echo "$sha256  $zip" | sha256sum --check --quiet >&2 || { say "the archive has an unexpected checksum"; exit 1; }
python3 -m zipfile -e "$zip" "$work"
chmod +x "$work/keycloak-$version/bin/"*.sh
say "preparing it"
"$work/keycloak-$version/bin/kc.sh" build --db=dev-mem >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
mv "$work/keycloak-$version" "$home"
echo "$home"
