#!/bin/sh
# Slurm's TaskProlog, which runs as the job's user before each task: tells the task where the record of its job is.

RECORD_DIR=/var/lib/sw-bpf/jobs
SETTINGS=/etc/default/sw-bpf

if [ -r "$SETTINGS" ]; then
    while IFS='=' read -r key value || [ -n "$key" ]; do
        value=${value#\"}
        value=${value%\"}
        case $key=$value in
            RECORD_DIR=/*) RECORD_DIR=$value ;;
        esac
    done <"$SETTINGS"
fi
record=$RECORD_DIR/$SLURM_JOB_ID.jsonl
[ -r "$record" ] && [ -s "$record" ] && echo "export SWBPF_RECORD=$record"
exit 0
