//! `cargo xtask overhead`: measures what the kernel programs cost, for `docs/overhead.md`.

use std::process::Command;

use anyhow::Result;

use crate::command::{cargo, run as run_command, target_dir};

/// Measure what the kernel programs cost (as root)
#[derive(clap::Args)]
pub struct Args {
    /// Given to the benchmark; --help lists what it takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    benchmark: Vec<String>,
}

/// Builds and runs the benchmark.
pub fn run(args: &Args) -> Result<()> {
    let packages = ["--package=swbpf", "--package=swbpf-tests"];
    run_command(
        cargo()
            .args(["build", "--quiet", "--release", "--bins"])
            .args(packages),
    )?;
    run_command(Command::new(target_dir().join("release/overhead")).args(&args.benchmark))
}
