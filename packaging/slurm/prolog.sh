#!/bin/sh
# Slurm's Prolog, which slurmd runs as root before a job has a process: sw-bpf is there first, and records the job from its
# first instruction. docs/slurm.md tells how to set it up.
#
# Slurm drains a node whose Prolog fails or hangs. So this always exits with 0, within LIMIT seconds; what goes wrong is told
# to syslog, and the job runs all the same.
set -uf

# /etc/default/sw-bpf may change these, by lines KEY=VALUE.
SW_BPF=/usr/bin/sw-bpf
RECORD_DIR=/var/lib/sw-bpf/jobs
LIMIT=3
# How many jobs are recorded at once on this node: each has kernel programs of its own, which all see every event.
MOST_JOBS=4

SETTINGS=/etc/default/sw-bpf
STATE_DIR=/run/sw-bpf-jobs
CGROUPS=/sys/fs/cgroup

PATH=/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
umask 077

say() {
    logger -t sw-bpf -p daemon.warning -- "job ${SLURM_JOB_ID-}: $1"
}

# Whether it is a whole number that every shell can count with.
is_number() {
    case $1 in
        '' | 0?* | *[!0-9]* | ???????????*) return 1 ;;
    esac
}

# Whether nobody but root can have put anything in the place of it, or into it.
is_roots() {
    case $(stat -L -c %u:%A -- "$1") in
        0:?????-??-?) ;;
        *) return 1 ;;
    esac
}

# Lines KEY=VALUE; nothing in the file is executed, and what makes no sense changes nothing.
read_settings() {
    [ -f "$SETTINGS" ] || return 0
    if ! is_roots "$SETTINGS"; then
        say "$SETTINGS is not used: it has to belong to root, and only root may write to it"
        return 0
    fi
    while IFS='=' read -r key value || [ -n "$key" ]; do
        value=${value#\"}
        value=${value%\"}
        case $key=$value in
            SW_BPF=/*) SW_BPF=$value ;;
            RECORD_DIR=/*) RECORD_DIR=$value ;;
            LIMIT=[1-9] | LIMIT=[1-5][0-9]) LIMIT=$value ;;
            MOST_JOBS=*) is_number "$value" && MOST_JOBS=$value ;;
        esac
    done <"$SETTINGS"
}

# Hundredths of a second since the host was started.
now() {
    read -r up _ </proc/uptime
    now=${up%.*}${up#*.}
}

# Sets `start` to when process $1 was started, by which it is told from a later one of that number; fails where it has ended.
find_start() {
    read -r stat <"/proc/$1/stat" || return 1
    # Behind the name, which may hold anything.
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    [ "$1" != Z ] || return 1
    start=${20}
}

# Whether the recorder in the file $1 is there.
is_alive() {
    read -r known_pid known_start <"$1" && find_start "$known_pid" && [ "$start" = "$known_start" ]
}

# Sets `job` to the directory that Slurm will take for the job, `root` to what Slurm locks while it makes or removes one.
find_job() {
    if [ -e "$CGROUPS/cgroup.controllers" ]; then
        find_scope || return 1
        job=$root/job_$id
        # From Slurm 26.05 on its name is an id that is never used again, unless it is told otherwise.
        conf=${SLURM_CONF:-/etc/slurm/slurm.conf}
        if [ -n "$sluid" ] &&
            ! grep -Eqi '^[[:space:]]*CgroupJobIdPaths[[:space:]]*=[[:space:]]*yes' "${conf%/*}/cgroup.conf"; then
            job=$root/$sluid
        fi
        return 0
    fi
    root=$CGROUPS/memory
    # The one for memory comes with the first job, the others with slurmd.
    for slurm in "slurm_$node" slurm; do
        for hierarchy in memory freezer cpuset cpuacct devices; do
            if [ -d "$CGROUPS/$hierarchy/$slurm" ]; then
                job=$root/$slurm/uid_$uid/job_$id
                return 0
            fi
        done
    done
    return 1
}

# Sets `root` to the scope in which Slurm makes the directories of jobs, on version 2.
find_scope() {
    set +f
    set -- "$CGROUPS"/*.slice "$CGROUPS"/*.slice/*.slice "$CGROUPS"/*.slice/*.slice/*.slice
    set -f
    for scope in "${node}_slurmstepd.scope" slurmstepd.scope; do
        for slice in "$@"; do
            root=$slice/$scope
            case $slice in
                # What is in there may be a user's.
                "$CGROUPS"/user.slice*) ;;
                *) [ -d "$root" ] && return 0 ;;
            esac
        done
    done
    return 1
}

has_memory() {
    [ -e "$job/memory.current" ] || [ -e "$job/memory.usage_in_bytes" ]
}

# Makes the directory of the job.
make_job() {
    [ -d "$job" ] || true >"$state/made"
    # Slurm removes that of a user with the last job, and would do so before the job's own is in it.
    flock -w 1 "$root" mkdir -p -m 755 "$job"
    # Slurm does that too, with the first step.
    has_memory || echo +memory >"$root/cgroup.subtree_control"
    has_memory
}

# Makes the file of the record, which its user alone may read. One of an earlier run of the job is kept.
make_record() {
    if ! [ -d "$RECORD_DIR" ]; then
        (umask 022 && mkdir -p "$RECORD_DIR") && chmod 711 "$RECORD_DIR"
    fi
    is_roots "$RECORD_DIR" || return 1
    if [ -e "$record" ]; then
        earlier=1
        while [ -e "$RECORD_DIR/$id.$earlier.jsonl" ] && [ "$earlier" -lt 100 ]; do
            earlier=$((earlier + 1))
        done
        mv -f "$record" "$RECORD_DIR/$id.$earlier.jsonl" || return 1
    fi
    # A full disk is better found now.
    head -c 65536 /dev/zero >"$record" && true >"$record" &&
        chown "$uid:0" "$record" && chmod 400 "$record"
}

# Takes the directory in which the Epilog finds what it needs.
take_state() {
    mkdir -p "$STATE_DIR" && is_roots "$STATE_DIR" || return 1
    if [ -d "$state" ]; then
        if is_alive "$state/recorder"; then
            say "is recorded already"
            return 1
        fi
        # No Epilog came after an earlier run.
        rm -rf "$state"
    fi
    count_jobs
    if [ "$jobs" -ge "$MOST_JOBS" ]; then
        say "not recorded: $jobs jobs are already (MOST_JOBS)"
        return 1
    fi
    mkdir "$state" && echo "$node" >"$state/node"
}

# Sets `jobs` to how many are recorded, or about to be.
count_jobs() {
    jobs=0
    set +f
    for other in "$STATE_DIR"/*/node; do
        other=${other%/node}
        if [ -d "$other" ] && { ! [ -e "$other/recorder" ] || is_alive "$other/recorder"; }; then
            jobs=$((jobs + 1))
        fi
    done
    set -f
}

# Waits until the record has a line: from then on nothing is missed.
wait_for_line() {
    until [ -s "$record" ]; do
        if ! is_alive "$state/recorder"; then
            say "not recorded: sw-bpf ended: $(head -c 300 "$state/stderr" | tr -c ' -~' ' ')"
            return 1
        fi
        now
        if [ "$now" -ge "$deadline" ]; then
            say "sw-bpf is not ready after $LIMIT s (LIMIT): the job starts without it"
            return 1
        fi
        sleep 0.02
    done
    case $(head -c 4096 "$record") in
        *'"source":"kernel"'*) ;;
        *) say "sampled: the record says why, as probes.reason" ;;
    esac
}

