//! Which directories a job has, by configuration.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use support::measure::{MIB, wait_until};
use support::slurm::{Config, Gather, JobId, Slurm, cgroups};

use super::{need_slurm_v1, number, path_in};

/// A batch script and a step in it, which both stay until they are let go.
const TWO: &str = "#!/bin/sh\nsrun until-let-go &\nuntil-let-go\nwait\n";

const STEPS: [&str; 3] = ["step_0", "step_batch", "step_extern"];
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

/// A job of [`TWO`] whose step runs.
fn held(slurm: &Slurm) -> JobId {
    let job = slurm.sbatch(TWO, &["--mem=200M"]);
    let step = slurm.job_dir("freezer", job).join("step_0");
    // The step's own daemon, and the task.
    wait_until("the step runs", || cgroups::processes(&step).len() > 1);
    job
}

/// The cgroups of this process, in which the daemons of Slurm were started.
fn own() -> String {
    fs::read_to_string("/proc/self/cgroup").expect("the own cgroups")
}

fn ends(slurm: &Slurm, job: JobId) {
    slurm.let_go(job);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
    for controller in ["memory", "freezer", "cpuset", "cpuacct"] {
        let dir = slurm.job_dir(controller, job);
        wait_until("the directory is removed", || !dir.exists());
    }
}

#[test]
fn a_job_is_held_to_its_memory_in_the_job_and_in_each_step() {
    if !need_slurm_v1() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let job = held(&slurm);
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
    let owner = |dir: &Path| fs::metadata(dir).expect("a directory").uid();
    assert_eq!(owner(&memory), 0);
    assert_eq!(owner(&memory.join("step_0")), slurm.user().uid);
    assert_eq!(owner(&memory.join("step_0/task_0")), slurm.user().uid);
    ends(&slurm, job);
}

#[test]
fn the_tasks_memory_is_below_the_step_and_the_steps_daemon_counts_in_the_step() {
    if !need_slurm_v1() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let job = held(&slurm);
    let step = slurm.job_cgroup(job).join("step_0");
    for task in cgroups::processes(&step.join("task_0")) {
        let text = fs::read_to_string(format!("/proc/{task}/cgroup")).expect("a live process");
        let user = slurm.user().uid;
        let inside = format!("/slurm_swbpf1/uid_{user}/job_{job}/step_0");
        assert_eq!(path_in(&text, "memory"), format!("{inside}/task_0"));
        assert_eq!(path_in(&text, "freezer"), inside);
        assert_eq!(path_in(&text, "cpuset"), inside);
        assert_eq!(path_in(&text, "cpuacct"), path_in(&own(), "cpuacct"));
    }
    let daemons = cgroups::processes(&step);
    assert_eq!(daemons.len(), 1, "{daemons:?}");
    let name = fs::read_to_string(format!("/proc/{}/comm", daemons[0])).expect("a live process");
    assert_eq!(name, "slurmstepd\n");
    ends(&slurm, job);
}

#[test]
fn gathering_by_cgroup_adds_cpu_time_and_its_own_tasks() {
    if !need_slurm_v1() {
        return;
    }
    let slurm = Slurm::start(&Config {
        gather: Gather::Cgroup,
        constrain_ram: false,
        ..Config::default()
    });
    let job = held(&slurm);
    assert_eq!(cgroups::below(&slurm.job_dir("cpuacct", job)), ALL_WITH_TASKS);
    let memory = slurm.job_cgroup(job);
    assert_eq!(cgroups::below(&memory), ALL_WITH_TASKS);
    assert_eq!(number(&memory.join("memory.limit_in_bytes")), UNLIMITED);
    ends(&slurm, job);
}

#[test]
fn without_limits_and_gathering_by_cgroup_a_job_has_no_memory_cgroup() {
    if !need_slurm_v1() {
        return;
    }
    let slurm = Slurm::start(&Config {
        constrain_ram: false,
        ..Config::default()
    });
    let job = held(&slurm);
    assert!(!slurm.job_cgroup(job).exists());
    assert_eq!(cgroups::below(&slurm.job_dir("freezer", job)), STEPS);
    let step = slurm.job_dir("freezer", job).join("step_0");
    for process in cgroups::processes(&step) {
        let text = fs::read_to_string(format!("/proc/{process}/cgroup")).expect("a live process");
        assert_eq!(path_in(&text, "memory"), path_in(&own(), "memory"));
    }
    ends(&slurm, job);
}
