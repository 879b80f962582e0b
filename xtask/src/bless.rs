//! `cargo xtask bless`: writes what of `docs/` is made from the code: the schema, the fields, the exit codes.

use anyhow::Result;

use crate::command::{cargo, run as run_command};

/// Rewrite what of docs/ is made from the code
#[derive(clap::Args)]
pub struct Args {}

/// Runs the test that compares the documents, told to write them.
pub fn run(_: &Args) -> Result<()> {
    run_command(
        cargo()
            .args(["test", "--quiet", "--package=swbpf", "--test=docs"])
            .env("SWBPF_BLESS", "1"),
    )?;
    println!("docs/ is as the code says");
    Ok(())
}
