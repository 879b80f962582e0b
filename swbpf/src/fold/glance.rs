//! A look at what the programs hold of the target alone: between two lines of a record there are very many.

use super::{Fold, Reading, cpu, memory::page_bytes};
use crate::probe::{BucketReading, Losses, SlotReading};

/// Longest window of the busiest second. Looks are a second apart; where there was no reader for a time, or it was late, the mean
/// until it looked again is that of no second.
const LONGEST_WINDOW_NS: u64 = 2_000_000_000;

/// What was seen.
#[derive(Debug, Clone)]
pub struct Glance {
    /// Its slot.
    pub slot: SlotReading,
    /// The buckets of time since the last look at least; none where nothing has changed.
    pub timeline: Vec<BucketReading>,
    /// What was lost since the programs were loaded.
    pub losses: Losses,
}

impl Fold {
    /// Takes it as a sampler of one look a second does too. Files, processes and where the time went stay as they were last read.
    pub fn glance(&mut self, glance: Glance) {
        let losses = self.last.losses();
        let levels_ns = self.last.take_times();
        if let Some(looked) = self.looked.take() {
            self.previous = looked;
        } else if self.files_are_same {
            std::mem::swap(&mut self.previous, &mut self.last);
        } else {
            self.previous = self.last.clone();
            self.files_are_same = true;
        }
        if let Some(series) = &mut self.series {
            series.add(&glance.timeline, self.begin.ns());
            series.is_read(glance.slot.read_ns, glance.slot.last_change_ns);
        }
        self.last.ns = glance.slot.read_ns;
        if let Some(kernel) = &mut self.last.kernel {
            kernel.slot = glance.slot;
            kernel.histograms.levels_ns = levels_ns;
            kernel.histograms.timeline = glance.timeline;
            kernel.losses = glance.losses;
            kernel.after_files = None;
            kernel.is_flushed = false;
        }
        self.see(self.last.ns);
        self.readings += 1;
        self.learn(losses);
        self.count_look();
    }

    /// Takes a reading that a sampler of one look a second takes too.
    pub fn look(&mut self, reading: Reading) {
        self.add(reading);
        if let Some(looked) = self.looked.take() {
            self.previous = looked;
        }
        self.count_look();
    }

    fn count_look(&mut self) {
        self.looks += 1;
        let pages = match &self.last.kernel {
            Some(kernel) => Some(kernel.slot.level),
            None => self
                .last
                .memory
                .needed()
                .map(|bytes| (bytes / page_bytes()) as i64),
        };
        if let Some(pages) = pages {
            self.each_second.look(self.looks, pages);
            self.each_30_s.look(self.looks, pages);
        }
        let window_ns = self.last.ns.saturating_sub(self.previous.ns);
        let cores = cpu::busy_ns(&self.previous, &self.last).and_then(|busy| cores(busy, window_ns));
        self.cores_peak = cores.into_iter().chain(self.cores_peak).reduce(f64::max);
    }
}

/// Busy cores between two looks; `None` where they are not about a second apart.
fn cores(busy_ns: u64, window_ns: u64) -> Option<f64> {
    (1..=LONGEST_WINDOW_NS)
        .contains(&window_ns)
        .then(|| busy_ns as f64 / window_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_second_is_not_the_busiest() {
        assert_eq!(cores(1_500_000_000, 1_000_000_000), Some(1.5));
        assert_eq!(cores(2_000_000_000, LONGEST_WINDOW_NS), Some(1.0));
        // Nobody read for half a minute.
        assert_eq!(cores(30_000_000_000, 30_000_000_000), None);
        assert_eq!(cores(0, 0), None);
    }
}
