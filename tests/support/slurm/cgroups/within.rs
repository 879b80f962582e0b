//! What is inside the directory of a job, by version: on version 2 the tasks of a step are one level deeper, in `user`, which
//! has the step's limit, beside the step's own daemon in `slurm`.

use std::fs;
use std::path::{Path, PathBuf};

use super::{ROOT, version};

/// Path of a task in the directory of its job, `step` being a directory's name: `step_0`, `step_batch`.
#[must_use]
pub fn task(step: &str, task: u32) -> String {
    let tasks = if version() == 2 { "/user" } else { "" };
    format!("{step}{tasks}/task_{task}")
}

/// Path of the directory in which the daemon of a step is, in that of its job.
#[must_use]
pub fn daemon(step: &str) -> String {
    let daemon = if version() == 2 { "/slurm" } else { "" };
    format!("{step}{daemon}")
}

/// Path of the directory that has the limit of a step, in that of its job.
#[must_use]
pub fn limited(step: &str) -> String {
    let tasks = if version() == 2 { "/user" } else { "" };
    format!("{step}{tasks}")
}

/// What a directory and those below it hold, in bytes, page cache and all; none where it is gone.
#[must_use]
pub fn usage_bytes(dir: &Path) -> Option<u64> {
    let file = if version() == 2 {
        "memory.current"
    } else {
        "memory.usage_in_bytes"
    };
    fs::read_to_string(dir.join(file)).ok()?.trim().parse().ok()
}

/// The file of a directory's limit of memory.
#[must_use]
pub fn limit(dir: &Path) -> PathBuf {
    dir.join(if version() == 2 {
        "memory.max"
    } else {
        "memory.limit_in_bytes"
    })
}

/// The file of the highest that a directory and those below it held, page cache and all.
#[must_use]
pub fn peak_file() -> &'static str {
    if version() == 2 {
        "memory.peak"
    } else {
        "memory.max_usage_in_bytes"
    }
}

/// For a shell in a task: sets `$task`, `$step`, `$limited` and `$job` to the directories that count its memory, and makes a
/// function `hits`, which tells how often the limit of a directory was met, and not that of one below.
#[must_use]
pub fn shell() -> String {
    let (task, limited, hits) = if version() == 2 {
        (
            format!("{ROOT}$(sed -n 's/^0:://p' /proc/self/cgroup)"),
            "$step/user",
            "sed -n 's/^max //p' $1/memory.events.local",
        )
    } else {
        (
            format!("{ROOT}/memory$(sed -n 's/^[0-9]*:memory:\\(.*\\)/\\1/p' /proc/self/cgroup)"),
            "$step",
            "cat $1/memory.failcnt",
        )
    };
    format!(
        "task={task}\njob=${{task%%/step_*}}\nstep=${{task#$job/}}\nstep=$job/${{step%%/*}}\nlimited={limited}\n\
         hits() {{ {hits}; }}\n"
    )
}

/// For a shell that slurmd starts as root: sets `$job` to the directory that counts the memory of a job, and has what makes
/// directories in it count as well, which Slurm does with the first step.
#[must_use]
pub fn hook_shell() -> String {
    if version() == 2 {
        format!(
            "scope={}/${{SLURMD_NODENAME}}_slurmstepd.scope\njob=$scope/job_$SLURM_JOB_ID\n\
             count() {{ echo +memory >$scope/cgroup.subtree_control; }}\n",
            super::SLICE
        )
    } else {
        format!(
            "job={ROOT}/memory/slurm_$SLURMD_NODENAME/uid_$SLURM_JOB_UID/job_$SLURM_JOB_ID\ncount() {{ true; }}\n"
        )
    }
}
