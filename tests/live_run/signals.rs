//! Signals that are sent to `sw-bpf` reach the command, once.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use support::command::sw_bpf;
use support::measure::program;
use support::need_bpf;

/// Counts a signal, and ends 0.3 s after the first one, with the count as its exit code.
fn counting(signal: &str) -> String {
    format!(
        "n=0; trap 'n=$((n+1))' {signal}; echo READY; \
         until [ $n -gt 0 ]; do sleep 0.02; done; \
         for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 0.02; done; exit $n"
    )
}

fn start(command: &mut Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line.trim_end(), "READY");
    (child, output)
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a process id");
    kill_process(pid, signal).expect("a live process");
}

#[test]
fn a_signal_reaches_the_command_once() {
    if !need_bpf() {
        return;
    }
    for (name, signal) in [
        ("TERM", Signal::TERM),
        ("INT", Signal::INT),
        ("HUP", Signal::HUP),
        ("QUIT", Signal::QUIT),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("ALRM", Signal::ALARM),
    ] {
        let (mut child, _) = start(&mut sw_bpf(&["run", "--", "sh", "-c", &counting(name)]));
        send(&child, signal);
        assert_eq!(child.wait().expect("an end").code(), Some(1), "{name}");
    }
}

#[test]
fn a_signal_that_the_command_does_not_expect_ends_it() {
    if !need_bpf() {
        return;
    }
    let (mut child, _) = start(&mut sw_bpf(&[
        "run",
        "--",
        "sh",
        "-c",
        "echo READY; exec sleep 60",
    ]));
    send(&child, Signal::TERM);
    assert_eq!(child.wait().expect("an end").code(), Some(128 + 15));
}

#[test]
fn the_key_of_a_terminal_is_not_doubled() {
    if !need_bpf() {
        return;
    }
    // `script` gives the command a terminal, whose driver sends the signal of the key to all of the group. Its shell makes
    // way: some would end by the signal themselves, whatever the command does.
    let line = format!(
        "exec '{}' run -- sh -c \"$COUNTING\"",
        program("sw-bpf").display()
    );
    let mut script = Command::new("script");
    script
        .args(["-qec", &line, "/dev/null"])
        .env("COUNTING", counting("INT"));
    let mut child = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script, of the package bsdutils");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line.trim_end(), "READY");
    let mut keys = child.stdin.take().expect("a pipe");
    keys.write_all(b"\x03").expect("a terminal");
    let mut told = String::new();
    output.read_to_string(&mut told).expect("text");
    assert_eq!(child.wait().expect("an end").code(), Some(1), "{told}");
    assert!(told.contains("exit 1 after"), "{told}");
}
