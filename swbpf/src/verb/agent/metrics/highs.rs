//! The highest needed memory of a target since its readers last had it: from the buckets of time that the kernel keeps, each with
//! its exact maximum.
//!
//! A bucket is told whole. So that no instant falls between two windows, the buckets in which a window begins belong to the one
//! before it too.

use std::collections::VecDeque;

use swbpf_common::slot::CELLS;

use super::windows::Reader;
use crate::fold::KernelReading;

/// Parts of a window that are kept: of more, the two oldest become one.
const MOST_PARTS: usize = 16;
/// The kernel's tick can be late by less than a bucket.
const LATE_BUCKETS: u64 = 1;
/// Buckets that are there for sure when the newest is written.
const KEPT_BUCKETS: u64 = CELLS as u64 - 4;

/// One part of a window: its number, and the highest level in it, in pages of the slot; `None` where buckets of it were gone
/// before they were read.
type Part = (u64, Option<i64>);

/// Of one target, for each reader.
#[derive(Debug)]
pub struct Highs {
    seen_ns: u64,
    seen_level: i64,
    of: [VecDeque<Part>; Reader::COUNT],
}

impl Highs {
    /// Begins with the first reading, in these parts of the readers' windows; `is_new`: with all that its slot has seen before.
    pub fn begin(held: &KernelReading, is_new: bool, parts: [u64; Reader::COUNT]) -> Self {
        let level = held.slot.level;
        let high = if is_new {
            held.slot.peak.level.max(level)
        } else {
            level
        };
        Self {
            seen_ns: held.slot.read_ns,
            seen_level: level,
            of: parts.map(|part| VecDeque::from([(part, Some(high))])),
        }
    }

    /// Takes what the slot held at a reading, with the buckets since the reading before; one that is no newer tells nothing.
    pub fn take(&mut self, held: &KernelReading) {
        if held.slot.read_ns <= self.seen_ns {
            return;
        }
        let high = self.high_since(held);
        for parts in &mut self.of {
            if let Some((_, most)) = parts.back_mut() {
                *most = most.zip(high).map(|(most, high)| most.max(high));
            }
        }
        self.seen_ns = held.slot.read_ns;
        self.seen_level = held.slot.level;
    }

    fn high_since(&self, held: &KernelReading) -> Option<i64> {
        let (slot, histograms) = (&held.slot, &held.histograms);
        let bucket_ns = histograms.bucket_ns;
        let is_since = |end_ns: u64| end_ns + LATE_BUCKETS * bucket_ns > self.seen_ns;
        if is_since(slot.peak.reached_ns + bucket_ns) {
            return Some(slot.peak.level.max(self.seen_level));
        }
        let is_kept = slot.read_ns.saturating_sub(self.seen_ns) < KEPT_BUCKETS * bucket_ns;
        let buckets = histograms.timeline.iter();
        let highs = buckets
            .filter(|bucket| is_since(bucket.from_ns + bucket_ns))
            .map(|bucket| bucket.high);
        is_kept.then(|| highs.fold(slot.level.max(self.seen_level), i64::max))
    }

    /// Begins a part of a reader's window, and forgets those before `oldest`.
    pub fn begin_part(&mut self, reader: Reader, part: u64, oldest: u64) {
        let parts = &mut self.of[reader as usize];
        parts.push_back((part, Some(self.seen_level)));
        forget(parts, oldest);
        if parts.len() > MOST_PARTS
            && let Some((_, first)) = parts.pop_front()
            && let Some((_, second)) = parts.front_mut()
        {
            // Under the later number: a window may be longer, but loses no peak.
            *second = first.zip(*second).map(|(one, other)| one.max(other));
        }
    }

    /// The highest level since the begin of the part `oldest`.
    pub fn of(&mut self, reader: Reader, oldest: u64) -> Option<i64> {
        let parts = &mut self.of[reader as usize];
        forget(parts, oldest);
        let mut highs = parts.iter().map(|(_, high)| *high);
        let first = highs.next()??;
        highs.try_fold(first, |most, high| Some(most.max(high?)))
    }
}

