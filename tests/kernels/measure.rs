//! The programs on this kernel: by which hooks they hear, what the verifier and the kernel count of them.

use anyhow::{Context as _, Result, ensure};
use aya::sys::{Stats, enable_stats};
use serde_json::{Value, json};
use support::measure::{Process, own_cgroup, plan_here};
use support::{machine, pace};
use swbpf::job::cgroup::{OwnCgroup, Version};
use swbpf::kernel::ladder::Counts;
use swbpf::probe::{Floor, Probe, ProgramStats, Room, Start};

/// Storms of faults: of their times a run the least counts. What disturbs one makes it longer, never shorter.
const STORMS: u32 = 5;
const STORM: [&str; 4] = ["fault-storm", "--threads=1", "--mib=16", "--rounds=4"];

/// What is told of this kernel. Times are those that the kernel itself counts, of both programs at the same events.
pub fn measure() -> Result<Value> {
    let plan = plan_here();
    let own = own_cgroup();
    let mut probe = Probe::load(&plan, Room::targets(1), None)?;
    probe.track(own.cgroup().id(), Start::default(), 0)?;
    let floor = Floor::load(&plan)?;
    let _statistics = enable_stats(Stats::RunTime).context("switch the kernel's statistics on")?;
    let (mut ours, mut empty) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..STORMS {
        let before = (memory_stats(&probe)?, floor.memory_stats()?);
        storm(&own)?;
        ours = ours.min(ns_a_run(before.0, memory_stats(&probe)?));
        empty = empty.min(ns_a_run(before.1, floor.memory_stats()?));
    }
    let programs = probe.program_stats()?;
    let programs = programs.iter().map(|(program, stats)| {
        json!({
            "name": program.name,
            "hook": program.hook.to_string(),
            "verified_instructions": stats.verified_instructions,
        })
    });
    Ok(json!({
        "kernel": machine::kernel(),
        "cgroup": match own.cgroup().version() {
            Version::V1 => 1,
            Version::V2 => 2,
        },
        "rung": probe.rung().name(),
        "is_emulated": pace::factor() > 1,
        "event_ns": ours,
        "empty_event_ns": empty,
        "programs": programs.collect::<Vec<_>>(),
    }))
}

/// Of the program that hears changes of pages.
fn memory_stats(probe: &Probe) -> Result<ProgramStats> {
    let stats = probe.program_stats()?;
    let found = stats.iter().find(|(program, _)| program.counts == Counts::Lruvec);
    Ok(found.context("no program hears changes of pages")?.1)
}

fn ns_a_run(before: ProgramStats, after: ProgramStats) -> f64 {
    let runs = after.run_count - before.run_count;
    (after.run_time_ns - before.run_time_ns) as f64 / runs as f64
}

fn storm(own: &OwnCgroup) -> Result<()> {
    let (status, _) = Process::workload_in(own, &STORM).finish();
    ensure!(status.success(), "the storm of faults: {status}");
    Ok(())
}
