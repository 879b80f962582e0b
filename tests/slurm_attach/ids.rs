//! Every way to name a job.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use support::slurm::{Config, JobId, cgroups, run};

use super::{LIMIT, answered, cluster, need, refused, root, step, user};

const HOLD: &str = "#!/bin/sh\nworkload anon --size 20M --hold-ms 300000\n";

fn once(id: &str) -> [&str; 4] {
    ["--once", "--json", "--window=100ms", id]
}

#[test]
fn tasks_of_an_array_and_steps_are_named_and_a_whole_array_is_listed() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let array = slurm.sbatch(HOLD, &["--mem=100M", "--array=3-4"]);
    let parts = || slurm.parts(array);
    support::measure::wait_until("both tasks run", || {
        parts().iter().all(|(_, id)| slurm.job_cgroup(*id).exists())
    });
    for (shown, raw) in parts() {
        for id in [shown.clone(), format!("{shown}.batch")] {
            let answer = answered(root(&slurm, &once(&id)));
            assert_eq!(answer["job_id"], shown.as_str(), "{id}");
            assert_eq!(answer["job"]["job_id"], raw.0);
            assert_eq!(answer["job"]["array_job_id"], array.0);
            let directory = answer["target"]["cgroup"].as_str().expect("a path");
            assert!(directory.contains(&format!("/job_{raw}")), "{directory}");
        }
    }
    let answer = run(&mut root(&slurm, &[&array.to_string()]), LIMIT);
    assert_eq!(answer.status.code(), Some(2), "{}", answer.stderr);
    for (shown, _) in parts() {
        assert!(answer.stderr.contains(&shown), "{}", answer.stderr);
    }
    let listed = format!("{array}_[3]");
    let answer = answered(root(&slurm, &once(&listed)));
    assert_eq!(answer["job_id"], format!("{array}_3"));
    // One step, with its task alone.
    let answer = answered(root(&slurm, &once(&format!("{array}_3.batch"))));
    assert_eq!(answer["step_id"], "batch");
    assert_eq!(answer["steps"].as_array().map(Vec::len), Some(1));
    assert_eq!(step(&answer, "batch")["tasks"].as_array().map(Vec::len), Some(1));
    slurm.scancel(array);
}

#[test]
fn components_of_a_het_job_are_named() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config {
        nodes: 2,
        ..Config::default()
    });
    let script = "#!/bin/sh\nsrun --het-group=0,1 until-let-go\n";
    let leader = slurm.sbatch(script, &["-n1", "--mem=100M", ":", "-n1", "--mem=100M"]);
    let second = JobId(leader.0 + 1);
    for (offset, raw) in [(0, leader), (1, second)] {
        support::measure::wait_until("the component has a cgroup", || {
            run(&mut root(&slurm, &once(&raw.to_string())), LIMIT)
                .status
                .success()
                || run(&mut root(&slurm, &once(&format!("{leader}+{offset}"))), LIMIT)
                    .status
                    .success()
        });
        let answer = answered(root(&slurm, &once(&format!("{leader}+{offset}"))));
        assert_eq!(answer["job"]["job_id"], raw.0);
        assert_eq!(answer["job"]["het_job_offset"], offset);
        assert_eq!(answer["job_id"], format!("{leader}+{offset}"));
    }
    let answer = run(&mut root(&slurm, &[&leader.to_string()]), LIMIT);
    assert_eq!(answer.status.code(), Some(2), "{}", answer.stderr);
    slurm.scancel(leader);
}

/// Without an id: the job that sw-bpf runs in, else the only one of the user.
#[test]
fn the_users_own_job_is_found_without_an_id() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let (code, line) = refused(user(&slurm, &[]));
    assert_eq!(code, Some(67), "{line}");
    assert!(line.contains("--help"), "{line}");
    let first = slurm.sbatch(HOLD, &["--mem=100M", "--job-name=first"]);
    support::measure::wait_until("it has a cgroup", || {
        slurm.job_cgroup(first).join("step_batch").exists()
    });
    // It never ends by itself in time: its end is that of its reader.
    let mut attached = support::measure::Process::start(&mut user(&slurm, &[]));
    assert!(attached.line().contains("needed"));
    drop(attached);
    let second = slurm.sbatch(HOLD, &["--mem=100M", "--job-name=second"]);
    support::measure::wait_until("it has a cgroup", || {
        slurm.job_cgroup(second).join("step_batch").exists()
    });
    let answer = run(&mut user(&slurm, &["attach"]), LIMIT);
    assert_eq!(answer.status.code(), Some(2), "{}", answer.stderr);
    for (job, name) in [(first, "first"), (second, "second")] {
        assert!(
            answer.stderr.contains(&format!("{job} {name}")),
            "{}",
            answer.stderr
        );
    }
    // Within a job it is that job.
    let id = format!("--jobid={second}");
    let inside = [
        &id,
        "--overlap",
        "--mem=0",
        "sw-bpf",
        "--once",
        "--json",
        "--window=100ms",
    ];
    let mut srun = slurm.as_user("srun");
    let answer = answered({
        srun.args(inside);
        srun
    });
    assert_eq!(
        (&answer["job_id"], &answer["source"]),
        (&second.to_string().into(), &"sampled".into())
    );
    assert_eq!(answer["target"]["own_processes"], "taken_off");
    slurm.scancel(first);
    slurm.scancel(second);
}

/// Before a job's first process is there, and between its steps, the processes in its cgroup are Slurm's: on version 2 nothing there
/// tells whose it is.
#[test]
fn a_job_without_a_process_of_its_users_is_found_without_an_id() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let mut salloc = slurm.as_user("salloc");
    let _ = run(salloc.args(["--no-shell", "-n1", "--mem=100M"]), LIMIT).good();
    let job = JobId(1);
    let dir = slurm.job_cgroup(job);
    support::measure::wait_until("it has a cgroup", || dir.join("step_extern").exists());
    for pid in cgroups::tree(&dir).iter().flat_map(|dir| cgroups::processes(dir)) {
        let owner = fs::metadata(format!("/proc/{pid}")).expect("it stays").uid();
        assert_eq!(owner, 0, "{pid}");
    }
    let mut attached = support::measure::Process::start(&mut user(&slurm, &[]));
    assert!(attached.line().contains("needed"));
    drop(attached);
    slurm.scancel(job);
}
