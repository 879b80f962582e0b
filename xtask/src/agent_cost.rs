//! `cargo xtask agent-cost`: measures what the agent costs, for `docs/agent.md`.

use std::process::Command;

use anyhow::Result;

use crate::command::{cargo, run as run_command, target_dir};
use crate::test::{PACKAGE, STARTED};

/// Measure what the agent costs by the number of jobs (as root)
#[derive(clap::Args)]
pub struct Args {
    /// Given to the benchmark; --help lists what it takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    benchmark: Vec<String>,
}

/// Builds and runs the benchmark.
pub fn run(args: &Args) -> Result<()> {
    run_command(
        cargo()
            .args(["build", "--quiet", "--release", "--bins"])
            .args(STARTED)
            .args(["--package", PACKAGE]),
    )?;
    run_command(Command::new(target_dir().join("release/agent_cost")).args(&args.benchmark))
}
