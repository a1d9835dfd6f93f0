# Run the steps of a set-up, for `source`. Each step that takes a second or more is one line with its time: on a terminal
# a bar, which follows the usual time of the step, otherwise the title and then the seconds. The output of all steps is
# in the file $log, which an error names.

say() { printf 'set-up: %s\n' "$*" >&2; }
stop() { say "$*"; exit 1; }

began_steps() { # began_steps LOG: empty the log
    log=$1
    mkdir -p "$(dirname "$log")"
    : >"$log"
}

step() { # step TITLE USUAL_SECONDS COMMAND...: run a command, and return its status
    local title=$1 usual=$2 began=$SECONDS status=0 shown=false passed
    shift 2
    printf '== %s, %s: %s\n' "$(date +%T)" "$title" "$*" >>"$log"
    # A process group of its own, which Ctrl-C ends together with this script.
    set -m
    "$@" </dev/null >>"$log" 2>&1 &
    running=$!
    set +m
    trap 'printf "\n" >&2; kill -- -"$running" 2>/dev/null; exit 130' INT TERM HUP
    while kill -0 "$running" 2>/dev/null; do
        passed=$((SECONDS - began))
        if [ -t 2 ]; then
            [ "$passed" -lt 1 ] || bar "$title" "$passed" "$usual"
        elif [ "$passed" -ge 1 ] && ! $shown; then
            printf 'set-up: %s ...' "$title" >&2
            shown=true
        fi
        sleep 0.1
    done
    wait "$running" || status=$?
    trap - INT TERM HUP
    passed=$((SECONDS - began))
    if [ -t 2 ]; then
        printf '\r\033[K' >&2
        [ "$passed" -lt 1 ] || [ "$status" -ne 0 ] || say "$title: $passed s"
    elif $shown; then
        printf ' %d s\n' "$passed" >&2
    fi
    if [ "$status" -ne 0 ]; then
        say "$title: failed after $passed s. All details are in $log; its last lines:"
        # Nobody can read the file of a machine of continuous integration afterwards.
        if [ "${CI:-}" = true ]; then cat "$log" >&2; else tail -n 8 "$log" | sed 's/^/    /' >&2; fi
    fi
    return "$status"
}

bar() { # bar TITLE PASSED USUAL: draw it; it reaches its end only with the step
    local width=24 filled line
    filled=$(($2 * width / ($3 > 0 ? $3 : 1)))
    [ "$filled" -lt "$width" ] || filled=$((width - 1))
    printf -v line '%*s' "$filled" ''
    printf '\r\033[Kset-up: [%-*s] %d s of about %d s: %s' "$width" "${line// /#}" "$2" "$3" "$1" >&2
}
