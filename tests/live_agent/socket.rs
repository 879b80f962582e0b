//! What the agent tells its clients, and whom.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde_json::{Value, json};
use support::command::{answer, output};
use support::measure::{MIB, Process, program};
use support::need_bpf;

use super::node::{Job, Node, check_peak};

pub const ROOT: u32 = 0;
pub const SOME_USER: u32 = 12_345;

/// A node whose directory everybody may go through.
pub fn open_node() -> Node {
    let node = Node::new();
    fs::set_permissions(node.dir(""), fs::Permissions::from_mode(0o755)).expect("changed");
    node
}

pub fn once(node: &Node, uid: u32, job: &Job, more: &[&str]) -> Value {
    let path = job.cgroup.path().to_str().expect("text");
    let arguments = [&["--once", "--json", "--cgroup", path], more].concat();
    answer(&output(&mut node.client(uid, &arguments)))
}

/// The answers to a request, as they are sent, until the agent has no more to say.
fn talk(node: &Node, request: &[u8]) -> Vec<Value> {
    let mut stream = connect(node);
    stream.write_all(request).expect("taken");
    let lines = BufReader::new(stream).lines();
    lines
        .map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"))
        .collect()
}

/// Does it as a user of this id, without a group of root's.
pub fn as_user<T: Send>(uid: u32, act: impl FnOnce() -> T + Send) -> T {
    let act = || {
        // These change the calling thread alone.
        let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
        set_thread_groups(&[]).expect("root");
        set_thread_res_gid(group, group, group).expect("root");
        set_thread_res_uid(user, user, user).expect("root");
        act()
    };
    std::thread::scope(|scope| scope.spawn(act).join().expect("no panic"))
}

pub fn connect(node: &Node) -> UnixStream {
    let stream = UnixStream::connect(node.dir("run/agent.sock")).expect("an agent");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a limit");
    stream
}

/// The last line is that of all until now: from the birth, at the peak, by the agent; and a window that is asked for is kept.
#[test]
fn a_job_is_told_at_once_or_over_a_window() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let job = node.job("told");
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    let spin: Process = job.start(&["spin", "--threads", "1", "--ms", "60000"]);
    node.wait_for_line("cgroup-told");
    let now = once(&node, ROOT, &job, &[]);
    assert_eq!(
        (&now["kind"], &now["source"], &now["probes"]["held_by"]),
        (&json!("once"), &json!("kernel"), &json!("agent"))
    );
    assert_eq!(now["coverage"]["from_start"], true);
    check_peak(&serde_json::from_value(now).expect("a snapshot"), 40 * MIB);
    let used_seconds = || job.used_ns().map(|ns| ns as f64 / 1e9);
    let (begin, used) = (Instant::now(), used_seconds());
    let window = once(&node, ROOT, &job, &["--window", "0.5"]);
    let (used, elapsed) = (used_seconds().zip(used), begin.elapsed().as_secs_f64());
    let seconds = window["window_seconds"].as_f64().expect("a length");
    let cores = window["cpu"]["busy_cores"].as_f64().expect("a rate");
    assert!((0.5..elapsed + 0.03).contains(&seconds), "{seconds} of {elapsed}");
    assert!(cores > 0.0 && cores < 1.02, "{cores}");
    if let Some((after, before)) = used {
        // What it used before and after the window, within the call.
        let (used, beside) = (after - before, elapsed - seconds);
        let busy = cores * seconds;
        assert!(
            busy <= used + 0.05 && busy >= used - beside.max(0.0) - 0.05,
            "{busy} s of {used} s, {beside} s of it beside"
        );
    }
    drop(spin);
}

/// Where there is no agent, or another source is asked for, the command measures by itself.
#[test]
fn without_an_agent_the_command_measures() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let job = node.job("alone");
    let held: Process = job.start(&["hold", "--size", "20M"]);
    node.wait_for_line("cgroup-alone");
    let forced = once(
        &node,
        ROOT,
        &job,
        &["--window", "0.1", "--force-source", "sampled"],
    );
    assert_eq!(forced["probes"]["held_by"], "nobody");
    node.kill();
    let alone = once(&node, ROOT, &job, &["--window", "0.1"]);
    assert_eq!(alone["probes"]["held_by"], "command");
    drop(held);
}

