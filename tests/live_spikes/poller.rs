//! What those who look at `memory.stat` now and then see.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use swbpf::job::cgroup::Cgroup;
use swbpf::probe::monotonic_ns;
use swbpf::sampled::cgroupfs::MemoryFiles;

use crate::spike::Spike;

/// Tells the pollers to stop when it is dropped, also where a test fails.
pub struct StopAtEnd<'a>(pub &'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One that looks at fixed intervals.
pub struct Poller {
    every: Duration,
    /// When it looked, and the anonymous memory that it saw.
    polls: Vec<(u64, u64)>,
}

impl Poller {
    pub fn every(every: Duration) -> Self {
        Self {
            every,
            polls: Vec::new(),
        }
    }

    pub fn every_ms(&self) -> u128 {
        self.every.as_millis()
    }

    pub fn polls(&self) -> usize {
        self.polls.len()
    }

    /// Looks until it is to stop. Where a look comes late, the next one does not.
    pub fn watch(&mut self, cgroup: &Cgroup, stop: &AtomicBool) {
        let mut next = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let ns = monotonic_ns();
            if let Some(bytes) = MemoryFiles::read(cgroup).anon_bytes {
                self.polls.push((ns, bytes));
            }
            next += self.every;
            sleep(next.saturating_duration_since(Instant::now()));
        }
    }

    /// Whether a look during the spike saw at least 90 % of its height above the level between spikes.
    pub fn saw(&self, spike: &Spike, rest: u64) -> bool {
        let first = self.polls.partition_point(|(ns, _)| ns < spike.span_ns.start());
        self.polls[first..]
            .iter()
            .take_while(|(ns, _)| ns <= spike.span_ns.end())
            .any(|(_, bytes)| bytes.saturating_sub(rest) * 10 >= spike.bytes * 9)
    }
}
