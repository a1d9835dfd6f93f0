#!/usr/bin/env bash
# Install the programs that tests need and that no Python package contains, if this user may. PostgreSQL comes as a wheel.
# Without its program a test is skipped by name; in CI it fails.
set -euo pipefail

say() { printf 'tests: %s\n' "$*" >&2; }

# program: Debian package
declare -A packages=(
    [redis-server]=redis-server [chromium]=chromium [gcc]=gcc [slurmctld]=slurm-wlm [munged]=munge
    [mpirun]=openmpi-bin [mpicc]=libopenmpi-dev [java]=openjdk-17-jre-headless [mvn]=maven
    [pgbouncer]=pgbouncer [promtool]=prometheus [prometheus]=prometheus [caddy]=caddy [docker-compose]=docker-compose
    [ip]=iproute2 [nft]=nftables [make]=make [ab]=apache2-utils [fio]=fio [hyperfine]=hyperfine [wrk]=wrk [valgrind]=valgrind [pcre2-config]=libpcre2-dev
    [perf]=linux-perf [ld.gold]=binutils [ld.lld]=lld [apxs]=apache2-dev [siege]=siege [man2html]=man2html-base
    [tesseract]=tesseract-ocr [javac]=openjdk-17-jdk-headless
    [sysbench]=sysbench [db_bench]=rocksdb-tools [memcached]=memcached [zstd]=zstd [ruby]=ruby
)
missing=()
# packages without a program
[ -e /usr/sbin/apache2 ] || missing+=(apache2-bin)
[ -e /usr/sbin/nginx ] || missing+=(nginx-light)
[ -e /usr/sbin/mariadbd ] || missing+=(mariadb-server)
[ -e /usr/include/expat.h ] || missing+=(libexpat1-dev)
[ -e /usr/include/zlib.h ] || missing+=(zlib1g-dev)
[ -e /usr/include/benchmark/benchmark.h ] || missing+=(libbenchmark-dev)
for program in "${!packages[@]}"; do
    command -v "$program" >/dev/null || missing+=("${packages[$program]}")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
    say "not installed, and this is not Debian or Ubuntu: ${missing[*]}; tests that need it are skipped"
    exit 0
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=()
elif sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
else
    say "not installed, and this user may not install packages: ${missing[*]}; tests that need it are skipped"
    say "to have them run: sudo apt-get install ${missing[*]}"
    exit 0
fi
say "installing with apt: ${missing[*]}"
# Mirrors are away for a moment now and then, and on a machine that has just started apt may be at work on its own.
options=(-o Acquire::Retries=5 -o DPkg::Lock::Timeout=300)
"${as_root[@]}" apt-get "${options[@]}" update -qq || say "apt-get update failed; trying with the old lists"
for package in "${missing[@]}"; do
    # One by one: Ubuntu has no package with Chromium, and the others must not fail because of it.
    # RUNLEVEL=1: the servers that a package brings do not start.
    "${as_root[@]}" env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" install -y -qq --no-install-recommends "$package" >/dev/null ||
        say "$package could not be installed; tests that need it are skipped"
done