/// A job that is nobody's is told to root and to the group of administrators; to others it is as if it were not there.
#[test]
fn who_may_not_see_a_job_is_told_what_is_told_of_none() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start_as(node.command().args(["--admin-group", "adm"]));
    let job = node.job("secret");
    let held: Process = job.start(&["hold", "--size", "20M"]);
    node.wait_for_line("cgroup-secret");
    let as_root = once(&node, ROOT, &job, &[]);
    assert_eq!(as_root["probes"]["held_by"], "agent");
    let by_user = once(&node, SOME_USER, &job, &["--window", "0.1"]);
    assert_eq!(by_user["probes"]["held_by"], "nobody");
    let path = job.cgroup.path().to_str().expect("text");
    let mut admin = Command::new("setpriv");
    let id = SOME_USER.to_string();
    admin.args(["--reuid", &id, "--regid", &id, "--groups", "adm"]);
    admin
        .arg(program("sw-bpf"))
        .args(["--once", "--json", "--cgroup", path]);
    admin.env("SWBPF_SOCKET", node.dir("run/agent.sock"));
    assert_eq!(answer(&output(&mut admin))["probes"]["held_by"], "agent");

    let ask = |id: u64| format!("{{\"version\":1,\"ask\":\"once\",\"cgroup_id\":{id}}}\n");
    let refusals = [job.cgroup.id(), 1].map(|id| as_user(SOME_USER, || talk(&node, ask(id).as_bytes())));
    assert_eq!(refusals[0], refusals[1]);
    assert_eq!(refusals[0][0]["refused"]["reason"], "absent", "{refusals:?}");
    let seen = talk(&node, ask(job.cgroup.id()).as_bytes());
    assert_eq!(seen[0]["snapshot"]["target"]["cgroup_id"], job.cgroup.id());
    drop(held);
}

/// What is not understood is refused in words, with the version that is spoken.
#[test]
fn a_request_that_is_not_understood_is_refused() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    for (request, reason) in [
        (b"hello\n".as_slice(), "malformed"),
        (b"{\"version\":1,\"ask\":\"once\",\"job\":\"1 2\"}\n", "malformed"),
        (
            b"{\"version\":1,\"ask\":\"once\",\"job\":\"1\",\"window_seconds\":1e9}\n",
            "malformed",
        ),
        (
            b"{\"version\":1,\"ask\":\"once\",\"job\":\"1\",\"window_seconds\":-1}\n",
            "malformed",
        ),
        (b"{\"version\":7,\"ask\":\"once\",\"job\":\"1\"}\n", "version"),
        (b"{\"version\":1,\"ask\":\"follow\",\"job\":\"1\"}\n", "absent"),
        (&[b'x'; 10_000], "malformed"),
    ] {
        let [reply] = &talk(&node, request)[..] else {
            panic!("one answer to {request:?}");
        };
        assert_eq!(reply["version"], 1);
        assert_eq!(reply["refused"]["reason"], reason, "{reply}");
        let message = reply["refused"]["message"].as_str().expect("words");
        assert!(!message.is_empty());
    }
}

/// A limit that is set, or changed, when the job is there is told from then on.
#[test]
fn a_limit_that_comes_later_is_told() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let job = node.job("limited");
    node.wait_for_line("cgroup-limited");
    let dir = job.cgroup.path();
    let file = ["memory.max", "memory.limit_in_bytes"].map(|name| dir.join(name));
    let file = file.iter().find(|file| file.exists()).expect("a limit");
    for mib in [300, 200] {
        fs::write(file, (mib * MIB).to_string()).expect("a limit");
        let told = once(&node, ROOT, &job, &["--window", "0.05"]);
        assert_eq!(told["memory"]["limit_bytes"], mib * MIB);
    }
}
