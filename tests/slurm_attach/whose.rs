//! The numbers of a job are its own: with several nodes on one host, and with sw-bpf inside of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::measure::{MIB, Process, wait_until};
use support::slurm::cgroups::path_in;
use support::slurm::{Config, JobId, Slurm, cgroups, run};

use super::{LIMIT, answered, assert_holds, bytes, cluster, need, refused, root, step};

fn hold(size: &str) -> String {
    format!("#!/bin/sh\nworkload anon --size {size} --hold-ms 300000\n")
}

/// Each `slurmd` of a host has a directory of its own: `slurm_NODE`, on version 2 the scope `NODE_slurmstepd.scope`.
fn assert_is_of_node(slurm: &Slurm, answer: &Value, node: &str, job: JobId) {
    let told = answer["target"]["cgroup"].as_str().expect("a path");
    let dir = cgroups::job("memory", node, slurm.user().uid, job.0);
    assert_eq!(Path::new(told), dir);
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
        assert_is_of_node(&slurm, &answer, node, job);
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
        assert_is_of_node(&slurm, &answer, node, both);
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
        assert_ne!(sw_bpfs(&slurm), []);
        slurm.client("scancel", &[&ended]);
        srun.finish();
    }
    assert_eq!(slurm.wait_end(job), "CANCELLED");
    wait_until("the node is idle", || {
        let state = slurm.client("sinfo", &["--noheader", "--format=%T"]);
        assert!(!state.contains("drain"), "{state}");
        state == "idle"
    });
    assert_eq!(sw_bpfs(&slurm), []);
}

/// Its processes on the hosts of the cluster.
fn sw_bpfs(slurm: &Slurm) -> Vec<Pid> {
    let program = slurm.dir("bin").join("sw-bpf");
    let mut found = slurm.processes();
    found.retain(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program));
    found
}

/// A file of a process; empty where it has ended.
fn read(pid: Pid, file: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

/// What it has in its step goes with it, and its own cgroup with the next one that is started.
#[test]
fn killed_it_leaves_nothing_in_its_step() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let id = roots(&slurm);
    let mut srun = Process::start(&mut in_step(&slurm, &id, &["attach"]));
    assert!(srun.line().contains("needed"));
    let is_outside = |pid: &Pid| path_in(&read(*pid, "cgroup"), "memory").starts_with("/sw-bpf-attach-");
    let (outside, inside): (Vec<_>, Vec<_>) = sw_bpfs(&slurm).into_iter().partition(is_outside);
    let [outside] = outside[..] else {
        panic!("{outside:?} {inside:?}");
    };
    // By version 1 Slurm ends what has left the memory hierarchy alone.
    assert_eq!(inside.len(), usize::from(cgroups::version() == 2));
    // A kill for memory is to hit a process of the job.
    for pid in inside {
        assert_eq!(read(pid, "oom_score_adj"), "-1000\n");
    }
    kill_process(outside, Signal::KILL).expect("it runs");
    srun.finish();
    wait_until("all of it has ended", || sw_bpfs(&slurm).is_empty());
    let memory = if cgroups::version() == 2 { "" } else { "memory/" };
    let left = format!("/sys/fs/cgroup/{memory}sw-bpf-attach-{outside}");
    assert!(Path::new(&left).exists());
    let answer = answered(in_step(&slurm, &id, &["--once", "--json", "--window=300ms"]));
    assert_eq!(answer["target"]["own_processes"], "left");
    assert!(!Path::new(&left).exists());
    slurm.client("scancel", &[&id]);
}
