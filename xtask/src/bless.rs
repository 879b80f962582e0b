//! `cargo xtask bless`: writes the documents that are made from the code: `docs/schema.json` and `docs/fields.md`.

use anyhow::Result;

use crate::command::{cargo, run as run_command};

/// Rewrite docs/schema.json and docs/fields.md from the code
#[derive(clap::Args)]
pub struct Args {}

/// Runs the test that compares the documents, told to write them.
pub fn run(_: &Args) -> Result<()> {
    run_command(
        cargo()
            .args(["test", "--quiet", "--package=swbpf", "--test=docs"])
            .env("SWBPF_BLESS", "1"),
    )?;
    println!("docs/schema.json and docs/fields.md are as the code says");
    Ok(())
}
