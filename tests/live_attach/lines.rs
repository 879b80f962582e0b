//! A line a second, and the summary.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::command::{output, record, sw_bpf, told};
use support::measure::program;
use support::need_bpf;
use tempfile::TempDir;

use super::{attach, held, next_line, rest, send};

/// Whether it is a line of a measurement under way, of 20 MiB.
fn is_progress(line: &str) -> bool {
    line.contains("needed   20.") && line.contains("peak   2") && line.contains("busy cores    0.")
}

#[test]
fn a_line_comes_each_second_and_a_signal_brings_the_summary() {
    if !need_bpf() {
        return;
    }
    let (own, mut process) = held();
    for signal in [Signal::INT, Signal::TERM] {
        let (mut child, mut output) = attach(own.cgroup());
        let first = next_line(&mut output);
        let begin = Instant::now();
        let second = next_line(&mut output);
        let pause = begin.elapsed();
        send(&child, signal);
        let summary = rest(output);
        assert!(child.wait().expect("an end").success());
        assert!(is_progress(&first) && is_progress(&second), "{first}{second}");
        assert!((500..1500).contains(&pause.as_millis()), "{pause:?}");
        assert!(
            summary.iter().any(|line| line.starts_with("Peak memory")),
            "{summary:#?}"
        );
        assert!(summary.iter().all(|line| line.len() <= 80), "{summary:#?}");
    }
    assert!(process.finish().0.success());
}

#[test]
fn a_reader_that_goes_away_is_success() {
    if !need_bpf() {
        return;
    }
    let (own, mut process) = held();
    let script = "{ \"$0\" attach --cgroup \"$1\"; echo \"exit $?\" >&2; } | head -n 1";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .arg(program("sw-bpf"))
        .arg(own.cgroup().path());
    let output = output(&mut shell);
    assert!(is_progress(&String::from_utf8_lossy(&output.stdout)));
    assert_eq!(told(&output), "exit 0\n");
    assert!(process.finish().0.success());
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    if !need_bpf() {
        return;
    }
    let (own, mut process) = held();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    let mut command = sw_bpf(&["attach", "--cgroup"]);
    let output = output(command.arg(own.cgroup().path()).stdout(full));
    assert_eq!(output.status.code(), Some(73), "{}", told(&output));
    assert!(process.finish().0.success());
}

#[test]
fn a_record_is_kept_beside_the_lines() {
    if !need_bpf() {
        return;
    }
    let (own, mut process) = held();
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("record");
    let mut command = sw_bpf(&["attach", "--json"]);
    command.arg(&path).arg("--cgroup").arg(own.cgroup().path());
    let mut child = command.stdout(Stdio::null()).spawn().expect("sw-bpf starts");
    std::thread::sleep(Duration::from_millis(2500));
    send(&child, Signal::TERM);
    assert!(child.wait().expect("an end").success());
    let lines = record(&path);
    // One at the begin, one at each of at most two looks, and the summary.
    assert!((2..=4).contains(&lines.len()), "{}", lines.len());
    let summary = lines.last().expect("a line");
    assert_eq!(summary["coverage"]["from_start"], false);
    assert_eq!(summary["target"]["kind"], "cgroup");
    assert!(process.finish().0.success());
}
