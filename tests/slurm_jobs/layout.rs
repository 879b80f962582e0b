//! Which directories a job has, by configuration. The versions differ, so each has a place of its own for what it does.

mod v1;
mod v2;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::Pid;
use support::measure::wait_until;
use support::need_slurm;
use support::slurm::cgroups::path_in;
use support::slurm::{Config, Gather, JobId, Slurm, cgroups};

/// A batch script and a step in it, which both stay until they are let go.
const TWO: &str = "#!/bin/sh\nsrun until-let-go &\nuntil-let-go\nwait\n";

/// The steps of such a job.
const STEPS: [&str; 3] = ["step_0", "step_batch", "step_extern"];

/// A job of [`TWO`] whose step runs.
fn held(slurm: &Slurm) -> JobId {
    let job = slurm.sbatch(TWO, &["--mem=200M"]);
    let step = slurm.job_dir("freezer", job).join("step_0");
    wait_until("the step runs", || {
        let mut processes = cgroups::tree(&step)
            .into_iter()
            .flat_map(|dir| cgroups::processes(&dir));
        processes.any(|pid| name(pid) == "sleep")
    });
    job
}

/// Name of a process that lives; empty for one that has ended.
fn name(pid: Pid) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// Its cgroups.
fn cgroups_of(pid: Pid) -> String {
    fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("a live process")
}

/// Who may make directories in this one.
fn owner(dir: &Path) -> u32 {
    fs::metadata(dir).expect("a directory").uid()
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
    if !need_slurm() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let job = held(&slurm);
    if cgroups::version() == 1 {
        v1::assert_limits(&slurm, job);
    } else {
        v2::assert_limits(&slurm, job);
    }
    ends(&slurm, job);
}

#[test]
fn the_tasks_memory_is_below_the_step_and_the_steps_daemon_counts_in_the_step() {
    if !need_slurm() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let job = held(&slurm);
    let dir = slurm.job_cgroup(job);
    let tasks = cgroups::processes(&dir.join(cgroups::task("step_0", 0)));
    assert!(!tasks.is_empty());
    for task in tasks {
        let text = cgroups_of(task);
        let inside = format!("/job_{job}/{}", cgroups::task("step_0", 0));
        assert!(path_in(&text, "memory").ends_with(&inside), "{text}");
        if cgroups::version() == 1 {
            v1::assert_others(&slurm, job, &text);
        }
    }
    let daemons = cgroups::processes(&dir.join(cgroups::daemon("step_0")));
    let names: Vec<_> = daemons.into_iter().map(name).collect();
    assert_eq!(names, ["slurmstepd"]);
    ends(&slurm, job);
}

#[test]
fn gathering_by_cgroup_counts_memory_and_time_without_a_limit() {
    if !need_slurm() {
        return;
    }
    let slurm = Slurm::start(&Config {
        gather: Gather::Cgroup,
        constrain_ram: false,
        ..Config::default()
    });
    let job = held(&slurm);
    if cgroups::version() == 1 {
        v1::assert_gathered(&slurm, job);
    } else {
        v2::assert_gathered(&slurm, job);
    }
    ends(&slurm, job);
}

/// On version 1 a job has no memory cgroup then; on version 2 it has one, but none for each task.
#[test]
fn without_limits_and_gathering_by_cgroup_the_versions_differ() {
    if !need_slurm() {
        return;
    }
    let slurm = Slurm::start(&Config {
        constrain_ram: false,
        ..Config::default()
    });
    let job = held(&slurm);
    if cgroups::version() == 1 {
        v1::assert_not_counted(&slurm, job);
    } else {
        v2::assert_counted_without_tasks(&slurm, job);
    }
    ends(&slurm, job);
}
