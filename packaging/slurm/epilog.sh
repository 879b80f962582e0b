#!/bin/sh
# Slurm's Epilog, a sample, which slurmd runs as root when a job has ended: appends the summary that sw-bpf's agent has recorded
# to the output file of the job. docs/slurm.md tells how to set it up.
#
# Slurm drains a node whose Epilog fails or hangs. So this always exits with 0, within LIMIT seconds; what goes wrong is told to
# syslog.
set -uf

# /etc/default/sw-bpf may change these, by lines KEY=VALUE.
SW_BPF=/usr/bin/sw-bpf
RECORD_DIR=/var/lib/sw-bpf/jobs
# slurmd gives no PATH: one that is not in that below is named by its path.
SCONTROL=scontrol
LIMIT=5

SETTINGS=/etc/default/sw-bpf

PATH=/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
umask 077

say() {
    logger -t sw-bpf -p daemon.warning -- "job ${SLURM_JOB_ID-}: $(printf %s "$1" | head -c 300 | tr -c ' -~' ' ')"
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
            SCONTROL=/*) SCONTROL=$value ;;
            LIMIT=[1-9] | LIMIT=[1-5][0-9]) LIMIT=$value ;;
        esac
    done <"$SETTINGS"
}

# Hundredths of a second since the host was started.
now() {
    read -r up _ </proc/uptime
    now=${up%.*}${up#*.}
}

# Sets `output` to the output file of the job, if its script has run on this node.
find_output() {
    if ! command -v "$SCONTROL"; then
        say "no summary: $SCONTROL is not there (SCONTROL)"
        return 1
    fi
    if ! job=$("$SCONTROL" show job "$id" 2>&1); then
        say "no summary: $SCONTROL failed: $job"
        return 1
    fi
    output=
    block=
    batch_host=
    std_out=
    while IFS= read -r line; do
        case $line in
            "JobId=$id "*) block=1 ;;
            JobId=*) block= ;;
            '   BatchHost='*) [ -z "$block" ] || batch_host=${line#*=} ;;
            '   StdOut='*) [ -z "$block" ] || std_out=${line#*=} ;;
        esac
    done <<END
$job
END
    if [ -n "$node" ] && [ "$batch_host" = "$node" ]; then
        output=$std_out
    fi
    [ -n "$output" ]
}

# Waits for the summary, which the agent writes when the cgroup of the job is gone.
wait_for_summary() {
    until
        case $(tail -n 1 -- "$record" | head -c 200) in
            *'"kind":"summary"'*) ;;
            *) false ;;
        esac
    do
        now
        if [ "$now" -ge "$deadline" ]; then
            if [ -e "$record" ]; then
                say "no summary yet: later, \`sw-bpf show $id\` has it"
            else
                say "no record in $RECORD_DIR: does \`sw-bpf agent\` run?"
            fi
            return 1
        fi
        sleep 0.05
    done
}

# Appends to the output in the name of the job's user, who can have put anything in its place: so nothing is written that the
# user could not write. Only to a file that is there, and is no link.
append() {
    # shellcheck disable=SC2016
    setpriv --reuid "$uid" --regid "$gid" --init-groups --inh-caps=-all --no-new-privs -- /bin/sh -c '
        [ -f "$1" ] && ! [ -L "$1" ] || exit 0
        exec dd of="$1" oflag=append,nofollow,nonblock conv=nocreat,notrunc status=none
    ' sh "$output"
}

finish() {
    now
    # What is left of the limit is to write it.
    deadline=$((now + LIMIT * 60))
    cd / || return
    id=${SLURM_JOB_ID-}
    uid=${SLURM_JOB_UID-}
    gid=${SLURM_JOB_GID-}
    node=${SLURMD_NODENAME-}
    is_number "$id" && is_number "$uid" && is_number "$gid" || return
    # In a directory that others can write to, root could be made to write anywhere.
    [ "$uid" -ne 0 ] || return
    if ! [ -x "$SW_BPF" ]; then
        say "no summary: $SW_BPF is not there (SW_BPF)"
        return
    fi
    record=$RECORD_DIR/$id.jsonl
    find_output || return
    wait_for_summary || return
    if ! summary=$("$SW_BPF" show "$id" --records "$RECORD_DIR" 2>&1); then
        say "no summary: $summary"
        return
    fi
    # Where the accounting is to have it, in one line of 255 bytes at most:
    # scontrol update job="$id" AdminComment="$("$SW_BPF" show "$id" --records "$RECORD_DIR" --admin-comment)"
    printf '\n%s\n' "$summary" | head -c 65536 | append
}

exec </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
if [ "${1-}" = within-limit ]; then
    read_settings
    finish
else
    # What the shell does not forgive ends the subshell alone.
    (
        read_settings
        timeout -s KILL "$LIMIT" /bin/sh "$0" within-limit
        [ $? -ne 137 ] || say "no summary: it took longer than $LIMIT s (LIMIT)"
    )
fi
exit 0
