#!/bin/sh
# Slurm's Prolog and Epilog: starts a job's burst buffer on its node, as the job's user, and stops it when the job has
# ended. It always succeeds, because Slurm would otherwise take the node out of service: an error becomes the job's
# AdminComment, and ends the job before it begins.
FOLDER=@FOLDER@
STATE=@STATE@
BUFFERS=@BUFFERS@
PATH=/usr/sbin:/usr/bin:/sbin:/bin
job=$SLURM_JOB_ID
wanted=$STATE/$job.wanted
own=$BUFFERS/$job

# Runs a command as the job's user.
as_user() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid "$SLURM_JOB_UID" --regid "$(id -g "$SLURM_JOB_UID")" --init-groups -- "$@"
    else
        "$@"
    fi
}

# Writes a file of the job's state completely or not at all.
write_state() {
    echo "$2" >"$STATE/$job.$1.new" && mv "$STATE/$job.$1.new" "$STATE/$job.$1"
}

give_up() {
    left="nothing was buffered"
    if [ -e "$own/journal" ]; then
        left="on $(hostname): $FOLDER/burst recover --buffer $own"
    else
        rm -rf "$own"
    fi
    scontrol update "JobId=$job" "AdminComment=burst: $*"
    write_state stopped "$left"
    scancel "$job"
    exit 0
}

start() {
    [ -f "$wanted" ] || exit 0
    # the job may have run here before, and been requeued: the data of a killed daemon is recovered first
    mkdir -p "$BUFFERS" && chmod 711 "$BUFFERS" && mkdir -p -m 700 "$own" ||
        give_up "cannot make $own"
    [ "$(id -u)" != 0 ] || chown "$SLURM_JOB_UID" "$own"
    # the first line is the directory, each other line an option
    {
        IFS= read -r directory
        set --
        while IFS= read -r option; do
            set -- "$@" "$option"
        done
    } <"$wanted"
    printed=$(cd / && as_user "$FOLDER/burst" start "$@" --buffer "$own" "$directory" 2>"$STATE/$job.log" </dev/null) ||
        give_up "$(tail -n 1 "$STATE/$job.log" | sed 's/^burst: //')"
    case $printed in
    *" BURST_DIRECTORY='$directory' "*) ;;
    *)
        as_user "$FOLDER/burst" stop --buffer "$own"
        give_up "$directory has another name on $(hostname): $printed"
        ;;
    esac
}

stop() {
    [ -d "$own" ] || exit 0
    if as_user "$FOLDER/burst" stop --buffer "$own" >>"$STATE/$job.log" 2>&1; then
        rm -rf "$own"
        write_state stopped "all is in the directory"
    else
        write_state stopped "on $(hostname): $FOLDER/burst recover --buffer $own"
    fi
}

case $SLURM_SCRIPT_CONTEXT in
prolog_*) start ;;
epilog_*) stop ;;
*)
    echo "node.sh: SLURM_SCRIPT_CONTEXT: '$SLURM_SCRIPT_CONTEXT' is not allowed." \
        "Let Slurm run this script as Prolog and Epilog." >&2
    exit 2
    ;;
esac
exit 0
