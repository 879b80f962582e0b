#!/bin/sh
# Slurm's Epilog, which slurmd runs as root when a job has no process any more: waits for the summary of the record that
# prolog.sh began, and clears away.
#
# Slurm drains a node whose Epilog fails or hangs. So this always exits with 0, within 4 seconds.
set -uf

STATE_DIR=/run/sw-bpf-jobs

PATH=/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
umask 077

say() {
    logger -t sw-bpf -p daemon.warning -- "job ${SLURM_JOB_ID-}: $1"
}

# Hundredths of a second since the host was started.
now() {
    read -r up _ </proc/uptime
    now=${up%.*}${up#*.}
}

# Whether the recorder is there: not one that has its number now.
is_alive() {
    read -r stat <"/proc/$pid/stat" || return 1
    # Behind the name, which may hold anything.
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    [ "$1" != Z ] && [ "${20}" = "$start" ]
}

# Whether the directory of the job is there, and no process has ever been in it.
is_unused() {
    peak=
    read -r peak <"$job/memory.peak" || read -r peak <"$job/memory.max_usage_in_bytes"
    [ "$peak" = 0 ]
}

# Waits up to $1 hundredths of a second for the recorder's end.
wait_for_end() {
    now
    deadline=$((now + $1))
    while is_alive; do
        now
        [ "$now" -lt "$deadline" ] || return 1
        is_unused && return 1
        sleep 0.02
    done
}

end_recorder() {
    read -r pid start <"$state/recorder" || return
    # It ends by itself when the job's last process has left.
    wait_for_end 200 && return
    kill -TERM "$pid"
    now
    deadline=$((now + 100))
    while is_alive; do
        now
        if [ "$now" -ge "$deadline" ]; then
            kill -KILL "$pid"
            say "sw-bpf did not end, and was killed: the record has no summary"
            return
        fi
        sleep 0.02
    done
}

clear_away() {
    if [ -s "$state/stderr" ]; then
        say "$(head -c 300 "$state/stderr" | tr -c ' -~' ' ')"
    fi
    if is_unused; then
        say "nothing to record: no process was in $job; if it is so with all jobs, Slurm does not use it \
(ConstrainRAMSpace=yes in cgroup.conf makes it do so)"
        rm -f "$record"
    fi
    [ -s "$record" ] || rm -f "$record"
    if [ -e "$state/made" ] && [ -d "$job" ]; then
        # Slurm's own lock: it may be about to make a directory beside it.
        flock -w 0.3 "$root" rmdir "$job"
        case $job in
            */uid_*/job_*) flock -w 0.3 "$root" rmdir "${job%/*}" ;;
        esac
    fi
    rm -rf "$state"
}

finish() {
    cd / || return
    case ${SLURM_JOB_ID-} in
        '' | *[!0-9]*) return ;;
    esac
    state=$STATE_DIR/$SLURM_JOB_ID
    read -r node <"$state/node"
    # Several slurmd may share the host.
    [ "${node-}" = "${SLURMD_NODENAME-}" ] || return
    read -r job <"$state/job" && read -r root <"$state/root" && read -r record <"$state/record"
    if [ -n "${record-}" ]; then
        end_recorder
        clear_away
    else
        rm -rf "$state"
    fi
}

exec </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
if [ "${1-}" = within-limit ]; then
    finish
else
    timeout -s KILL 4 /bin/sh "$0" within-limit
fi
exit 0
