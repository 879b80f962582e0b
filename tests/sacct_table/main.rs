//! What Slurm's accounting says of jobs of known memory, beside what sw-bpf says of the same runs.
//!
//! The same jobs run in a Slurm of their own under each way of gathering, and under sw-bpf, which is there before the
//! job's first process: the Prolog makes the job's directory and waits until sw-bpf has it.

mod figures;
mod hooks;
mod jobs;
mod report;
mod setup;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use support::document::Document;
use support::{machine, need_bpf, need_slurm};

use jobs::JOBS;
use setup::SETUPS;

/// Measure what Slurm's accounting misses; as root, on a machine that does nothing else.
#[derive(Parser)]
#[command(name = "sacct_table")]
struct Args {
    /// How often each job runs under each setup
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 3)]
    rounds: u32,
    /// Also put the table between the markers of this file
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sacct_table: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let open = |path| Document::open(path, "sacct");
    let document = args.write.as_deref().map(open).transpose()?;
    ensure!(need_slurm() && need_bpf(), "this machine lacks what it takes");
    let machine = machine::describe();
    let mut rows = vec![Vec::new(); JOBS.len()];
    let mut version = String::new();
    for setup in &SETUPS {
        let cluster = setup.start()?;
        version = cluster.slurm.version();
        for round in 1..=args.rounds {
            eprintln!("{}, round {round} of {}", setup.name(), args.rounds);
            for (row, job) in rows.iter_mut().zip(&JOBS) {
                let figures = cluster.measure(job).with_context(|| job.title.to_owned())?;
                row.push((setup, figures));
            }
        }
    }
    let report = report::markdown(&machine, &version, args.rounds, &rows);
    let mut out = std::io::stdout().lock();
    out.write_all(report.as_bytes()).context("standard output")?;
    document.map_or(Ok(()), |document| document.write(&report))
}
