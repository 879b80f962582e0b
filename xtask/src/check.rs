//! `cargo xtask check`: what must hold of the sources, without running a test.

mod length;
mod rooms;
mod tree;
mod words;

use anyhow::{Result, ensure};

use crate::build_ebpf;
use crate::command::{cargo, run as run_command};

/// Check format, lints, lengths, imports and the committed object
#[derive(clap::Args)]
pub struct Args {}

type Check = fn() -> Result<()>;

/// Runs every check, and fails if one did.
pub fn run(_: &Args) -> Result<()> {
    let checks: [(&str, Check); 6] = [
        ("format", format),
        ("lengths", length::check),
        ("imports", rooms::check),
        ("words", words::check),
        ("object", build_ebpf::check_fresh),
        ("lints", lints),
    ];
    let mut failed = Vec::new();
    for (name, check) in checks {
        match check() {
            Ok(()) => println!("{name}: ok"),
            Err(error) => {
                println!("{name}: {error:#}");
                failed.push(name);
            }
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn format() -> Result<()> {
    run_command(cargo().args(["fmt", "--all", "--", "--check", "--files-with-diff"]))
}

fn lints() -> Result<()> {
    let lint = [
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "--deny=warnings",
    ];
    run_command(cargo().args(lint))
}
