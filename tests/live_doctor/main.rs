//! `sw-bpf doctor`: each cause forced, and what it says of it.

mod gpus;
mod kernel;
mod scontrol;
mod tells;

use std::process::Command;

use support::doctor::Diagnosis;
use support::measure::program;

/// `sw-bpf doctor` with no Slurm in PATH: one that is installed here and not set up would take seconds to say so.
fn doctor(arguments: &[&str]) -> Command {
    let mut command = Command::new(program("sw-bpf"));
    command.arg("doctor").args(arguments).env("PATH", "/nonexistent");
    command
}

/// Runs a shell's script that may change what is mounted, in which `doctor` is `sw-bpf doctor --json`.
fn in_other_mounts(script: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("doctor() {{ PATH=/nonexistent exec \"$0\" doctor --json; }}; {script}");
    command.args(["--mount", "--propagation", "private", "sh", "-e", "-c", &script]);
    command.arg(program("sw-bpf"));
    command
}

/// What is said where the script has changed something.
fn diagnosed(script: &str) -> Diagnosis {
    Diagnosis::of(&mut in_other_mounts(script))
}
