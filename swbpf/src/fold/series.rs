//! Needed memory over time, in buckets that keep their exact maxima however coarse they become.

use serde::{Deserialize, Serialize};

use super::Clock;
use crate::{probe::BucketReading, snapshot::Timeline};

/// Buckets kept at most: when there are more, two become one.
const MOST: usize = 240;

/// A timeline that grows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    bucket_ns: u64,
    buckets: Vec<BucketReading>,
}

impl Series {
    /// An empty one of buckets of `bucket_ns`.
    pub fn new(bucket_ns: u64) -> Self {
        Self {
            bucket_ns: bucket_ns.max(1),
            buckets: Vec::new(),
        }
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
        let finer = Self {
            bucket_ns: self.bucket_ns * 2,
            buckets: Vec::new(),
        };
        let buckets = std::mem::replace(self, finer).buckets;
        self.add(&buckets, begin_ns);
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
        let mut series = Series::new(10);
        series.add(&[bucket(100, 5, 1), bucket(110, 7, 5)], 100);
        series.add(&[bucket(110, 9, 2), bucket(130, 4, 4)], 100);
        let expected = [bucket(100, 5, 1), bucket(110, 9, 2), bucket(130, 4, 4)];
        assert_eq!(series.buckets, expected);
    }

    #[test]
    fn a_spike_keeps_its_height_however_coarse() {
        let mut series = Series::new(1);
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
}