record() {
    now
    # What is left of the limit is to tell of it, however slow the host is.
    deadline=$((now + LIMIT * 90 - 20))
    cd / || return
    id=${SLURM_JOB_ID-}
    uid=${SLURM_JOB_UID-}
    node=${SLURMD_NODENAME-}
    sluid=${SLURM_JOB_SLUID-}
    is_number "$id" && is_number "$uid" || return
    # Parts of paths.
    case $node/$sluid in
        .* | */.* | */*/* | *[!A-Za-z0-9._/-]*) return ;;
    esac
    state=$STATE_DIR/$id
    record=$RECORD_DIR/$id.jsonl
    if ! [ -x "$SW_BPF" ]; then
        say "not recorded: $SW_BPF is not there (SW_BPF)"
        return
    fi
    take_state || return
    if ! find_job; then
        say "not recorded: no directory of Slurm below $CGROUPS: the job has no cgroup"
        return
    fi
    printf '%s\n' "$record" >"$state/record"
    printf '%s\n' "$root" >"$state/root"
    printf '%s\n' "$job" >"$state/job"
    if ! make_record; then
        rm -f "$record"
        say "not recorded: cannot write $record, or not only root can write to its directory (RECORD_DIR)"
        return
    fi
    if ! make_job; then
        say "not recorded: $job does not count memory"
        return
    fi
    # In a session of its own: slurmd ends what is left of the script, as `timeout` does.
    setsid "$SW_BPF" attach --cgroup "$job" --json "$record" 2>"$state/stderr" &
    pid=$!
    find_start "$pid" && echo "$pid $start" >"$state/recorder"
    wait_for_line
}

exec </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
if [ "${1-}" = within-limit ]; then
    read_settings
    record
else
    # What the shell does not forgive ends the subshell alone.
    (
        read_settings
        exec timeout -s KILL "$LIMIT" /bin/sh "$0" within-limit
    )
fi
exit 0
