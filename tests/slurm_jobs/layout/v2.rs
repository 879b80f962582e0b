//! Version 2: one hierarchy. A step has one directory for Slurm's own process and one for those of the user, which has the
//! limit of the step; the step itself has none.

use std::fs;
use std::path::Path;

use support::measure::MIB;
use support::slurm::{JobId, Slurm, cgroups};

use super::{STEPS, name, owner};

/// The directories of [`STEPS`], each with those that have the processes of its user.
fn with_tasks(tasks: [&[&str]; 3]) -> Vec<String> {
    let mut dirs = Vec::new();
    for (step, tasks) in STEPS.into_iter().zip(tasks) {
        dirs.extend(["", "/slurm", "/user"].map(|dir| format!("{step}{dir}")));
        dirs.extend(tasks.iter().map(|task| format!("{step}/user/{task}")));
    }
    dirs
}

/// Asserts that the task of the step is in this directory.
fn assert_task_in(dir: &Path, task: &str) {
    let tasks = cgroups::processes(&dir.join(task));
    assert!(tasks.iter().any(|pid| name(*pid) == "sleep"), "{tasks:?}");
}

/// A limit as the kernel tells it.
fn told(dir: &Path, file: &str) -> String {
    let text = fs::read_to_string(dir.join(file)).expect("a limit");
    text.trim_end().to_owned()
}

/// Asserts that these directories have a limit, for which both files stand, and that no other has one.
fn assert_limited(job: &Path, limited: &[&str], bytes: u64) {
    for dir in cgroups::below(job).into_iter().chain([String::new()]) {
        let expected = if limited.contains(&dir.as_str()) {
            bytes.to_string()
        } else {
            "max".to_owned()
        };
        for file in ["memory.max", "memory.high"] {
            assert_eq!(told(&job.join(&dir), file), expected, "{file} of {dir:?}");
        }
    }
}

/// The limit is that of the job and of the directory `user` of each step.
pub fn assert_limits(slurm: &Slurm, job: JobId) {
    let dir = slurm.job_cgroup(job);
    let tasks: [&[&str]; 3] = [&["task_0"], &["task_0"], &["task_special"]];
    assert_eq!(cgroups::below(&dir), with_tasks(tasks));
    let limited = ["", "step_0/user", "step_batch/user", "step_extern/user"];
    assert_limited(&dir, &limited, 200 * MIB);

    // The user may make directories in a task, and nowhere else.
    for below in ["", "step_0", "step_0/user", "step_0/slurm"] {
        assert_eq!(owner(&dir.join(below)), 0, "{below}");
    }
    assert_eq!(owner(&dir.join("step_0/user/task_0")), slurm.user().uid);
}

/// Tasks have directories of their own, as with limits, but are not in them.
pub fn assert_gathered(slurm: &Slurm, job: JobId) {
    let dir = slurm.job_cgroup(job);
    let beside: &[&str] = &["task_0", "task_special"];
    assert_eq!(cgroups::below(&dir), with_tasks([beside, beside, &["task_0"]]));
    assert_limited(&dir, &[], 0);
    assert_task_in(&dir, "step_0/user/task_special");
    assert!(cgroups::processes(&dir.join("step_0/user/task_0")).is_empty());
}

/// All that the kernel counts is there all the same, but no task is told from another.
pub fn assert_counted_without_tasks(slurm: &Slurm, job: JobId) {
    let dir = slurm.job_cgroup(job);
    assert_eq!(cgroups::below(&dir), with_tasks([&["task_special"]; 3]));
    assert_limited(&dir, &[], 0);
    assert!(told(&dir, "cgroup.controllers").contains("memory"));
    assert_task_in(&dir, "step_0/user/task_special");
}
