//! What an agent may still do when its programs count, and that it is enough.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use support::measure::{MIB, wait_until};
use support::need_bpf;
use swbpf::snapshot::Snapshot;

use super::node::{Node, check_busy, check_peak};

/// What the documentation says that it keeps: its number in capability.h, and its name.
const KEPT: (u32, &str) = (2, "`CAP_DAC_READ_SEARCH`");
const CAP_SYS_ADMIN: u32 = 21;
const SOME_USER: u32 = 12_345;
const SETS: [&str; 5] = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];

/// Asserts that each thread of a process has these capabilities, can give none on, and gains none by what it executes.
fn check_rights(pid: u32, capabilities: u64) {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    for task in tasks {
        let path = task.expect("a thread").path().join("status");
        let status = fs::read_to_string(path).expect("its status");
        let value = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let value = line.and_then(|line| line.strip_prefix(":\t"));
            value.unwrap_or_else(|| panic!("{key}: {status}"))
        };
        let sets = SETS.map(|set| u64::from_str_radix(value(set), 16).expect("a set"));
        assert_eq!(sets, [0, capabilities, capabilities, 0, 0], "{SETS:?}: {status}");
        assert_eq!(value("NoNewPrivs"), "1");
    }
}

/// The process that switches the kernel's statistics on for an agent.
fn helper_of(agent: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{agent}/task/{agent}/children")).expect("children");
    let [helper] = children.split_ascii_whitespace().collect::<Vec<_>>()[..] else {
        panic!("one child, not {children:?}");
    };
    let name = fs::read_to_string(format!("/proc/{helper}/comm")).expect("a name");
    assert_eq!(name, "sw-bpf-timer\n");
    helper.parse().expect("a process id")
}

fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn last(node: &Node, record: &str) -> Option<Snapshot> {
    node.lines(record).pop()
}

#[test]
fn an_agent_without_rights_records_all() {
    if !need_bpf() {
        return;
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agent.md");
    let docs = fs::read_to_string(docs).expect("docs/agent.md");
    assert!(
        docs.contains(&format!("keeps {}", KEPT.1)),
        "the documentation names what is kept"
    );
    let mut node = Node::new();
    node.start();
    let pid = node.pid();
    check_rights(pid, 1 << KEPT.0);
    let helper = helper_of(pid);
    check_rights(helper, 1 << CAP_SYS_ADMIN);
    let descriptors = fs::read_dir(format!("/proc/{helper}/fd"))
        .expect("descriptors")
        .count();
    assert_eq!(
        descriptors, 1,
        "the helper has no file but the socket to the agent"
    );

    let job = node.job("bare");
    job.run(&["anon", "--size", "50M", "--hold-ms", "5"]);
    // The kernel programs are timed, which only the helper can begin.
    wait_until("a time of an event", || {
        last(&node, "cgroup-bare").is_some_and(|line| line.overhead.ns_per_event > Some(0.0))
    });
    node.kill();
    wait_until("the end of the helper", || !is_running(helper));
    job.run(&["anon", "--size", "70M", "--hold-ms", "5"]);
    node.start();
    check_rights(node.pid(), 1 << KEPT.0);
    let used_ns = job.used_ns();
    job.remove();
    let summary = node.summary("cgroup-bare");
    assert!(summary.coverage.from_start);
    check_peak(&summary, 70 * MIB);
    check_busy(&summary, used_ns);
    assert_eq!(summary.processes.ended, Some(2));
}

/// The user of a job may own cgroups of it, and shut them.
#[test]
fn what_a_user_shuts_is_seen() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let job = node.job("shut");
    let path = job.cgroup.path();
    let mut held = job.start(&["hold", "--size", "20M"]);
    held.ready();
    chown(path, Some(SOME_USER), Some(SOME_USER)).expect("given away");
    fs::set_permissions(path, fs::Permissions::from_mode(0o0)).expect("shut");
    // One line may have been under way. Now, not at the end: the cgroup may be removed before its files are read once more.
    let before = node.lines("cgroup-shut").len();
    let is_seen = |line: &Snapshot| {
        let memory = &line.memory;
        memory.rss_sum_bytes >= Some(20 * MIB) && memory.peak_bytes >= Some(20 * MIB)
    };
    wait_until("a look at its processes and files", || {
        node.lines("cgroup-shut").iter().skip(before + 1).any(is_seen)
    });
    held.finish();
    job.remove();
    check_peak(&node.summary("cgroup-shut"), 20 * MIB);
}
