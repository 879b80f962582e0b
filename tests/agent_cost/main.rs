//! What `sw-bpf agent` costs a host: CPU time, memory, and the length of its records, by the number of jobs.
//!
//! A tree of cgroups as Slurm makes it, with processes in it of which some change their memory, and an agent of its own. The same
//! agent without a job is the floor.

mod case;
mod node;
mod report;
mod tree;
mod usage;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;
use support::document::Document;
use support::machine;

use case::{CASES, Case, Measured};

/// Measure what the agent costs; as root, on a machine that does nothing else, with memory cgroups of version 1.
#[derive(Parser)]
#[command(name = "agent_cost")]
struct Args {
    /// Seconds of each of the two windows in which it is measured
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), default_value_t = 30)]
    window: u64,
    /// Seconds from the birth of the jobs to the second window: records have fewer lines by then
    #[arg(long, default_value_t = 300)]
    age: u64,
    /// Only with so many jobs, and with none
    #[arg(long)]
    jobs: Option<usize>,
    /// Also put the tables between the markers of this file
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("agent_cost: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let open = |path| Document::open(path, "agent-cost");
    let document = args.write.as_deref().map(open).transpose()?;
    let machine = machine::describe();
    let is_wanted = |case: &&Case| args.jobs.is_none_or(|jobs| case.jobs == 0 || case.jobs == jobs);
    let window = Duration::from_secs(args.window);
    let age = Duration::from_secs(args.age);
    let measured: Vec<Measured> = CASES
        .iter()
        .filter(is_wanted)
        .map(|case| case.measure(window, age))
        .collect::<Result<_>>()?;
    let report = report::markdown(&machine, window, age, &measured);
    let mut out = std::io::stdout().lock();
    out.write_all(report.as_bytes()).context("standard output")?;
    document.map_or(Ok(()), |document| document.write(&report))
}
