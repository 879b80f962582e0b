//! Copies what the kernel holds of a slot, once, and stamps the moment.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use swbpf_common::{
    level::{self, BAND_TIME_MASK, BIAS, Band},
    running,
    slot::{PARTS, Slot},
};

use super::{Probe, SlotId, track::monotonic_ns};
use crate::{error::Error, kernel::layout};

/// Tries to read a slot between two changes of it before a reading that mixes both is taken.
const TRIES: usize = 16;

/// What a slot held at one moment. Levels and parts are pages, counted from the start values that it was tracked with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SlotReading {
    /// When: monotonic clock.
    pub read_ns: u64,
    /// Needed memory now.
    pub level: i64,
    /// Parts now.
    pub parts: [i64; PARTS],
    /// The highest level since it was tracked.
    pub peak: PeakReading,
    /// End of the bucket of time in which memory last changed: monotonic clock.
    pub last_change_ns: u64,
    /// Nanoseconds on each CPU, by its number; CPUs that it never was on are left out.
    pub busy_ns: BTreeMap<u32, u64>,
    /// Processes begun.
    pub started: u64,
    /// Threads begun.
    pub threads_started: u64,
    /// Processes ended.
    pub ended: u64,
    /// Tasks moved in.
    pub moved_in: u64,
    /// Processes killed for want of memory.
    pub oom_kills: u64,
}

impl SlotReading {
    /// Of a cgroup that is born at `ns`.
    pub fn at_birth(ns: u64) -> Self {
        Self {
            read_ns: ns,
            level: 0,
            parts: [0; PARTS],
            peak: PeakReading {
                level: 0,
                reached_ns: ns,
                parts: [0; PARTS],
            },
            last_change_ns: ns,
            busy_ns: BTreeMap::new(),
            started: 0,
            threads_started: 0,
            ended: 0,
            moved_in: 0,
            oom_kills: 0,
        }
    }
}

/// How a cgroup ended, and when on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Its last process left, and none has come since.
    Emptied(u64),
    /// It was removed.
    Removed(u64),
}

/// The highest level and what it was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeakReading {
    /// Pages.
    pub level: i64,
    /// When it was reached: monotonic clock, by the kernel's tick.
    pub reached_ns: u64,
    /// Parts then, in pages.
    pub parts: [i64; PARTS],
}

/// A quick look at a slot, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peek {
    /// Needed memory now.
    pub level: i64,
    /// Parts now.
    pub parts: [i64; PARTS],
    /// Number of the open bucket of time.
    bucket: u64,
    /// Highest level in it.
    high: i64,
    /// Lowest level in it.
    low: i64,
    /// When the level last rose, by the kernel's tick.
    rose_ns: u64,
}

impl Peek {
    /// How far the level was at most from where it is now, at any time since `before`, which was taken at `ns`; `None`
    /// where too long ago.
    pub fn spread_since(&self, before: &Self, ns: u64) -> Option<u64> {
        // A fall alone changes the level, and a rise would have been seen: two ticks, since the tick is known to one.
        if *self == *before && self.rose_ns + 2 * layout::tick_ns() < ns {
            return Some(0);
        }
        // What became of the bucket of `before` after it was taken is not known once another one is open.
        if self.bucket != before.bucket {
            return None;
        }
        Some((self.high.max(before.high)).abs_diff(self.low.min(before.low)))
    }
}

/// The highest and lowest level of one bucket of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketReading {
    /// Begin of the bucket: monotonic clock.
    pub from_ns: u64,
    /// Highest level in pages.
    pub high: i64,
    /// Lowest level in pages.
    pub low: i64,
}

/// Where the time went since the slot was tracked.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Histograms {
    /// Nanoseconds by band of the level ([`Band::edges`]); each sums to the elapsed time.
    pub levels_ns: Vec<u64>,
    /// Nanoseconds by number of threads on a CPU.
    pub concurrency_ns: BTreeMap<u32, u64>,
    /// Length of a bucket of the timeline.
    pub bucket_ns: u64,
    /// The last two seconds in buckets, oldest first; buckets without a change are left out.
    pub timeline: Vec<BucketReading>,
}

