//! Nodes that do not answer, and callers that do not wait.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use support::measure::{MIB, Process, wait_until};
use support::pace::scaled;
use support::slurm::Slurm;

use super::{HELD, all_nodes, bytes, cluster, gathered, held_by_root, held_by_user, need, root, user};

/// The daemon of a node.
fn slurmd(slurm: &Slurm, node: &str) -> Pid {
    let is_its = |pid: &Pid| {
        let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).collect();
        words.starts_with(&[b"slurmd"]) && words.contains(&node.as_bytes())
    };
    slurm.processes().into_iter().find(is_its).expect("a daemon")
}

/// Steps of a job that run, without Slurm's own.
fn steps(slurm: &Slurm, job: &str) -> Vec<String> {
    let text = slurm.client("squeue", &["--noheader", "--steps", "--format=%i", "--jobs", job]);
    let own = ["batch", "extern"];
    let ids = text
        .lines()
        .map(str::trim)
        .filter(|id| !own.iter().any(|name| id.ends_with(name)));
    ids.map(str::to_owned).collect()
}

/// Slurm gives up the stopped one after 20 s, and tells which it is.
#[test]
fn a_node_whose_daemon_is_stopped_is_named_and_the_other_is_told() {
    if !need() {
        return;
    }
    let slurm = cluster();
    let job = held_by_root(&slurm, "").to_string();
    let daemon = slurmd(&slurm, "swbpf2");
    kill_process(daemon, Signal::STOP).expect("it runs");
    let begin = Instant::now();
    let answer = all_nodes(root(&slurm), &["--json", "--window=500ms", &job]);
    let (told, code) = gathered(&answer);
    println!("after {:?}: {}", begin.elapsed(), told["nodes"][1]["reason"]);
    kill_process(daemon, Signal::CONT).expect("it is there");
    assert_eq!(code, Some(76), "{}", answer.stderr);
    let told_aside = format!("1 of 2 nodes of job {job} did not answer: swbpf2");
    assert!(answer.stderr.contains(&told_aside), "{}", answer.stderr);
    assert_eq!(told["missing"], serde_json::json!(["swbpf2"]));
    let reason = told["nodes"][1]["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("swbpf2") || reason.contains("did not answer within"),
        "{reason}"
    );
    let own = bytes(&told, "/nodes/0/snapshot/memory/needed_bytes");
    assert!(own + MIB >= HELD[0] * MIB, "{own}");
    assert_eq!(bytes(&told, "/totals/needed_bytes"), own);
    // The job itself goes on.
    assert_eq!(steps(&slurm, &job), [format!("{job}.0")]);
    slurm.client("scancel", &[&job]);
}

#[test]
fn ctrl_c_ends_the_step_that_it_started() {
    if !need() {
        return;
    }
    let slurm = cluster();
    let job = held_by_user(&slurm).to_string();
    let mut command = user(&slurm);
    let window = format!("--window={}s", scaled(Duration::from_mins(1)).as_secs());
    command.args(["--once", "--all-nodes", "--json", &window, &job]);
    let mut process = Process::start(&mut command);
    wait_until("its step runs", || steps(&slurm, &job).len() == 2);
    let begin = Instant::now();
    let pid = Pid::from_raw(process.id().cast_signed()).expect("an id");
    kill_process(pid, Signal::INT).expect("it runs");
    let (status, output) = process.finish();
    assert!(begin.elapsed() < scaled(Duration::from_secs(20)));
    assert_eq!(status.code(), Some(76));
    let told: serde_json::Value = serde_json::from_str(&output).expect("one object");
    assert_eq!(told["missing"], serde_json::json!(["swbpf1", "swbpf2"]));
    for node in told["nodes"].as_array().expect("nodes") {
        assert_eq!(node["reason"], "it was not waited for: sw-bpf was told to end");
    }
    wait_until("its step is gone", || steps(&slurm, &job) == [format!("{job}.0")]);
    slurm.client("scancel", &[&job]);
}
