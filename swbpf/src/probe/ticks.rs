//! The kernel's tick (jiffies), which the hot path reads for the price of a load, against its monotonic clock.

use std::cell::Cell;

use swbpf_common::{health::Clocks, level::BUCKET_MASK};

use crate::kernel::layout;

/// What is known of the tick. Both clocks go at the same rate; the tick is never ahead, so the least difference seen is
/// the nearest to the truth.
pub struct Ticks {
    tick_ns: u64,
    bucket_shift: u32,
    /// Monotonic time less ticks; may be negative, since jiffies do not begin at 0.
    offset_ns: Cell<Option<i128>>,
    last: Cell<u64>,
}

impl Ticks {
    /// Nothing is known but the length.
    pub fn new(bucket_shift: u32) -> Self {
        Self {
            tick_ns: layout::tick_ns(),
            bucket_shift,
            offset_ns: Cell::new(None),
            last: Cell::new(0),
        }
    }

    /// Takes one reading of both clocks.
    pub fn learn(&self, clocks: Clocks) {
        let offset = i128::from(clocks.ns) - i128::from(clocks.tick) * i128::from(self.tick_ns);
        let least = self.offset_ns.get().map_or(offset, |known| known.min(offset));
        self.offset_ns.set(Some(least));
        self.last.set(clocks.tick);
    }

    /// Begin of a tick on the monotonic clock.
    pub fn ns(&self, tick: u64) -> u64 {
        let ns = i128::from(tick) * i128::from(self.tick_ns) + self.offset_ns.get().unwrap_or(0);
        u64::try_from(ns).unwrap_or(0)
    }

    /// Length of a bucket.
    pub fn bucket_len_ns(&self) -> u64 {
        self.tick_ns << self.bucket_shift
    }

    /// Begin of a bucket on the monotonic clock. Bucket numbers wrap: it is the last one of that number.
    pub fn bucket_ns(&self, bucket: u64) -> u64 {
        self.ns(self.last_of(bucket) << self.bucket_shift)
    }

    /// End of a bucket on the monotonic clock.
    pub fn bucket_end_ns(&self, bucket: u64) -> u64 {
        self.ns((self.last_of(bucket) + 1) << self.bucket_shift)
    }

    /// The last bucket of this wrapped number.
    fn last_of(&self, bucket: u64) -> u64 {
        // One bucket may have begun since the clocks were read.
        let newest = (self.last.get() >> self.bucket_shift) + 1;
        newest.saturating_sub(newest.wrapping_sub(bucket) & BUCKET_MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_difference_counts() {
        let ticks = Ticks {
            tick_ns: 4_000_000,
            ..Ticks::new(1)
        };
        ticks.learn(Clocks {
            tick: 1_000,
            ns: 4_003_900_000,
        });
        ticks.learn(Clocks {
            tick: 1_001,
            ns: 4_004_100_000,
        });
        ticks.learn(Clocks {
            tick: 1_002,
            ns: 4_011_000_000,
        });
        assert_eq!(ticks.ns(1_000), 4_000_100_000);
        assert_eq!(ticks.bucket_ns(500), 4_000_100_000);
        assert_eq!(ticks.bucket_end_ns(500), 4_008_100_000);
    }

    #[test]
    fn wrapped_buckets_are_the_last_of_their_number() {
        let ticks = Ticks {
            tick_ns: 1,
            ..Ticks::new(0)
        };
        let wrapped = (1 << 30) + 7;
        ticks.learn(Clocks {
            tick: wrapped,
            ns: wrapped,
        });
        assert_eq!(ticks.bucket_ns(7), wrapped);
        assert_eq!(ticks.bucket_ns(BUCKET_MASK), (1 << 30) - 1);
    }
}