impl Probe {
    /// Reads one slot, with all time until now.
    pub fn read(&self, slot: SlotId) -> Result<SlotReading, Error> {
        self.look()?;
        self.read_after_look(slot)
    }

    /// The same, with all time until the CPUs were last looked at.
    pub fn read_after_look(&self, slot: SlotId) -> Result<SlotReading, Error> {
        let state = self.stable(slot)?;
        let read_ns = monotonic_ns();
        let busy = self.maps.busy.get(&slot.0, 0).context("read busy times")?;
        Ok(SlotReading {
            read_ns,
            level: unbiased(state.now) + self.pending_pages(slot)?,
            parts: state.parts,
            peak: self.peak(&state),
            last_change_ns: self.ticks.bucket_end_ns(level::bucket_of(state.high)),
            busy_ns: (0..)
                .zip(busy.iter().copied())
                .filter(|(_, ns)| *ns > 0)
                .collect(),
            started: state.started,
            threads_started: state.threads_started,
            ended: state.ended,
            moved_in: state.moved_in,
            oom_kills: state.oom_kills,
        })
    }

    /// The level and the parts alone, without looking at the CPUs.
    pub fn peek(&self, slot: SlotId) -> Result<Peek, Error> {
        let state = self.slot(slot)?;
        let pending = self.pending_pages(slot)?;
        Ok(Peek {
            level: unbiased(state.now) + pending,
            parts: state.parts,
            bucket: level::bucket_of(state.high),
            high: unbiased(level::level_of(state.high).max(state.now)) + pending,
            low: unbiased(level::level_of(state.low).min(state.now)) + pending,
            rose_ns: self.ticks.ns(state.rise_tick),
        })
    }

    /// Whether a slot's last process has left, or its cgroup was removed, and when.
    pub fn ended(&self, slot: SlotId) -> Result<Option<Ended>, Error> {
        let state = self.slot(slot)?;
        let removed = (state.gone_ns != 0).then_some(Ended::Removed(state.gone_ns));
        Ok(removed.or((state.emptied_ns != 0).then_some(Ended::Emptied(state.emptied_ns))))
    }

    /// Reads where a slot's time went until now.
    pub fn histograms(&self, slot: SlotId) -> Result<Histograms, Error> {
        Ok(Histograms {
            levels_ns: self.levels_ns(slot)?,
            concurrency_ns: self.concurrency_ns(slot)?,
            bucket_ns: self.ticks.bucket_len_ns(),
            timeline: self.timeline(slot)?,
        })
    }

    /// When every `memory.stat` was last brought up to date: monotonic clock; `None` where that was not seen yet.
    pub fn flushed_ns(&self) -> Result<Option<u64>, Error> {
        let ns = self
            .maps
            .flushed
            .get(&0, 0)
            .context("read the time of the last flush")?;
        Ok((ns != 0).then_some(ns))
    }

    /// Pages that the CPUs have not added yet.
    fn pending_pages(&self, slot: SlotId) -> Result<i64, Error> {
        if !self.is_batching {
            return Ok(0);
        }
        let pending = self.maps.pending.get(&slot.0, 0).context("read pages pending")?;
        Ok(pending.iter().fold(0_u64, |sum, pages| sum.wrapping_add(*pages)) as i64)
    }

    pub(super) fn slot(&self, slot: SlotId) -> Result<Slot, Error> {
        self.maps.slots.view.get(slot.0)
    }

    /// All that is counted of a slot, to be compared with itself: where it is the same, nothing has happened. `None` where CPUs keep
    /// some of it to themselves.
    pub fn whole_state(&self, slot: SlotId) -> Result<Option<Box<Slot>>, Error> {
        if self.is_batching {
            return Ok(None);
        }
        self.slot(slot).map(|state| Some(Box::new(state)))
    }

    /// A reading whose peak did not change while it was taken.
    fn stable(&self, slot: SlotId) -> Result<Slot, Error> {
        let mut before = self.slot(slot)?;
        for _ in 0..TRIES {
            let after = self.slot(slot)?;
            if (before.high, before.max) == (after.high, after.max) {
                return Ok(after);
            }
            before = after;
        }
        Ok(before)
    }

