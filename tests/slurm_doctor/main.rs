//! `sw-bpf doctor` on a real Slurm: with limits for memory, and without anything that makes a memory cgroup.

use std::fs;
use std::process::Command;

use support::doctor::Diagnosis;
use support::measure::{program, wait_until};
use support::slurm::{Config, Slurm, cgroups};
use support::{need_bpf, need_slurm};

/// A job that stays until it is let go.
const HELD: &str = "#!/bin/sh\nuntil-let-go\n";

fn need() -> bool {
    need_slurm() && need_bpf()
}

/// `sw-bpf doctor --json` as root types it on a host of the cluster.
fn doctor(slurm: &Slurm) -> Command {
    let mut command = slurm.as_root("sw-bpf");
    command.args(["doctor", "--json"]);
    command
}

fn cluster(config: &Config) -> Slurm {
    let slurm = Slurm::start(config);
    fs::copy(program("sw-bpf"), slurm.dir("bin").join("sw-bpf")).expect("a program");
    slurm
}

#[test]
fn with_limits_for_memory_jobs_are_counted() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let diagnosis = Diagnosis::of(&mut doctor(&slurm));
    let version = slurm.version();
    let version = version.rsplit(' ').next().expect("a version");
    diagnosis.assert("slurm", "ok", &format!("Slurm {version}: "), "");
    for setting in [
        "ProctrackType=proctrack/cgroup",
        "TaskPlugin=task/cgroup",
        "JobAcctGatherType=jobacct_gather/linux",
        "JobAcctGatherFrequency=task=30",
        "PrologFlags=Alloc,Contain",
        "ConstrainRAMSpace=yes",
    ] {
        diagnosis.assert("slurm", "ok", setting, "");
    }
    diagnosis.assert("jobs", "ok", "no job", "");
    assert!(
        diagnosis.check("programs").found.contains("attached"),
        "{diagnosis:?}"
    );

    let job = slurm.sbatch(HELD, &[]);
    wait_until("the job has a cgroup", || slurm.job_cgroup(job).exists());
    let diagnosis = Diagnosis::of(&mut doctor(&slurm));
    diagnosis.assert("jobs", "ok", "1 job, with a memory cgroup", "");
    slurm.let_go(job);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
}

#[test]
fn without_limits_and_gathering_by_cgroup_the_setting_that_is_missing_is_named() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config {
        constrain_ram: false,
        prolog_flags: String::new(),
        ..Config::default()
    });
    let job = slurm.sbatch(HELD, &[]);
    let is_v1 = cgroups::version() == 1;
    let dir = if is_v1 {
        slurm.job_dir("freezer", job)
    } else {
        slurm.job_cgroup(job)
    };
    wait_until("the job has a cgroup", || dir.exists());
    let diagnosis = Diagnosis::of(&mut doctor(&slurm));
    diagnosis.assert("slurm", "degraded", "ConstrainRAMSpace=no", "PrologFlags=Contain");
    if is_v1 {
        diagnosis.assert(
            "slurm",
            "degraded",
            "jobacct_gather/linux",
            "ConstrainRAMSpace=yes",
        );
        assert!(
            diagnosis.check("slurm").means.contains("sampled"),
            "{diagnosis:?}"
        );
        diagnosis.assert(
            "jobs",
            "degraded",
            "1 job, 1 without a memory cgroup",
            "ConstrainRAMSpace=yes",
        );
    } else {
        diagnosis.assert("jobs", "ok", "1 job, with a memory cgroup", "");
    }
    assert_eq!((diagnosis.code, diagnosis.verdict()), (Some(1), "degraded"));
    slurm.let_go(job);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
}
