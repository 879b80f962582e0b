//! `cargo xtask overhead`, `agent-cost`, `sacct`: what is measured for the documents, by programs of the live tests' package.

use std::process::Command;

use anyhow::Result;

use crate::command::{cargo, run as run_command, target_dir};
use crate::test::{PACKAGE, STARTED};

/// What a program that measures is given.
#[derive(clap::Args)]
pub struct Args {
    /// Given to the program that measures; --help lists what it takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    measurement: Vec<String>,
}

/// Builds what is measured, and runs the program `name`.
pub fn run(name: &str, args: &Args) -> Result<()> {
    run_command(
        cargo()
            .args(["build", "--quiet", "--release", "--bins"])
            .args(STARTED)
            .args(["--package", PACKAGE]),
    )?;
    run_command(Command::new(target_dir().join("release").join(name)).args(&args.measurement))
}
