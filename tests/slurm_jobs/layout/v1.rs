//! Version 1: a hierarchy for each controller, and in each what its own plugin makes.

use std::fs;
use std::path::Path;

use support::measure::MIB;
use support::slurm::cgroups::path_in;
use support::slurm::{JobId, Slurm, cgroups};

use super::super::number;
use super::{STEPS, cgroups_of, owner};

/// As [`STEPS`], with a task in those that have one.
const STEPS_AND_TASKS: [&str; 5] = [
    "step_0",
    "step_0/task_0",
    "step_batch",
    "step_batch/task_0",
    "step_extern",
];

/// As [`STEPS`], with a task in each.
const ALL_WITH_TASKS: [&str; 6] = [
    "step_0",
    "step_0/task_0",
    "step_batch",
    "step_batch/task_0",
    "step_extern",
    "step_extern/task_0",
];

/// What a cgroup without a limit says: the highest number of whole pages.
const UNLIMITED: u64 = i64::MAX as u64 / 4096 * 4096;

/// The cgroups of this process, in which the daemons of Slurm were started.
fn own() -> String {
    fs::read_to_string("/proc/self/cgroup").expect("the own cgroups")
}

/// The limit is that of the job and of each step, not of the tasks nor of the user.
pub fn assert_limits(slurm: &Slurm, job: JobId) {
    let memory = slurm.job_cgroup(job);
    assert_eq!(cgroups::below(&memory), STEPS_AND_TASKS);
    for controller in ["freezer", "cpuset"] {
        assert_eq!(
            cgroups::below(&slurm.job_dir(controller, job)),
            STEPS,
            "{controller}"
        );
    }
    assert!(!slurm.job_dir("cpuacct", job).exists());

    let limit = |dir: &Path| number(&dir.join("memory.limit_in_bytes"));
    let uid = memory.parent().expect("the directory of the user");
    assert_eq!(limit(uid), UNLIMITED);
    assert_eq!(limit(&memory), 200 * MIB);
    for step in STEPS {
        assert_eq!(limit(&memory.join(step)), 200 * MIB, "{step}");
    }
    assert_eq!(limit(&memory.join("step_0/task_0")), UNLIMITED);

    // The user may make directories in a step, and not beside it.
    assert_eq!(owner(&memory), 0);
    assert_eq!(owner(&memory.join("step_0")), slurm.user().uid);
    assert_eq!(owner(&memory.join("step_0/task_0")), slurm.user().uid);
}

/// In the other hierarchies, a task is in its step, or where the daemons are.
pub fn assert_others(slurm: &Slurm, job: JobId, of_task: &str) {
    let inside = format!("/slurm_swbpf1/uid_{}/job_{job}/step_0", slurm.user().uid);
    assert_eq!(path_in(of_task, "memory"), format!("{inside}/task_0"));
    assert_eq!(path_in(of_task, "freezer"), inside);
    assert_eq!(path_in(of_task, "cpuset"), inside);
    assert_eq!(path_in(of_task, "cpuacct"), path_in(&own(), "cpuacct"));
}

/// Gathering adds CPU time, and tasks of its own.
pub fn assert_gathered(slurm: &Slurm, job: JobId) {
    assert_eq!(cgroups::below(&slurm.job_dir("cpuacct", job)), ALL_WITH_TASKS);
    let memory = slurm.job_cgroup(job);
    assert_eq!(cgroups::below(&memory), ALL_WITH_TASKS);
    assert_eq!(number(&memory.join("memory.limit_in_bytes")), UNLIMITED);
}

/// Its memory counts where the daemons are.
pub fn assert_not_counted(slurm: &Slurm, job: JobId) {
    assert!(!slurm.job_cgroup(job).exists());
    let freezer = slurm.job_dir("freezer", job);
    assert_eq!(cgroups::below(&freezer), STEPS);
    for process in cgroups::processes(&freezer.join("step_0")) {
        assert_eq!(path_in(&cgroups_of(process), "memory"), path_in(&own(), "memory"));
    }
}
