//! What measuring cost, and what was lost.

use serde::{Deserialize, Serialize};

use super::{Fold, Unknown};
use crate::snapshot::{Loss, Overhead};

/// Sums over the calibration windows, in which the kernel's statistics of programs are on.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Calibration {
    /// Time in the programs.
    pub run_time_ns: u64,
    /// Runs of the programs.
    pub run_count: u64,
    /// Length of the windows.
    pub window_ns: u64,
}

impl Calibration {
    /// Adds one window.
    pub fn add(&mut self, other: Self) {
        self.run_time_ns += other.run_time_ns;
        self.run_count += other.run_count;
        self.window_ns += other.window_ns;
    }

    /// Together with `agent_ns` of CPU time of sw-bpf itself in `wall_seconds`, where that was for this target alone.
    pub fn told(&self, agent_ns: Option<u64>, wall_seconds: f64) -> Overhead {
        let known = (self.window_ns > 0).then_some(self.window_ns as f64);
        Overhead {
            agent_cpu_percent: agent_ns
                .filter(|_| wall_seconds > 0.0)
                .map(|ns| ns as f64 / wall_seconds / 1e7),
            ns_per_event: (self.run_count > 0).then(|| self.run_time_ns as f64 / self.run_count as f64),
            programs_cpu_percent: known.map(|window| self.run_time_ns as f64 / window * 100.0),
            calibrated_seconds: self.window_ns as f64 / 1e9,
        }
    }
}

impl Fold {
    /// What was lost since the begin.
    pub(super) fn loss(&self) -> Option<Loss> {
        self.last.kernel.as_ref()?;
        let (first, now) = (self.first.losses(), self.last.losses());
        let told = |misses: u64| (!now.is_untold).then_some(misses);
        Some(Loss {
            kernel_memory_misses: told(now.state_misses.saturating_sub(first.state_misses)),
            lru_misses: told(now.lruvec_misses.saturating_sub(first.lruvec_misses)),
            other_misses: now.other_misses.saturating_sub(first.other_misses),
            notices_dropped: now.notices_dropped.saturating_sub(first.notices_dropped),
            collisions: now.collisions.saturating_sub(first.collisions),
            unseen_switches: now.unseen_switches.saturating_sub(first.unseen_switches),
            without_row: now.without_slot.saturating_sub(first.without_slot),
            too_deep: now.too_deep.saturating_sub(first.too_deep),
            rebased: self.base.rebased(),
        })
    }

    /// What measuring cost, and the reason of each number that is not known.
    pub(super) fn overhead(&self, seconds: f64, unknown: &mut Unknown) -> Overhead {
        let own_ns = self.last.own_cpu_ns.saturating_sub(self.first.own_cpu_ns);
        let is_one_of_many = self.subject.is_one_of_many;
        let told = self
            .calibration
            .told((!is_one_of_many).then_some(own_ns), seconds);
        Self::note_overhead(&told, is_one_of_many, unknown);
        told
    }
}