/// Parts before `oldest` are in no window any more.
fn forget(parts: &mut VecDeque<Part>, oldest: u64) {
    while parts.len() > 1 && parts.front().is_some_and(|(number, _)| *number < oldest) {
        parts.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::probe::{BucketReading, Histograms, Losses, SlotReading};

    const BUCKET_NS: u64 = 8_000_000;
    const SECOND_NS: u64 = 1_000_000_000;

    /// A slot whose level took these values at these moments, as it is read at `ns`.
    fn read(changes: &[(u64, i64)], ns: u64) -> KernelReading {
        let mut slot = SlotReading::at_birth(ns);
        let mut timeline: Vec<BucketReading> = Vec::new();
        for (at, level) in changes.iter().copied().filter(|(at, _)| *at <= ns) {
            let from_ns = at / BUCKET_NS * BUCKET_NS;
            match timeline.last_mut().filter(|last| last.from_ns == from_ns) {
                Some(last) => last.high = last.high.max(level),
                None => timeline.push(BucketReading {
                    from_ns,
                    // A bucket begins with the level that it finds.
                    high: level.max(slot.level),
                    low: 0,
                }),
            }
            if level > slot.peak.level {
                (slot.peak.level, slot.peak.reached_ns) = (level, at);
            }
            slot.level = level;
        }
        let begin = timeline.len().saturating_sub(CELLS);
        KernelReading {
            slot,
            histograms: Histograms {
                bucket_ns: BUCKET_NS,
                timeline: timeline.split_off(begin),
                ..Histograms::default()
            },
            losses: Losses::default(),
            after_files: None,
            is_flushed: false,
        }
    }

    #[test]
    fn a_spike_is_told_once_to_each_reader() {
        let changes = [(0, 900), (100, 5), (SECOND_NS / 2, 700), (SECOND_NS / 2 + 100, 5)];
        let mut highs = Highs::begin(&read(&changes, SECOND_NS / 4), true, [0, 0]);
        assert_eq!(highs.of(Reader::Http, 0), Some(900));
        highs.begin_part(Reader::Http, 1, 0);
        highs.take(&read(&changes, SECOND_NS));
        assert_eq!(highs.of(Reader::Http, 0), Some(900), "nobody has read it yet");
        assert_eq!(highs.of(Reader::Http, 1), Some(700));
        assert_eq!(highs.of(Reader::File, 0), Some(900));
        highs.begin_part(Reader::Http, 2, 1);
        // The bucket of the spike stays open as long as nothing changes.
        for second in 2..9 {
            highs.take(&read(&changes, second * SECOND_NS));
        }
        assert_eq!(highs.of(Reader::Http, 2), Some(5));
    }

    #[test]
    fn what_was_gone_before_it_was_read_is_not_known() {
        let spike = [
            (0, 900),
            (10, 5),
            (4 * SECOND_NS, 700),
            (4 * SECOND_NS + 10, 5),
            (8 * SECOND_NS, 6),
        ];
        let mut highs = Highs::begin(&read(&spike, SECOND_NS), true, [0, 0]);
        highs.begin_part(Reader::Http, 1, 1);
        highs.take(&read(&spike, 9 * SECOND_NS));
        assert_eq!(
            (highs.of(Reader::Http, 1), highs.of(Reader::File, 0)),
            (None, None)
        );
        highs.begin_part(Reader::Http, 2, 2);
        highs.take(&read(&spike, 10 * SECOND_NS));
        assert_eq!(highs.of(Reader::Http, 2), Some(6));
        // Where the peak of all is in the gap, nothing in it was higher.
        let peak = [(0, 9), (10, 5), (4 * SECOND_NS, 700), (4 * SECOND_NS + 10, 5)];
        let mut highs = Highs::begin(&read(&peak, SECOND_NS), true, [0, 0]);
        highs.take(&read(&peak, 9 * SECOND_NS));
        assert_eq!(highs.of(Reader::Http, 0), Some(700));
    }

    #[test]
    fn a_reading_that_is_no_newer_tells_nothing() {
        let changes = [(0, 900), (SECOND_NS, 5)];
        let mut highs = Highs::begin(&read(&changes, SECOND_NS / 2), true, [0, 0]);
        highs.take(&read(&changes, 2 * SECOND_NS));
        highs.begin_part(Reader::Http, 1, 1);
        highs.take(&read(&changes, SECOND_NS / 2));
        assert_eq!(highs.of(Reader::Http, 1), Some(5));
    }

    #[test]
    fn readers_that_never_read_leave_a_bounded_rest() {
        let mut highs = Highs::begin(&read(&[(0, 900)], 10), true, [0, 0]);
        for part in 1..1_000 {
            highs.begin_part(Reader::Http, part, 0);
            assert!(highs.of[Reader::Http as usize].len() <= MOST_PARTS);
        }
        assert_eq!(highs.of(Reader::Http, 0), Some(900));
    }

    proptest! {
        /// However changes and readings fall, a window has all that was in it, and of what was before it two buckets at most.
        #[test]
        fn a_window_holds_its_highest_level(
            steps in prop::collection::vec((0..BUCKET_NS * 4, 0_i64..1000), 1..200),
            pauses in prop::collection::vec(1..SECOND_NS, 1..20),
        ) {
            let mut at = 0;
            let changes: Vec<(u64, i64)> = steps
                .into_iter()
                .map(|(pause, level)| {
                    at += pause;
                    (at, level)
                })
                .collect();
            let high = |from: u64, to: u64| {
                let before = changes.iter().rev().find(|(at, _)| *at <= from);
                let within = changes.iter().filter(|(at, _)| (from..=to).contains(at));
                within.chain(before).map(|(_, level)| *level).max().unwrap_or(0)
            };
            let mut now = 0;
            let mut highs = Highs::begin(&read(&changes, now), false, [0, 0]);
            for (part, pause) in (1..).zip(pauses) {
                let begin = now;
                now += pause;
                highs.take(&read(&changes, now));
                let told = highs.of(Reader::Http, part - 1).expect("no bucket is gone yet");
                prop_assert!(told >= high(begin, now));
                prop_assert!(told <= high(begin.saturating_sub(2 * BUCKET_NS), now));
                highs.begin_part(Reader::Http, part, part);
            }
        }
    }
}
