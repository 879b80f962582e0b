//! Several runs of one job: each has its own record, whatever becomes of the files and of the agent.

use std::time::Duration;
use std::{fs, thread};

use support::command::output;
use support::measure::{MIB, wait_until};
use support::need_bpf;
use swbpf::snapshot::Snapshot;

use super::node::{Node, check_peak};
use super::socket::ROOT;

/// Runs of one job each have their own record, the latest one by the name alone, whatever becomes of the files and of the agent.
#[test]
fn each_run_of_a_job_has_its_own_record() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let run = |node: &Node, size: &str| {
        let job = node.job("again");
        job.run(&["anon", "--size", size, "--hold-ms", "5"]);
        job
    };
    // One is removed and made anew at once.
    run(&node, "20M").remove();
    let second = run(&node, "30M");
    node.wait_for_line("cgroup-again");
    check_peak(&node.summary("cgroup-again.1"), 20 * MIB);
    let path = second.cgroup.path().display().to_string();
    let shown = output(&mut node.client(ROOT, &["--once", "--json", "--cgroup", &path]));
    let shown: Snapshot = serde_json::from_slice(&shown.stdout).expect("an answer");
    check_peak(&shown, 30 * MIB);
    node.wait_for_state(&second);
    // That one ends, and two more come, while there is no agent.
    node.kill();
    second.remove();
    run(&node, "40M").remove();
    let fourth = run(&node, "50M");
    node.start();
    check_peak(&node.summary("cgroup-again.2"), 30 * MIB);
    check_peak(&node.summary("cgroup-again.3"), 40 * MIB);
    // What is written of an earlier run anew leaves the latest its name.
    fs::remove_file(node.dir("jobs/cgroup-again.1.jsonl")).expect("there");
    fourth.remove();
    check_peak(&node.summary("cgroup-again"), 50 * MIB);
    let names = fs::read_dir(node.dir("jobs")).expect("records");
    let mut names: Vec<_> = names.map(|entry| entry.expect("a file").file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "cgroup-again.2.jsonl",
            "cgroup-again.3.jsonl",
            "cgroup-again.jsonl"
        ]
    );
}

/// The summary of an earlier run that has to wait for a disk with room does not take the place of the one that runs.
#[test]
fn a_summary_that_waited_leaves_the_latest_its_name() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    let (jobs, aside) = (node.dir("jobs"), node.dir("aside"));
    node.start();
    let first = node.job("again");
    first.run(&["anon", "--size", "20M", "--hold-ms", "5"]);
    node.wait_for_line("cgroup-again");
    fs::rename(&jobs, &aside).expect("moved");
    fs::write(&jobs, "in its place").expect("written");
    wait_until("told", || node.told().contains("is gone"));
    first.remove();
    let second = node.job("again");
    second.run(&["anon", "--size", "30M", "--hold-ms", "5"]);
    thread::sleep(Duration::from_secs(3));
    node.kill();
    fs::remove_file(&jobs).expect("there");
    node.start();
    check_peak(&node.summary("cgroup-again.1"), 20 * MIB);
    second.remove();
    check_peak(&node.summary("cgroup-again"), 30 * MIB);
}
