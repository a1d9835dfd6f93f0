#!/bin/sh
# Slurm's Prolog and Epilog: starts a job's burst buffer on its node, as the job's user, and stops it when the job has
# ended. It always succeeds, as Slurm would take the node out of service otherwise: what goes wrong is the job's
# AdminComment, and ends the job before it begins.
FOLDER=@FOLDER@
STATE=@STATE@
BUFFERS=@BUFFERS@
PATH=/usr/sbin:/usr/bin:/sbin:/bin
job=$SLURM_JOB_ID
wanted=$STATE/$job.wanted
own=$BUFFERS/$job

# A command as the job's user.
as_user() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid "$SLURM_JOB_UID" --regid "$(id -g "$SLURM_JOB_UID")" --init-groups -- "$@"
    else
        "$@"
    fi
}

# What others read is there at once or not at all.
tell() {
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
    tell stopped "$left"
    scancel "$job"
    exit 0
}

start() {
    [ -f "$wanted" ] || exit 0
    # the job may have been here before, and been requeued: what a killed daemon has left then is recovered first
    mkdir -p "$BUFFERS" && chmod 711 "$BUFFERS" && mkdir -p -m 700 "$own" ||
        give_up "cannot make $own"
    [ "$(id -u)" != 0 ] || chown "$SLURM_JOB_UID" "$own"
    # the directory, then an option in each line
    {
        IFS= read -r directory
        set --
        while IFS= read -r option; do
            set -- "$@" "$option"
        done
    } <"$wanted"
    told=$(cd / && as_user "$FOLDER/burst" start "$@" --buffer "$own" "$directory" 2>"$STATE/$job.log" </dev/null) ||
        give_up "$(tail -n 1 "$STATE/$job.log" | sed 's/^burst: //')"
    case $told in
    *" BURST_DIRECTORY='$directory' "*) ;;
    *)
        as_user "$FOLDER/burst" stop --buffer "$own"
        give_up "$directory has another name on $(hostname): $told"
        ;;
    esac
}

stop() {
    [ -d "$own" ] || exit 0
    if as_user "$FOLDER/burst" stop --buffer "$own" >>"$STATE/$job.log" 2>&1; then
        rm -rf "$own"
        tell stopped "all is in the directory"
    else
        tell stopped "on $(hostname): $FOLDER/burst recover --buffer $own"
    fi
}

case $SLURM_SCRIPT_CONTEXT in
prolog_*) start ;;
epilog_*) stop ;;
*)
    echo "node.sh: SLURM_SCRIPT_CONTEXT is '$SLURM_SCRIPT_CONTEXT'; allowed: that of a Prolog or an Epilog" >&2
    exit 2
    ;;
esac
exit 0
