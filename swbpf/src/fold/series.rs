//! Needed memory over time, in buckets that keep their exact maxima however coarse they become.

use serde::{Deserialize, Serialize};
use swbpf_common::slot::CELLS;

use super::Clock;
use crate::{
    probe::BucketReading,
    snapshot::{Gap, Timeline},
};

/// Buckets kept at most: when there are more, two become one.
const MOST: usize = 240;
/// Gaps kept at most: when there are more, the last two become one.
const MOST_GAPS: usize = 60;
/// Buckets that the kernel keeps for sure when the newest is written.
const KEPT: u64 = CELLS as u64 - 4;

/// A timeline that grows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    bucket_ns: u64,
    buckets: Vec<BucketReading>,
    /// How long the kernel keeps a bucket, at least.
    kept_ns: u64,
    /// Until when all buckets have been read.
    read_ns: u64,
    /// Spans whose buckets were gone before they were read.
    gaps: Vec<(u64, u64)>,
}

impl Series {
    /// An empty one of buckets of `bucket_ns`, from `begin_ns` on.
    pub fn new(bucket_ns: u64, begin_ns: u64) -> Self {
        Self {
            bucket_ns: bucket_ns.max(1),
            buckets: Vec::new(),
            kept_ns: KEPT * bucket_ns,
            read_ns: begin_ns,
            gaps: Vec::new(),
        }
    }

    /// What the kernel keeps at `read_ns` was read; the level had last changed in the bucket that ends at `changed_ns`. Each bucket
    /// in which it changes takes the place of one that is so much older.
    pub fn is_read(&mut self, read_ns: u64, changed_ns: u64) {
        let gone_ns = changed_ns.min(read_ns).saturating_sub(self.kept_ns);
        if gone_ns > self.read_ns {
            let is_full = self.gaps.len() >= MOST_GAPS;
            match self.gaps.last_mut() {
                Some(last) if is_full => last.1 = gone_ns,
                _ => self.gaps.push((self.read_ns, gone_ns)),
            }
        }
        self.read_ns = self.read_ns.max(read_ns);
    }

    /// Adds buckets, oldest first. One that was still open when it was last read is the same bucket grown.
    pub fn add(&mut self, buckets: &[BucketReading], begin_ns: u64) {
        for bucket in buckets {
            let number = bucket.from_ns.saturating_sub(begin_ns) / self.bucket_ns;
            let from_ns = begin_ns + number * self.bucket_ns;
            match self.buckets.last_mut().filter(|last| last.from_ns >= from_ns) {
                // The clock of the kernel's tick is known a little better by now.
                Some(last) if from_ns + self.bucket_ns <= last.from_ns => {}
                Some(last) => join(last, bucket),
                None => self.buckets.push(BucketReading { from_ns, ..*bucket }),
            }
        }
        while self.buckets.len() > MOST {
            self.coarsen(begin_ns);
        }
    }

    fn coarsen(&mut self, begin_ns: u64) {
        self.bucket_ns *= 2;
        let finer = std::mem::take(&mut self.buckets);
        self.add(&finer, begin_ns);
    }

    /// The buckets that begin at `from_ns` or later.
    pub fn told(&self, begin: Clock, from_ns: u64, to_bytes: impl Fn(i64) -> u64) -> Timeline {
        let told: Vec<&BucketReading> = self
            .buckets
            .iter()
            .filter(|bucket| bucket.from_ns >= from_ns)
            .collect();
        Timeline {
            bucket_seconds: self.bucket_ns as f64 / 1e9,
            at_seconds: told
                .iter()
                .map(|bucket| begin.seconds_to(bucket.from_ns))
                .collect(),
            max_bytes: told.iter().map(|bucket| to_bytes(bucket.high)).collect(),
            min_bytes: told.iter().map(|bucket| to_bytes(bucket.low)).collect(),
            gaps: { self.gaps.iter() }
                .filter(|(_, to)| *to >= from_ns)
                .map(|(from, to)| Gap {
                    from_seconds: begin.seconds_to(*from),
                    to_seconds: begin.seconds_to(*to),
                })
                .collect(),
        }
    }
}

fn join(last: &mut BucketReading, more: &BucketReading) {
    last.high = last.high.max(more.high);
    last.low = last.low.min(more.low);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(from_ns: u64, high: i64, low: i64) -> BucketReading {
        BucketReading { from_ns, high, low }
    }

    #[test]
    fn a_bucket_read_twice_is_one() {
        let mut series = Series::new(10, 100);
        series.add(&[bucket(100, 5, 1), bucket(110, 7, 5)], 100);
        series.add(&[bucket(110, 9, 2), bucket(130, 4, 4)], 100);
        let expected = [bucket(100, 5, 1), bucket(110, 9, 2), bucket(130, 4, 4)];
        assert_eq!(series.buckets, expected);
    }

    #[test]
    fn a_spike_keeps_its_height_however_coarse() {
        let mut series = Series::new(1, 0);
        for from_ns in 0..10_000 {
            let high = if from_ns == 7_777 { 1_000 } else { 1 };
            series.add(&[bucket(from_ns, high, 0)], 0);
        }
        assert!(series.buckets.len() <= MOST);
        let spikes: Vec<_> = series
            .buckets
            .iter()
            .filter(|bucket| bucket.high == 1_000)
            .collect();
        assert_eq!(spikes.len(), 1);
        assert!((spikes[0].from_ns..spikes[0].from_ns + series.bucket_ns).contains(&7_777));
    }

    #[test]
    fn buckets_that_were_gone_before_they_were_read_are_a_gap() {
        let kept = KEPT * 10;
        let mut series = Series::new(10, 1_000);
        series.is_read(1_000 + kept, 1_000 + kept);
        // Nothing changed for long: nothing was overwritten.
        series.is_read(100_000, 1_000 + kept);
        assert_eq!(series.gaps, []);
        // The last change was long before this reading, and overwrote nothing that was not read.
        series.is_read(200_000, 100_000 + kept);
        assert_eq!(series.gaps, []);
        series.is_read(300_000, 300_008);
        assert_eq!(series.gaps, [(200_000, 300_000 - kept)]);
        let told = |from_ns| series.told(Clock::now().at(1_000), from_ns, |_| 0).gaps;
        assert_eq!(told(300_001 - kept), []);
        let gap = Gap {
            from_seconds: 199_000.0 / 1e9,
            to_seconds: (299_000 - kept) as f64 / 1e9,
        };
        assert_eq!(told(250_000), [gap]);
    }

    #[test]
    fn gaps_are_bounded_and_none_is_lost() {
        let mut series = Series::new(1, 0);
        for moment in (1..=100).map(|number| number * 10_000) {
            series.is_read(moment, moment);
        }
        assert_eq!(series.gaps.len(), MOST_GAPS);
        assert_eq!(series.gaps.last().map(|gap| gap.1), Some(1_000_000 - KEPT));
    }
}
