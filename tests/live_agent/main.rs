//! `sw-bpf agent` on the cgroups below one that it watches: recorded from birth to end, whatever becomes of the agent.

mod abuse;
mod archive;
mod follow;
mod kills;
mod node;
mod records;
mod rights;
mod runs;
mod service;
mod socket;
mod survives;
mod unit;

use support::measure::{MIB, Process};
use support::need_bpf;

use node::{Node, check_peak};

/// Every cgroup has its record, with no action by whoever made it.
#[test]
fn a_cgroup_is_recorded_from_its_birth_to_its_end() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let job = node.job("one");
    job.run(&["anon", "--size", "50M", "--hold-ms", "5"]);
    job.run(&["anon", "--size", "20M", "--hold-ms", "5"]);
    let used_ns = job.used_ns();
    job.remove();
    let summary = node.summary("cgroup-one");
    assert!(summary.coverage.from_start);
    assert_eq!(summary.target.command, None);
    check_peak(&summary, 50 * MIB);
    assert_eq!(summary.processes.ended, Some(2));
    node::check_busy(&summary, used_ns);
}

/// One that was there before the agent is recorded too, and its record says from when on.
#[test]
fn what_was_there_before_is_recorded_from_then_on() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    let job = node.job("early");
    let mut held: Process = job.start(&["hold", "--size", "20M"]);
    held.ready();
    node.start();
    node.wait_for_line("cgroup-early");
    held.finish();
    job.remove();
    let summary = node.summary("cgroup-early");
    assert!(!summary.coverage.from_start);
    let bound = summary.memory.error_bound_bytes.expect("a bound");
    let peak = summary.memory.needed_peak_bytes.expect("a peak");
    assert!(peak + bound >= 20 * MIB, "{peak} +- {bound}");
}
