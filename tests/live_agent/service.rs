//! What an agent tells the service manager that has started it.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};
use std::{fs, io, str};

use rustix::process::{Pid, Signal, kill_process};
use support::measure::{MIB, wait_until};
use support::need_bpf;
use support::pace::scaled;

use super::node::{Node, check_peak};

/// Two looks, and what a slow machine adds to them.
const TWO_LOOKS: Duration = Duration::from_secs(3);

/// A service manager.
struct Manager {
    socket: UnixDatagram,
    told: Vec<String>,
}

impl Manager {
    /// With an agent that it has just started.
    fn start(node: &mut Node) -> Self {
        let path = node.dir("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        let limit = Some(Duration::from_millis(10));
        socket.set_read_timeout(limit).expect("a limit");
        let mut command = node.command();
        command.env("NOTIFY_SOCKET", &path);
        node.spawn_as(command.env("WATCHDOG_USEC", "60000000"));
        let told = Vec::new();
        Self { socket, told }
    }

    /// What the agent has told so far: the lines of all messages.
    fn told(&mut self) -> &[String] {
        let mut message = [0; 4096];
        loop {
            match self.socket.recv(&mut message) {
                Ok(length) => {
                    let text = str::from_utf8(&message[..length]).expect("text");
                    self.told.extend(text.lines().map(str::to_owned));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return &self.told,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn times(&mut self, line: &str) -> usize {
        self.told().iter().filter(|told| *told == line).count()
    }
}

/// It is ready once a job that is born is counted from its birth, which says more than that its process runs.
#[test]
fn ready_is_told_when_a_job_would_be_counted() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    let mut manager = Manager::start(&mut node);
    wait_until("READY", || manager.times("READY=1") == 1);
    let job = node.job("first");
    job.run(&["anon", "--size", "30M", "--hold-ms", "5"]);
    wait_until("a status", || manager.times("STATUS=Recording 1 jobs") == 1);
    job.remove();
    let summary = node.summary("cgroup-first");
    assert!(summary.coverage.from_start);
    check_peak(&summary, 30 * MIB);
    assert_eq!(node.end(), Some(0));
    assert_eq!(manager.times("STOPPING=1"), 1);
    assert_eq!(manager.times("READY=1"), 1, "{:?}", manager.told());
}

/// The watchdog hears of each round of the event loop, and of nothing while it does not turn.
#[test]
fn the_watchdog_hears_of_an_agent_that_works_alone() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    let mut manager = Manager::start(&mut node);
    wait_until("signs of life", || manager.times("WATCHDOG=1") >= 3);
    let pid = Pid::from_raw(node.pid().cast_signed()).expect("a process id");
    kill_process(pid, Signal::STOP).expect("stopped");
    let stat = format!("/proc/{}/stat", node.pid());
    wait_until("the stop", || {
        fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "))
    });
    let before = manager.times("WATCHDOG=1");
    let end = Instant::now() + scaled(TWO_LOOKS);
    while Instant::now() < end {
        assert_eq!(manager.times("WATCHDOG=1"), before);
    }
    kill_process(pid, Signal::CONT).expect("continued");
    wait_until("signs of life", || manager.times("WATCHDOG=1") > before);
}
