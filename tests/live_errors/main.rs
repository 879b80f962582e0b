//! Failures: each has its exit code and one line that tells what to do next; none is a panic.

mod causes;
mod fuzz;
mod names;
mod rights;
mod usage;

use std::process::{Command, Output};

use support::command::{answer, failure, output, sw_bpf};
use support::measure::program;

/// The kernel programs for a short window, or a failure.
const KERNEL: [&str; 6] = ["--force-source", "kernel", "--once", "--json", "--window", "50ms"];
/// The same, with sampling where there are no kernel programs.
const ANY: [&str; 4] = ["--once", "--json", "--window", "50ms"];

/// Fails with this code and words where only the kernel programs will do, and else samples and gives them as the reason.
fn falls_back(command: impl Fn(&[&str]) -> Command, code: i32, words: &str) {
    let (told, line) = failure(&output(&mut command(&KERNEL)));
    assert_eq!(told, Some(code), "{line}");
    assert!(line.contains(words), "{line}");
    let answer = answer(&output(&mut command(&ANY)));
    assert_eq!(answer["source"], "sampled");
    assert_eq!(answer["probes"]["reason"], line.trim_start_matches("sw-bpf: "));
}

/// Runs a shell's script that may change what is mounted, in which `"$0"` is `sw-bpf` and `"$@"` are its arguments.
fn in_other_mounts(script: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-e", "-c", script]);
    command.arg(program("sw-bpf")).args(arguments);
    command
}

/// The code and the line of a failure.
fn fails(arguments: &[&str]) -> (Option<i32>, String) {
    failure(&output(&mut sw_bpf(arguments)))
}

fn has_panicked(output: &Output) -> bool {
    output.status.code().is_none_or(|code| code == 101)
        || String::from_utf8_lossy(&output.stderr).contains("panicked")
}
