//! `sw-bpf attach` and `--once` on what runs already.

mod ends;
mod job;
mod jq;
mod kills;
mod lines;
mod lost;
mod once;
mod tree;
mod unprivileged;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use support::command::sw_bpf;
use support::measure::{Process, own_cgroup};
use swbpf::job::cgroup::{Cgroup, OwnCgroup};

/// A cgroup with a workload that holds 20 MiB until it is let go.
fn held() -> (OwnCgroup, Process) {
    let own = own_cgroup();
    let mut process = Process::workload_in(&own, &["hold", "--size", "20M"]);
    process.ready();
    (own, process)
}

/// `sw-bpf attach` on a cgroup, and its output.
fn attach(cgroup: &Cgroup) -> (Child, BufReader<ChildStdout>) {
    let mut command = sw_bpf(&["attach", "--cgroup"]);
    command.arg(cgroup.path()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("sw-bpf starts");
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    (child, output)
}

fn next_line(output: &mut impl std::io::BufRead) -> String {
    let mut line = String::new();
    output.read_line(&mut line).expect("text");
    line
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a process id");
    kill_process(pid, signal).expect("a live process");
}

/// Lines until the end.
fn rest(output: BufReader<ChildStdout>) -> Vec<String> {
    output.lines().map(|line| line.expect("text")).collect()
}
