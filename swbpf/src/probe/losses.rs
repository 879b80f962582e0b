//! What the programs had to give up.

use anyhow::Context;
use aya::maps::PerCpuValues;
use serde::{Deserialize, Serialize};
use swbpf_common::health::Health;

use super::{Probe, syscall::ProgramStats};
use crate::{
    error::Error,
    kernel::ladder::{Counts, PlannedProgram, Rung},
};

/// Tries to read both of two counters at one moment.
const TRIES: usize = 4;

/// What was lost since the programs were loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Skipped runs of the program on LRU pages.
    pub lruvec_misses: u64,
    /// Skipped runs of the program on kernel memory that its twin did not see either.
    pub state_misses: u64,
    /// Skipped runs of all others.
    pub other_misses: u64,
    /// Whether changes of anonymous and shared memory can be among what is skipped.
    pub lru_is_missable: bool,
    /// Whether there may be skipped runs that are counted nowhere.
    pub is_untold: bool,
    /// Whether the kernel did not call the programs at all for a time.
    pub is_deaf: bool,
    /// Notices that found no room.
    pub notices_dropped: u64,
    /// Compare-exchange loops given up.
    pub collisions: u64,
    /// Switches to or from a slot that were not told and found at the next event.
    pub unseen_switches: u64,
    /// Cgroups that found no free slot: they count for the one above them alone.
    pub without_slot: u64,
    /// Targets that found no free slot as they were born.
    pub without_target: u64,
    /// Look-ups of a cgroup so deep that it is not known which slot it belongs to.
    pub too_deep: u64,
}

/// The kernel's statistics of each program.
type Stats<'a> = Vec<(&'a PlannedProgram, ProgramStats)>;

impl Probe {
    /// Reads what was lost.
    pub fn losses(&self) -> Result<Losses, Error> {
        let mut losses = Losses {
            lru_is_missable: self.lru_is_missable(),
            is_deaf: self.is_deaf.get(),
            is_untold: self.rung() == Rung::Kprobe,
            ..Losses::default()
        };
        let (health, stats) = self.health_and_stats()?;
        for (program, stats) in stats {
            *match program.counts {
                Counts::Lruvec => &mut losses.lruvec_misses,
                Counts::State => &mut losses.state_misses,
                // It misses what the other one sees, or both miss it.
                Counts::NestedState => continue,
                Counts::Other => &mut losses.other_misses,
            } += stats.recursion_misses;
        }
        // One that is just being skipped may have been seen by the twin first.
        losses.state_misses = losses.state_misses.saturating_sub(rescued(&health));
        for health in health.iter() {
            losses.notices_dropped += health.notices_dropped;
            losses.collisions += health.collisions;
            losses.unseen_switches += health.unseen_switches;
            losses.without_slot += health.without_slot;
            losses.without_target += health.without_target;
            losses.too_deep += health.too_deep;
        }
        Ok(losses)
    }

    /// What each CPU counted, and the kernel's statistics of the programs. What the twin has seen is of no later moment than what was
    /// skipped, so that nothing lost is taken for seen; mostly it is of the same one.
    fn health_and_stats(&self) -> Result<(PerCpuValues<Health>, Stats<'_>), Error> {
        let read = || self.maps.health.get(&0, 0).context("read health");
        let mut health = read()?;
        for _ in 1..TRIES {
            let stats = self.program_stats()?;
            let after = read()?;
            if rescued(&health) == rescued(&after) {
                return Ok((after, stats));
            }
            health = after;
        }
        Ok((health, self.program_stats()?))
    }
}

/// Runs that the twin saw in place of one that was skipped.
fn rescued(health: &PerCpuValues<Health>) -> u64 {
    health.iter().map(|health| health.rescued).sum()
}
