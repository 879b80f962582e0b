//! What sw-bpf does on a kernel, for the table of kernels: measured there, put into the table here.

mod measure;
mod table;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;

/// Measure what the kernel programs are on this kernel, and keep the table of kernels; as root.
#[derive(Parser)]
#[command(name = "kernels")]
enum Verb {
    /// Load the programs, and print what they are as JSON
    Measure,
    /// Put the row of a kernel into the tables of a file, in the place of the one it had
    Row {
        #[command(flatten)]
        row: Row,
        /// The file that the test of spikes gave
        #[arg(long)]
        spikes: PathBuf,
    },
    /// The same in the table that has a row for each test program
    EachRow {
        #[command(flatten)]
        row: Row,
        /// The test program
        #[arg(long)]
        program: String,
    },
}

/// What came out on a kernel.
#[derive(clap::Args)]
struct Row {
    /// The file that has the tables
    #[arg(long)]
    write: PathBuf,
    /// The file that `measure` gave
    #[arg(long)]
    measured: PathBuf,
    /// Tests that passed, that failed, and that could not run
    #[arg(long, num_args = 3)]
    tests: Vec<u64>,
}

fn main() -> ExitCode {
    match run(&Verb::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kernels: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: &Verb) -> Result<()> {
    match verb {
        Verb::Measure => {
            let measured = measure::measure()?;
            writeln!(std::io::stdout(), "{measured}").context("standard output")
        }
        Verb::Row { row, spikes } => table::put(row, spikes),
        Verb::EachRow { row, program } => table::put_each(row, program),
    }
}