    /// The histogram with the open span of the current band added.
    fn levels_ns(&self, slot: SlotId) -> Result<Vec<u64>, Error> {
        let (word, levels) = self.between_changes(
            slot,
            |state| state.band,
            || self.maps.levels.get(&slot.0, 0).context("read the time by level"),
        )?;
        let mut levels_ns = levels.ns.to_vec();
        let span = monotonic_ns().wrapping_sub(word) & BAND_TIME_MASK;
        if let Some(open) = levels_ns.get_mut(Band::of_word(word).number()) {
            *open += span;
        }
        Ok(levels_ns)
    }

    /// Reads the time at each number of threads on a CPU, until now.
    pub fn concurrency_ns(&self, slot: SlotId) -> Result<BTreeMap<u32, u64>, Error> {
        let (word, concurrency) = self.between_changes(
            slot,
            |state| state.running,
            || {
                self.maps
                    .concurrency
                    .get(&slot.0, 0)
                    .context("read the time by threads")
            },
        )?;
        let mut concurrency_ns: BTreeMap<u32, u64> =
            (0..).zip(concurrency.ns).filter(|(_, ns)| *ns > 0).collect();
        *concurrency_ns.entry(running::count_of(word) as u32).or_default() +=
            running::span(word, monotonic_ns());
        Ok(concurrency_ns)
    }

    /// Reads a histogram while the word that belongs to it stays the same.
    fn between_changes<T>(
        &self,
        slot: SlotId,
        word: impl Fn(&Slot) -> u64,
        read: impl Fn() -> anyhow::Result<T>,
    ) -> Result<(u64, T), Error> {
        let mut before = word(&self.slot(slot)?);
        let mut value = read()?;
        for _ in 0..TRIES {
            let after = word(&self.slot(slot)?);
            if before == after {
                break;
            }
            before = after;
            value = read()?;
        }
        Ok((before, value))
    }

    /// The highest of the level now, of the open bucket and of all closed ones; of equal ones the earliest.
    fn peak(&self, state: &Slot) -> PeakReading {
        let high = level::level_of(state.high);
        let (level, reached_tick, parts) = if state.max >= high && state.max >= state.now {
            (state.max, state.max_peak.reached_tick, state.max_peak.parts)
        } else if high >= state.now {
            (high, state.high_peak.reached_tick, state.high_peak.parts)
        } else {
            (state.now, state.rise_tick, state.parts)
        };
        PeakReading {
            level: unbiased(level),
            reached_ns: self.ticks.ns(reached_tick),
            parts,
        }
    }

    /// The closed buckets, and the open one with the level now.
    fn timeline(&self, slot: SlotId) -> Result<Vec<BucketReading>, Error> {
        self.timeline_since(slot, 0)
    }

    /// The same, without those that had ended long before a moment of the monotonic clock: the tick is known to two of them.
    pub fn timeline_since(&self, slot: SlotId, since_ns: u64) -> Result<Vec<BucketReading>, Error> {
        let since_ns = since_ns.saturating_sub(3 * self.ticks.bucket_len_ns());
        let timeline = self.maps.timelines.view.get(slot.0)?;
        let state = self.slot(slot)?;
        let bucket = level::bucket_of(state.high);
        let highest = level::level_of(state.high).max(state.now);
        let lowest = level::level_of(state.low).min(state.now);
        let open = (level::pack(bucket, highest), level::pack(bucket, lowest));
        let closed = timeline.high.into_iter().zip(timeline.low);
        let closed = closed.filter(|(high, _)| *high != 0);
        let mut buckets: Vec<BucketReading> = closed
            .chain([open])
            .map(|(high, low)| BucketReading {
                from_ns: self.ticks.bucket_ns(level::bucket_of(high)),
                high: unbiased(level::level_of(high)),
                low: unbiased(level::level_of(low)),
            })
            .filter(|bucket| bucket.from_ns >= since_ns)
            .collect();
        buckets.sort_by_key(|bucket| bucket.from_ns);
        Ok(buckets)
    }
}

fn unbiased(level: u64) -> i64 {
    level as i64 - BIAS as i64
}
