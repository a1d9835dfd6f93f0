#!/bin/sh
# Installs the burst buffer for the jobs of a Slurm cluster, and prints the lines for slurm.conf.
#
# usage: install.sh FOLDER [NAME=VALUE]...
#   FOLDER           on a path that slurmctld's host and all nodes share; root owns it
#   STATE            folder for the state of jobs, shared as well (FOLDER/state)
#   BUFFERS          folder on each node's own disk, for the file levels (/var/tmp/burst)
#   RAM_CACHE_MOST   MiB that a job may ask for (half of this machine's memory)
#   FLASH_CACHE_MOST MiB that a job may ask for (10240)
set -eu

fail() {
    echo "install.sh: $*" >&2
    exit 2
}

[ $# -ge 1 ] || fail "usage: install.sh FOLDER [STATE=FOLDER] [BUFFERS=FOLDER] [RAM_CACHE_MOST=MIB] [FLASH_CACHE_MOST=MIB]"
case $1 in
*[!A-Za-z0-9_./-]*) fail "FOLDER: '$1' is not allowed. Use letters, digits, _ . / and - only." ;;
/*) FOLDER=$1 ;;
*) fail "FOLDER: '$1' is not allowed. Use an absolute path." ;;
esac
shift
STATE=$FOLDER/state
BUFFERS=/var/tmp/burst
RAM_CACHE_MOST=$(awk '/^MemTotal:/ { print int($2 / 2048) }' /proc/meminfo)
FLASH_CACHE_MOST=10240
for given; do
    value=${given#*=}
    case $given in
    STATE=*[!A-Za-z0-9_./-]* | BUFFERS=*[!A-Za-z0-9_./-]*)
        fail "${given%%=*}: '$value' is not allowed. Use letters, digits, _ . / and - only." ;;
    STATE=/*) STATE=$value ;;
    BUFFERS=/*) BUFFERS=$value ;;
    STATE=* | BUFFERS=*) fail "${given%%=*}: '$value' is not allowed. Use an absolute path." ;;
    RAM_CACHE_MOST=*[!0-9]* | FLASH_CACHE_MOST=*[!0-9]* | RAM_CACHE_MOST= | FLASH_CACHE_MOST=)
        fail "${given%%=*}: '$value' is not allowed. Use a number of MiB." ;;
    RAM_CACHE_MOST=*) RAM_CACHE_MOST=$value ;;
    FLASH_CACHE_MOST=*) FLASH_CACHE_MOST=$value ;;
    *) fail "'$given' is not a known argument. Use STATE=, BUFFERS=, RAM_CACHE_MOST= or FLASH_CACHE_MOST=." ;;
    esac
done

here=$(cd "$(dirname "$0")" && pwd)
sources=$here/../src
mkdir -p "$FOLDER" "$STATE"
chmod 755 "$FOLDER" "$STATE"
gcc -std=gnu11 -O2 -pthread -o "$FOLDER/burst" \
    "$sources/main.c" "$sources/options.c" "$sources/serve.c" "$sources/gate.c" "$sources/node.c" \
    "$sources/backend.c" "$sources/recover.c" "$sources/common.c" "$sources"/store/*.c
gcc -std=gnu11 -O2 -fPIC -shared -fvisibility=hidden -pthread -o "$FOLDER/libburst.so" \
    "$sources"/preload/*.c "$sources/node.c" -ldl
for script in burst_buffer.lua node.sh; do
    sed -e "s|@FOLDER@|$FOLDER|g" -e "s|@STATE@|$STATE|g" -e "s|@BUFFERS@|$BUFFERS|g" \
        -e "s|@RAM_CACHE_MOST@|$RAM_CACHE_MOST|g" -e "s|@FLASH_CACHE_MOST@|$FLASH_CACHE_MOST|g" \
        "$here/$script" >"$FOLDER/$script"
done
chmod 755 "$FOLDER/burst" "$FOLDER/libburst.so" "$FOLDER/node.sh"
chmod 644 "$FOLDER/burst_buffer.lua"

cat <<END
# burst_buffer.lua must be in the folder of slurm.conf on slurmctld's host: cp $FOLDER/burst_buffer.lua /etc/slurm/
BurstBufferType=burst_buffer/lua
Prolog=$FOLDER/node.sh
Epilog=$FOLDER/node.sh
END
