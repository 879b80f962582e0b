//! The files of the agent: where they cannot be written, and who may write to them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use support::command::{failure, output};
use support::measure::wait_until;
use support::need_bpf;
use swbpf::snapshot::Kind;

use super::node::{Node, check_peak};
use support::measure::MIB;

/// A disk that is full is told once, and the record is whole when there is room again.
#[test]
fn a_full_disk_is_told_and_got_over() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    let jobs = node.dir("jobs");
    fs::create_dir(&jobs).expect("a directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k,mode=711", "none"])
        .arg(&jobs)
        .status();
    assert!(mounted.expect("mount").success());
    node.start();
    let job = node.job("full");
    node.wait_for_line("cgroup-full");
    let ballast = jobs.join("ballast");
    fs::write(&ballast, vec![1_u8; 1 << 20]).expect_err("a full disk");
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    wait_until("a note", || node.told().contains("No space left"));
    fs::remove_file(&ballast).expect("room");
    job.remove();
    let summary = node.summary("cgroup-full");
    check_peak(&summary, 40 * MIB);
    assert!(summary.coverage.from_start);
    assert_eq!(node.told().matches("No space left").count(), 1, "{}", node.told());
    drop(node);
    let _ = Command::new("umount").arg("-l").arg(&jobs).status();
}

/// Nobody but the agent has a say in what is in a record.
#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    if !need_bpf() {
        return;
    }
    let node = Node::new();
    let jobs = node.dir("jobs");
    fs::create_dir(&jobs).expect("a directory");
    fs::set_permissions(&jobs, fs::Permissions::from_mode(0o777)).expect("changed");
    let (code, line) = failure(&output(&mut node.command()));
    assert_eq!(code, Some(1));
    assert!(line.contains("chmod 711"), "{line}");
}

/// A record that is there of a run before keeps its lines under a name of its own.
#[test]
fn a_name_that_comes_again_has_a_record_of_each() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    for size in ["10M", "30M"] {
        let job = node.job("again");
        job.run(&["anon", "--size", size, "--hold-ms", "5"]);
        job.remove();
        wait_until("the summary", || {
            let last = node.lines("cgroup-again").pop();
            last.is_some_and(|last| last.kind == Kind::Summary)
        });
    }
    check_peak(&node.summary("cgroup-again"), 30 * MIB);
    check_peak(&node.summary("cgroup-again.1"), 10 * MIB);
}
