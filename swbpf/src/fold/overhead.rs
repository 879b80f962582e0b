//! What measuring cost.

use serde::{Deserialize, Serialize};

use crate::snapshot::Overhead;

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
