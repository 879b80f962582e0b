//! What a sampler that looks at fixed intervals would have seen: it looks for real, at the same counter.

use serde::{Deserialize, Serialize};

use crate::snapshot::SampledPeak;

/// One such sampler.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Looks {
    every: u64,
    samples: u64,
    highest: Option<i64>,
}

impl Looks {
    /// One that takes each `every`-th look, a look a second.
    pub fn every(every: u64) -> Self {
        Self {
            every,
            samples: 0,
            highest: None,
        }
    }

    /// Look number `number`, counted from 1, saw `pages`.
    pub fn look(&mut self, number: u64, pages: i64) {
        if number.is_multiple_of(self.every) {
            self.samples += 1;
            self.highest = Some(self.highest.map_or(pages, |highest| highest.max(pages)));
        }
    }

    /// Against the peak of `peak_bytes`.
    pub fn told(&self, peak_bytes: Option<u64>, to_bytes: impl Fn(i64) -> u64) -> SampledPeak {
        let seen = self.highest.map(to_bytes);
        let missed = seen.zip(peak_bytes).filter(|(_, peak)| *peak > 0);
        SampledPeak {
            interval_seconds: self.every as f64,
            samples: self.samples,
            peak_bytes: seen,
            missed_percent: missed.map(|(seen, peak)| (1.0 - seen as f64 / peak as f64) * 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_looks_count() {
        let mut looks = Looks::every(3);
        for (number, pages) in [(1, 90), (2, 80), (3, 10), (4, 70), (5, 60), (6, 25)] {
            looks.look(number, pages);
        }
        let told = looks.told(Some(100), |pages| pages as u64);
        assert_eq!((told.samples, told.peak_bytes), (2, Some(25)));
        assert_eq!(told.missed_percent, Some(75.0));
    }

    #[test]
    fn without_a_look_nothing_was_seen() {
        let told = Looks::every(30).told(Some(100), |pages| pages as u64);
        assert_eq!(
            (told.samples, told.peak_bytes, told.missed_percent),
            (0, None, None)
        );
    }
}
