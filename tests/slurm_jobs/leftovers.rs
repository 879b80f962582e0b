//! Nothing of a cluster stays on the machine.

use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::Pid;
use support::measure::wait_until;
use support::need_slurm;
use support::slurm::{Config, Slurm, cgroups, remains};

/// A step, a process outside any session, and a cgroup of the job's own, with a process for it.
const WILD: &str = "setsid sleep 600 &\n\
    mkdir $task/own\n\
    sh -c 'echo 0 >'$task'/own/cgroup.procs; exec sleep 600' &\n\
    echo $! >nested\n\
    srun sleep 600 &\n\
    echo here\n\
    wait\n";

/// A cluster with such a job, and all its processes.
fn busy() -> (Slurm, HashSet<Pid>) {
    let slurm = Slurm::start(&Config {
        accounting: true,
        nodes: 2,
        ..Config::default()
    });
    let job = slurm.sbatch(&format!("#!/bin/sh\n{}{WILD}", cgroups::shell()), &[]);
    slurm.wait_line(job, "here");
    let memory = slurm.job_cgroup(job);
    let own = memory.join(cgroups::task("step_batch", 0)).join("own");
    if cgroups::version() == 2 {
        // There a user may not move processes, but root may.
        let nested = fs::read(slurm.dir("work").join("nested")).expect("a process");
        fs::write(own.join("cgroup.procs"), nested).expect("it can be moved");
    }
    let busy = [memory.join(cgroups::task("step_0", 0)), own];
    wait_until("the job runs", || {
        busy.iter().all(|dir| !cgroups::processes(dir).is_empty())
    });
    let dirs: Vec<_> = cgroups::of_nodes()
        .iter()
        .flat_map(|dir| cgroups::tree(dir))
        .collect();
    let jobs = dirs.iter().flat_map(|dir| cgroups::processes(dir));
    let processes: HashSet<_> = slurm.processes().into_iter().chain(jobs).collect();
    // Six daemons, three steps with a daemon each, three sleepers and their shells.
    assert!(processes.len() > 12, "{processes:?}");
    (slurm, processes)
}

/// Those that have not ended; one that nobody has waited for yet has.
fn alive(processes: &HashSet<Pid>) -> Vec<Pid> {
    let is_alive = |pid: &&Pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    processes.iter().filter(is_alive).copied().collect()
}

#[test]
fn a_test_that_panics_leaves_nothing() {
    if !need_slurm() {
        return;
    }
    let (slurm, processes) = busy();
    assert_eq!(alive(&processes).len(), processes.len());
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _slurm = slurm;
        std::panic::resume_unwind(Box::new("a test that fails"));
    }));
    assert!(panicked.is_err());
    assert_eq!(remains(), [""; 0]);
    assert_eq!(alive(&processes), []);
}

#[test]
fn what_a_killed_test_leaves_is_removed_by_the_next() {
    if !need_slurm() {
        return;
    }
    let (slurm, processes) = busy();
    slurm.abandon();
    assert_eq!(alive(&processes).len(), processes.len());
    assert!(!remains().is_empty());
    let slurm = Slurm::start(&Config::default());
    assert_eq!(alive(&processes), []);
    let (_, state) = slurm.run_job("#!/bin/sh\ntrue\n", &[]);
    assert_eq!(state, "COMPLETED");
    drop(slurm);
    assert_eq!(remains(), [""; 0]);
}
