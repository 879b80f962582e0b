//! The numbers of a job are its own: with several nodes on one host, and with sw-bpf inside of it.

use std::fs;
use std::process::Command;

use support::measure::{MIB, Process, wait_until};
use support::slurm::{Config, JobId, Slurm, run};

use super::{LIMIT, answered, assert_holds, bytes, cluster, need, refused, root, step};

fn hold(size: &str) -> String {
    format!("#!/bin/sh\nworkload anon --size {size} --hold-ms 300000\n")
}

#[test]
fn with_two_nodes_on_the_host_each_jobs_numbers_are_its_own() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config {
        nodes: 2,
        ..Config::default()
    });
    let small = slurm.sbatch(&hold("30M"), &["--mem=300M", "-w", "swbpf1"]);
    let large = slurm.sbatch(&hold("150M"), &["--mem=300M", "-w", "swbpf2"]);
    for (job, mib, node) in [(small, 30, "swbpf1"), (large, 150, "swbpf2")] {
        let id = job.to_string();
        wait_until("the job holds its memory", || {
            let answer = run(
                &mut root(&slurm, &["--once", "--json", "--window=200ms", &id]),
                LIMIT,
            );
            answer.status.success()
                && bytes(
                    &support::command::snapshot(answer.stdout.trim_end())["memory"],
                    "needed_bytes",
                ) >= mib * MIB
        });
        let answer = answered(root(&slurm, &["--once", "--json", "--window=200ms", &id]));
        assert_holds(&answer["memory"], mib);
        assert_eq!(answer["job"]["here"]["node"], node);
        let (code, line) = refused(root(&slurm, &["--once", "--node=node9", &id]));
        assert_ne!(code, Some(0), "{line}");
    }
    // One job on both: which of its cgroups is meant has to be said.
    let script = "#!/bin/sh\nsrun -N2 -n2 sh -c 'workload anon --size $((20 + 40 * SLURM_PROCID))M --hold-ms 300000'\n";
    let both = slurm.sbatch(script, &["--mem=300M", "-N2", "-n2"]);
    let id = both.to_string();
    let on = |node: &str| {
        let mut command = root(&slurm, &["--once", "--json", "--window=200ms", &id]);
        command.args(["--node", node]);
        run(&mut command, LIMIT)
    };
    for (node, mib) in [("swbpf1", 20), ("swbpf2", 60)] {
        wait_until("the job holds its memory", || {
            let answer = on(node);
            answer.status.success()
                && bytes(
                    &support::command::snapshot(answer.stdout.trim_end())["memory"],
                    "needed_bytes",
                ) >= mib * MIB
        });
        let answer = support::command::snapshot(&on(node).good());
        assert_holds(&answer["memory"], mib);
    }
    let answer = run(&mut root(&slurm, &[&id]), LIMIT);
    assert_eq!(answer.status.code(), Some(2), "{}", answer.stderr);
    assert!(
        answer.stderr.contains("swbpf1") && answer.stderr.contains("swbpf2"),
        "{}",
        answer.stderr
    );
    for job in [small, large, both] {
        slurm.scancel(job);
    }
}

/// A job of root's that holds 30 MiB: Slurm lets no one make a step in the job of another, not even root.
fn roots(slurm: &Slurm) -> String {
    let script = slurm.dir("work").join("roots");
    fs::write(&script, hold("30M")).expect("a script");
    let script = script.to_str().expect("text");
    let id = slurm.client(
        "sbatch",
        &["--parsable", "--output=/dev/null", "--mem=300M", script],
    );
    wait_until("the job holds its memory", || {
        let answer = run(
            &mut root(slurm, &["--once", "--json", "--window=200ms", &id]),
            LIMIT,
        );
        answer.status.success()
            && bytes(
                &support::command::snapshot(answer.stdout.trim_end())["memory"],
                "needed_bytes",
            ) >= 30 * MIB
    });
    id
}

/// sw-bpf in a step of the job that it measures.
fn in_step(slurm: &Slurm, id: &str, arguments: &[&str]) -> Command {
    let mut srun = slurm.as_root("srun");
    srun.args(["--overlap", "--mem=0", &format!("--jobid={id}"), "sw-bpf"]);
    srun.args(arguments).arg(id);
    srun
}

/// `srun --overlap` as root puts sw-bpf into a step of the job that it measures.
#[test]
fn its_own_step_does_not_count() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let id = roots(&slurm);
    let answer = answered(in_step(&slurm, &id, &["--once", "--json", "--window=300ms"]));
    assert_eq!(answer["source"], "kernel");
    assert_eq!(answer["target"]["own_processes"], "left");
    assert_holds(&answer["memory"], 30);
    // Its own step has a daemon of Slurm's and nothing else.
    let own = step(&answer, "0");
    assert!(bytes(own, "needed_bytes") < 2 * MIB, "{own}");
    slurm.client("scancel", &[&id]);
}

/// Slurm ends a step by the processes in its cgroups, of which sw-bpf is none any more.
#[test]
fn it_ends_with_its_step_and_with_its_job() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let id = roots(&slurm);
    let job: JobId = JobId(id.parse().expect("an id"));
    for ended in [format!("{id}.0"), id.clone()] {
        let mut srun = Process::start(&mut in_step(&slurm, &id, &["attach"]));
        assert!(srun.line().contains("needed"));
        slurm.client("scancel", &[&ended]);
        srun.finish();
    }
    assert_eq!(slurm.wait_end(job), "CANCELLED");
    wait_until("the node is idle", || {
        let state = slurm.client("sinfo", &["--noheader", "--format=%T"]);
        assert!(!state.contains("drain"), "{state}");
        state == "idle"
    });
    let mut left = slurm.processes();
    left.retain(|pid| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sw-bpf\0"))
    });
    assert_eq!(left, []);
}
