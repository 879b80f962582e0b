//! `cargo xtask sacct`: measures what Slurm's accounting misses, for `docs/sacct.md`.

use std::process::Command;

use anyhow::Result;

use crate::command::{cargo, run as run_command, target_dir};
use crate::test::{PACKAGE, STARTED};

/// Measure what Slurm's accounting misses (as root)
#[derive(clap::Args)]
pub struct Args {
    /// Given to the program that measures; --help lists what it takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    measurement: Vec<String>,
}

/// Builds and runs the measurement.
pub fn run(args: &Args) -> Result<()> {
    run_command(
        cargo()
            .args(["build", "--quiet", "--release", "--bins"])
            .args(STARTED)
            .args(["--package", PACKAGE]),
    )?;
    run_command(Command::new(target_dir().join("release/sacct_table")).args(&args.measurement))
}
