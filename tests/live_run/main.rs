//! `sw-bpf run`: a command runs in it as it runs without, and its record tells what it did.

mod cgroups;
mod exit;
mod hostile;
mod oom;
mod record;
mod signals;
mod stdio;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::command::{output, record, sw_bpf};
use tempfile::TempDir;

/// `sw-bpf run` of a shell's script, which has the arguments as `$0`, `$1` and so on.
fn run_script(script: &str, arguments: &[&OsStr]) -> Command {
    let mut command = sw_bpf(&["run", "--", "sh", "-c", script]);
    command.args(arguments);
    command
}

/// Runs a command with these options, and gives what came out of it with the lines of its record.
fn recorded(options: &[&str], command: &[&OsStr]) -> (Output, Vec<Value>) {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("record");
    let mut run = recording(&path, options, command);
    let output = output(&mut run);
    (output, record(&path))
}

fn recording(path: &Path, options: &[&str], command: &[&OsStr]) -> Command {
    let mut run = sw_bpf(&["run"]);
    run.args(options).arg("--json").arg(path).arg("--").args(command);
    run
}
