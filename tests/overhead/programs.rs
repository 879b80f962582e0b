//! What the kernel itself counts of each program, in a pass of its own: counting costs too.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use aya::sys::{Stats, enable_stats};
use swbpf::kernel::ladder::PlannedProgram;
use swbpf::probe::{Probe, ProgramStats};

use crate::attach::Kernel;
use crate::cgroups::Place;
use crate::interrupt::Interrupt;
use crate::load::Load;
use crate::spread::Spread;

/// Programs that run less often than this a unit do not weigh.
const LEAST_RUNS_PER_UNIT: f64 = 0.05;

/// What a program costs under a load.
pub struct ProgramCost {
    /// Which load.
    pub title: String,
    /// Of what the runs are told.
    pub unit: &'static str,
    /// Which program, by its hook.
    pub program: String,
    /// Runs a unit of the load.
    pub runs: Spread,
    /// Nanoseconds a run while the cgroup is untracked.
    pub untracked_ns: Spread,
    /// Nanoseconds a run while it is tracked.
    pub tracked_ns: Spread,
}

/// A program and what the kernel has counted of it so far.
type Counted<'a> = (&'a PlannedProgram, ProgramStats);

/// Runs a unit, and time a run, of one program in one pass.
struct Pass {
    runs: f64,
    ns: f64,
}

/// Runs a storm of each kind with the kernel's statistics on, `passes` times.
pub fn observe(
    loads: &[Load],
    place: &Place,
    passes: u32,
    kernel: &Kernel,
    interrupt: &Interrupt,
) -> Result<Vec<ProgramCost>> {
    let _statistics = enable_stats(Stats::RunTime).context("switch the kernel's statistics on")?;
    let mut costs = Vec::new();
    for load in first_of_each(loads, &['a', 'c']) {
        let mut seen: [BTreeMap<String, Vec<Pass>>; 2] = Default::default();
        for _ in 0..passes {
            for (tracked, seen) in seen.iter_mut().enumerate() {
                let probe = kernel.probe(place, tracked)?;
                for (program, pass) in observed(&probe, load, place, interrupt)? {
                    seen.entry(program).or_default().push(pass);
                }
            }
        }
        costs.extend(costs_of(load, &seen));
    }
    Ok(costs)
}

fn first_of_each<'a>(loads: &'a [Load], letters: &'a [char]) -> impl Iterator<Item = &'a Load> {
    letters
        .iter()
        .filter_map(|letter| loads.iter().find(|load| load.letter == *letter))
}

fn observed(probe: &Probe, load: &Load, place: &Place, interrupt: &Interrupt) -> Result<Vec<(String, Pass)>> {
    let before = probe.program_stats()?;
    let run = load.run(place, interrupt)?;
    let after = probe.program_stats()?;
    let pass = |((program, before), (_, after)): (Counted, Counted)| {
        let runs = (after.run_count - before.run_count) as f64;
        let pass = Pass {
            runs: runs / run.units as f64,
            ns: (after.run_time_ns - before.run_time_ns) as f64 / runs,
        };
        (program.name.to_owned(), pass)
    };
    Ok(before.into_iter().zip(after).map(pass).collect())
}

fn costs_of(load: &Load, [untracked, tracked]: &[BTreeMap<String, Vec<Pass>>; 2]) -> Vec<ProgramCost> {
    let both = tracked
        .iter()
        .filter_map(|(program, passes)| Some((program, untracked.get(program)?, passes)));
    let costs = both.map(|(program, untracked, tracked)| ProgramCost {
        title: load.title.clone(),
        unit: load.unit,
        program: program.clone(),
        runs: Spread::of(tracked.iter().map(|pass| pass.runs)),
        untracked_ns: Spread::of(untracked.iter().map(|pass| pass.ns)),
        tracked_ns: Spread::of(tracked.iter().map(|pass| pass.ns)),
    });
    costs
        .filter(|cost| cost.runs.median.value >= LEAST_RUNS_PER_UNIT)
        .collect()
}
