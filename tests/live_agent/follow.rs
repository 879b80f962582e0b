//! Clients that follow a job, whatever becomes of the agent.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use support::command::{answer, output, record, told};
use support::measure::{MIB, wait_until};
use support::need_bpf;
use swbpf::snapshot::{Kind, Snapshot};

use super::node::{Job, Node, check_peak};
use super::socket::{ROOT, open_node};

/// `sw-bpf attach` by the agent, whose first line has come.
struct Follower {
    client: Child,
    dir: PathBuf,
    name: String,
}

impl Follower {
    fn start(node: &Node, job: &Job) -> Self {
        let name = job.cgroup.path().file_name().and_then(|name| name.to_str());
        let name = name.expect("text").to_owned();
        node.wait_for_line(&format!("cgroup-{name}"));
        let dir = node.dir("");
        let file = |what: &str| fs::File::create(dir.join(format!("{name}.{what}"))).expect("a file");
        let mut command = node.client(ROOT, &["attach", "--cgroup"]);
        command
            .arg(job.cgroup.path())
            .arg("--json")
            .arg(dir.join(format!("{name}.jsonl")))
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .stdin(Stdio::null());
        let client = command.spawn().expect("sw-bpf starts");
        let follower = Self { client, dir, name };
        wait_until("its first line", || follower.lines() > 0);
        follower
    }

    fn path(&self, what: &str) -> PathBuf {
        self.dir.join(format!("{}.{what}", self.name))
    }

    /// What it has said so far there.
    fn said(&self, what: &str) -> String {
        fs::read_to_string(self.path(what)).unwrap_or_default()
    }

    /// How many lines its record has.
    fn lines(&self) -> usize {
        self.said("jsonl").lines().count()
    }

    fn wait(&mut self) -> ExitStatus {
        self.client.wait().expect("an end")
    }

    /// The last line of its record, once it has ended well.
    fn last(&mut self) -> Snapshot {
        let status = self.wait();
        assert!(status.success(), "{status}: {}", self.said("stderr"));
        let last = record(&self.path("jsonl")).pop().expect("a line");
        serde_json::from_value(last).expect("a snapshot")
    }
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process id");
    kill_process(pid, signal).expect("a live process");
}

/// What answers one client at a socket, as an agent of another version would.
fn other_version(socket: &Path) -> JoinHandle<()> {
    let _ = fs::remove_file(socket);
    fs::create_dir_all(socket.parent().expect("a directory")).expect("a directory");
    let listener = UnixListener::bind(socket).expect("a socket");
    spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        let mut request = String::new();
        let mut stream = BufReader::new(stream);
        stream.read_line(&mut request).expect("a request");
        let answer = b"{\"version\":7,\"snapshot\":\"of another form\"}\n";
        // The client may have had enough.
        let _ = stream.get_mut().write_all(answer);
    })
}

/// Who follows a job has a line a second, and the same summary as the record.
#[test]
fn a_job_is_followed_to_its_end() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let job = node.job("followed");
    let mut follower = Follower::start(&node, &job);
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    sleep(Duration::from_millis(2500));
    job.remove();
    let last = follower.last();
    let text = follower.said("stdout");
    assert!(
        text.contains("Peak memory") && text.matches("busy cores").count() >= 3,
        "{text}"
    );
    check_peak(&last, 40 * MIB);
    assert_eq!(node.summary("cgroup-followed"), last);
}

/// An interrupted client has told all that was known until then; the job and its record go on.
#[test]
fn who_stops_following_has_the_summary_until_then() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let job = node.job("left");
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    let mut follower = Follower::start(&node, &job);
    signal(follower.client.id(), Signal::INT);
    let last = follower.last();
    check_peak(&last, 40 * MIB);
    assert!((last.window_seconds - last.coverage.seconds).abs() < 1e-6);
    let lines = node.lines("cgroup-left");
    assert!(lines.iter().all(|line| line.kind != Kind::Summary));
    job.remove();
    node.summary("cgroup-left");
}

/// Who follows a job goes on with the next agent.
#[test]
fn who_follows_a_job_outlives_the_agent() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let job = node.job("on");
    let mut follower = Follower::start(&node, &job);
    node.kill();
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    node.start();
    let before = follower.lines();
    wait_until("a line by the next agent", || follower.lines() > before);
    job.remove();
    check_peak(&follower.last(), 40 * MIB);
}

/// Where the agent hangs, its clients are told how old the numbers are, and that it is waited for; they go on when it does. Who wants
/// to end need not wait.
#[test]
fn numbers_of_an_agent_that_hangs_are_marked() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let job = node.job("hangs");
    let other = node.job("hangs-too");
    let (mut follower, mut hasty) = (Follower::start(&node, &job), Follower::start(&node, &other));
    assert_eq!(follower.said("stderr"), "");
    signal(node.pid(), Signal::STOP);
    for _ in 0..2 {
        signal(hasty.client.id(), Signal::INT);
        sleep(Duration::from_millis(500));
    }
    assert!(hasty.wait().success());
    assert_eq!(hasty.said("stderr"), "");
    let mut list = node.client(ROOT, &["list"]);
    let waiting = node.dir("list.stderr");
    list.stderr(fs::File::create(&waiting).expect("a file"));
    let mut list = list.stdout(Stdio::null()).spawn().expect("sw-bpf starts");
    wait_until("a note", || {
        follower.said("stderr").contains("has said nothing for")
    });
    let said = follower.said("stderr");
    assert!(said.contains("the line above is as of 20"), "{said}");
    wait_until("a note", || {
        fs::read_to_string(&waiting).is_ok_and(|said| said.contains("it is waited for"))
    });
    signal(node.pid(), Signal::CONT);
    assert!(list.wait().expect("an end").success());
    let before = follower.said("stdout").lines().count();
    wait_until("a line", || follower.said("stdout").lines().count() > before);
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    job.remove();
    check_peak(&follower.last(), 40 * MIB);
    other.remove();
    assert_eq!(follower.said("stderr"), said, "it is told once");
}

/// An agent that speaks another version is named so, with what to do, and the command measures by itself.
#[test]
fn an_agent_of_another_version_is_told() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    let job = node.job("other");
    let agent = other_version(&node.dir("run/agent.sock"));
    let path = job.cgroup.path().to_str().expect("text");
    let arguments = ["--once", "--json", "--window", "0.1", "--cgroup", path];
    let output = output(&mut node.client(ROOT, &arguments));
    agent.join().expect("a client");
    assert_eq!(answer(&output)["probes"]["held_by"], "command");
    let said = told(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    let words = [
        "version 7",
        "this sw-bpf version 1",
        "restart the agent",
        "done without it",
    ];
    assert!(words.iter().all(|words| said.contains(words)), "{said}");

    fs::remove_file(node.dir("run/agent.sock")).expect("a socket");
    node.start();
    let mut follower = Follower::start(&node, &job);
    node.kill();
    let agent = other_version(&node.dir("run/agent.sock"));
    assert_eq!(follower.wait().code(), Some(1));
    agent.join().expect("a client");
    let failure = follower.said("stderr");
    let failure = failure.lines().last().expect("a failure");
    assert!(
        failure.contains("replaced") && failure.contains("version 7"),
        "{failure}"
    );
}
