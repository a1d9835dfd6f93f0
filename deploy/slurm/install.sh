#!/bin/sh
# Installs the plug-in for sbatch, srun and salloc, and prints what to add to slurm.conf.
#
# usage: install.sh FOLDER [NAME=VALUE]...
#   FOLDER        for the library and the script; on every host where jobs are submitted; root owns it
#   SOCKET        the socket of the agent on that host (/run/trimtab/match.sock)
#   MILLISECONDS  the longest time that a submission waits for the agent (500)
set -eu

fail() {
    echo "install.sh: $*" >&2
    exit 2
}

[ $# -ge 1 ] || fail "usage: install.sh FOLDER [SOCKET=PATH] [MILLISECONDS=NUMBER]"
SOCKET=/run/trimtab/match.sock
MILLISECONDS=500
FOLDER=$1
shift
for given; do
    case $given in
    SOCKET=*) SOCKET=${given#SOCKET=} ;;
    MILLISECONDS=*[!0-9]* | MILLISECONDS= | MILLISECONDS=??????*)
        fail "MILLISECONDS: '${given#MILLISECONDS=}' is not allowed. Use a number from 1 to 99999." ;;
    MILLISECONDS=*) MILLISECONDS=${given#MILLISECONDS=} ;;
    *) fail "'$given' is not a known argument. Use SOCKET= or MILLISECONDS=." ;;
    esac
done
for path in "$FOLDER" "$SOCKET"; do
    case $path in
    *[!A-Za-z0-9_./-]*) fail "'$path' is not allowed. Use letters, digits, _ . / and - only." ;;
    /*) ;;
    *) fail "'$path' is not allowed. Use an absolute path." ;;
    esac
done
[ ${#SOCKET} -le 107 ] || fail "SOCKET: '$SOCKET' has more than 107 characters."

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$FOLDER"
# The library takes the place of an older one at once, because sbatch may be reading it.
${CC:-cc} -std=gnu11 -O2 -Wall -shared -fPIC -o "$FOLDER/.trimtab_match.so.new" "$here/trimtab_match.c"
chmod 755 "$FOLDER/.trimtab_match.so.new"
mv "$FOLDER/.trimtab_match.so.new" "$FOLDER/trimtab_match.so"
sed -e "s|@FOLDER@|$FOLDER|g" -e "s|@SOCKET@|$SOCKET|g" -e "s|@MILLISECONDS@|$MILLISECONDS|g" \
    "$here/cli_filter.lua" >"$FOLDER/.cli_filter.lua.new"
chmod 644 "$FOLDER/.cli_filter.lua.new"
mv "$FOLDER/.cli_filter.lua.new" "$FOLDER/cli_filter.lua"

cat <<END
# cli_filter.lua must be in the folder of slurm.conf: cp $FOLDER/cli_filter.lua /etc/slurm/
CliFilterPlugins=lua
END
