//! What the kernel programs cost a program that runs under them.
//!
//! In one run, alternating: no program, an empty program on the same hooks, ours with the cgroup untracked, ours with it
//! tracked. Each round visits every variant once, in another order each time, and compares it with that round's
//! visit without a program: what disturbs the machine for longer than a visit disturbs all of them.

mod aims;
mod attach;
mod case;
mod cgroups;
mod interrupt;
mod load;
mod outcome;
mod programs;
mod report;
mod spread;
mod storm;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use support::document::Document;
use support::machine;
use swbpf::job::cgroup::Hierarchies;

use attach::{Kernel, Variant};
use case::Case;
use cgroups::Cgroups;
use interrupt::Interrupt;
use load::Load;
use outcome::Outcome;
use programs::ProgramCost;

/// How many cgroups stand for many.
const MANY: usize = 10_000;

/// Measure what the kernel programs cost; as root, on a machine that does nothing else.
#[derive(Parser)]
#[command(name = "overhead")]
struct Args {
    /// How often each variant is visited
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..), default_value_t = 11)]
    rounds: u32,
    /// Two short rounds: shows that it works, measures little
    #[arg(long, conflicts_with = "rounds")]
    quick: bool,
    /// Also put the tables between the markers of this file
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// How long to measure.
struct Effort {
    rounds: u32,
    /// Of one run.
    span: Duration,
    /// With the kernel's statistics on.
    passes: u32,
}

impl Args {
    fn effort(&self) -> Effort {
        let (rounds, millis, passes) = if self.quick {
            (2, 40, 2)
        } else {
            (self.rounds, 120, 3)
        };
        Effort {
            rounds,
            span: Duration::from_millis(millis),
            passes,
        }
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("overhead: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let open = |path| Document::open(path, "overhead");
    let document = args.write.as_deref().map(open).transpose()?;
    let effort = args.effort();
    let interrupt = Interrupt::watch()?;
    let machine = machine::describe();
    let hierarchies = Hierarchies::detect()?;
    let kernel = Kernel::plan(&hierarchies)?;
    let mut cgroups = Cgroups::create(&hierarchies)?;
    let measured = measure(&effort, &kernel, &mut cgroups, &interrupt);
    let removed = cgroups.remove();
    let (outcomes, programs) = measured?;
    removed?;
    let report = report::markdown(&machine, effort.rounds, &outcomes, &programs);
    let mut out = std::io::stdout().lock();
    out.write_all(report.as_bytes()).context("standard output")?;
    document.map_or(Ok(()), |document| document.write(&report))
}

fn measure(
    effort: &Effort,
    kernel: &Kernel,
    cgroups: &mut Cgroups,
    interrupt: &Interrupt,
) -> Result<(Vec<Outcome>, Vec<ProgramCost>)> {
    let files = tempfile::tempdir().context("make a temporary directory")?;
    let one = cgroups.add(1, interrupt)?;
    let loads = Load::all(files.path(), effort.span, &one, interrupt)?;
    let usual = [
        Variant::None,
        Variant::Empty,
        Variant::Untracked,
        Variant::Tracked(1),
    ];
    let mut cases: Vec<Case> = loads.iter().map(|load| Case::new(load, &one, &usual)).collect();
    case::alternate(&mut cases, effort.rounds, kernel, interrupt)?;
    let mut outcomes: Vec<Outcome> = cases.iter().map(Case::outcome).collect();

    eprintln!("what the kernel counts");
    let programs = programs::observe(&loads, &one, effort.passes, kernel, interrupt)?;

    // Only now: ten thousand cgroups are not to weigh on what was measured above.
    let many = cgroups.add(MANY, interrupt)?;
    let load = Load::among_many(effort.span, &many, interrupt)?;
    let growing = [
        Variant::None,
        Variant::Empty,
        Variant::Tracked(1),
        Variant::Tracked(100),
        Variant::Tracked(MANY),
    ];
    let mut cases = [Case::new(&load, &many, &growing)];
    case::alternate(&mut cases, effort.rounds, kernel, interrupt)?;
    outcomes.extend(cases.iter().map(Case::outcome));
    Ok((outcomes, programs))
}
