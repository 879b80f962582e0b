//! The exact maximum of each bucket of time, and of all of them.
//!
//! A level is a maximum only if the next change falls from it, so a rise needs none of this: who falls finds the maximum as
//! the level before. One word holds the bucket's number and its highest level; who replaces the word of an older bucket has
//! it in hand, and he alone: he puts it into the timeline and into the maximum of all. So an ordinary change costs one
//! addition, and no maximum can be lost however late a CPU or the reader is. The lowest level is kept likewise.

use aya_ebpf::helpers::bpf_jiffies64;
use swbpf_common::{
    level::{self, BUCKET_MASK, BUCKETS_LATE},
    notice,
    slot::{CELLS, PARTS, Peak, Slot},
};

use crate::{
    atomic,
    maps::{TIMELINES, count_collision, offset},
    notice::{Cause, tell},
    track::Tracked,
};

/// Tries of a compare-exchange before it is given up and counted.
const TRIES: u32 = 8;

/// The level went from `before` to `after`.
#[inline(always)]
pub fn follow(tracked: Tracked, before: u64, after: u64) {
    let slot = tracked.slot;
    // SAFETY: words of the slot; the verifier turns the call into the load of a counter.
    unsafe {
        let tick = bpf_jiffies64();
        let bucket = level::bucket(tick, offset!(bucket_shift));
        if level::bucket_of(atomic::load(&raw const (*slot).high)) != bucket {
            roll(tracked, before, bucket);
        }
        if after < before {
            if before > level::level_of(atomic::load(&raw const (*slot).high)) {
                raise_high(slot, before);
            }
        } else {
            atomic::store(&raw mut (*slot).rise_tick, tick);
            if before < level::level_of(atomic::load(&raw const (*slot).low)) {
                sink_low(slot, before);
            }
            if after > atomic::load(&raw const (*slot).tell_above) {
                tell_peak(tracked, after);
            }
        }
    }
}

/// The level is about to fall, and the parts with it.
#[inline(never)]
pub fn leave(tracked: Tracked, level: u64) {
    follow(tracked, level, level.wrapping_sub(1));
}

/// Closes the bucket of the words where `bucket` is a newer one. It ended with the level `before`, and so begins the new
/// one. A CPU whose clock reading is late writes under the newer bucket: its level counts all the same.
#[inline(never)]
fn roll(tracked: Tracked, before: u64, bucket: u64) {
    let slot = tracked.slot;
    for _ in 0..TRIES {
        // SAFETY: words of the slot and its timeline.
        unsafe {
            let high = atomic::load(&raw const (*slot).high);
            let ahead = bucket.wrapping_sub(level::bucket_of(high)) & BUCKET_MASK;
            if ahead == 0 || ahead > BUCKET_MASK - BUCKETS_LATE {
                return;
            }
            if !atomic::compare_exchange(&raw mut (*slot).high, high, level::pack(bucket, before)) {
                continue;
            }
            let mut closed = level::level_of(high);
            if before > closed {
                closed = before;
                capture(slot);
            }
            let low = atomic::load(&raw const (*slot).low);
            atomic::store(&raw mut (*slot).low, level::pack(bucket, before));
            let lowest = if before < level::level_of(low) {
                before
            } else {
                level::level_of(low)
            };
            keep(tracked, level::bucket_of(high), closed, lowest);
            return;
        }
    }
    count_collision();
}

/// Puts a closed bucket into the timeline, and its highest level into the maximum of all.
#[inline(always)]
fn keep(tracked: Tracked, bucket: u64, highest: u64, lowest: u64) {
    // SAFETY: words of the slot and its timeline.
    unsafe {
        if let Some(timeline) = TIMELINES.get_ptr_mut(tracked.number) {
            let cell = bucket as usize & (CELLS - 1);
            atomic::store(&raw mut (*timeline).high[cell], level::pack(bucket, highest));
            atomic::store(&raw mut (*timeline).low[cell], level::pack(bucket, lowest));
        }
        let slot = tracked.slot;
        for _ in 0..TRIES {
            let max = atomic::load(&raw const (*slot).max);
            if highest <= max {
                return;
            }
            if atomic::compare_exchange(&raw mut (*slot).max, max, highest) {
                let peak = &raw const (*slot).high_peak;
                let reached = atomic::load(&raw const (*peak).reached_tick);
                atomic::store(&raw mut (*slot).max_peak.reached_tick, reached);
                return copy_parts(&raw mut (*slot).max_peak.parts, &raw const (*peak).parts);
            }
        }
    }
    count_collision();
}

/// The level falls from one that is higher than all of its bucket.
#[inline(never)]
fn raise_high(slot: *mut Slot, level: u64) {
    for _ in 0..TRIES {
        // SAFETY: words of the slot.
        unsafe {
            let old = atomic::load(&raw const (*slot).high);
            if level <= level::level_of(old) {
                return;
            }
            if atomic::compare_exchange(
                &raw mut (*slot).high,
                old,
                level::pack(level::bucket_of(old), level),
            ) {
                return capture(slot);
            }
        }
    }
    count_collision();
}

/// The level rises from one that is lower than all of its bucket.
#[inline(never)]
fn sink_low(slot: *mut Slot, level: u64) {
    for _ in 0..TRIES {
        // SAFETY: words of the slot.
        unsafe {
            let old = atomic::load(&raw const (*slot).low);
            if level >= level::level_of(old)
                || atomic::compare_exchange(
                    &raw mut (*slot).low,
                    old,
                    level::pack(level::bucket_of(old), level),
                )
            {
                return;
            }
        }
    }
    count_collision();
}

/// Keeps the parts of a peak that is left: now they are still its own.
#[inline(always)]
fn capture(slot: *mut Slot) {
    // SAFETY: words of the slot.
    unsafe {
        let peak: *mut Peak = &raw mut (*slot).high_peak;
        atomic::store(
            &raw mut (*peak).reached_tick,
            atomic::load(&raw const (*slot).rise_tick),
        );
        copy_parts(&raw mut (*peak).parts, &raw const (*slot).parts);
    }
}

#[inline(always)]
unsafe fn copy_parts(to: *mut [i64; PARTS], from: *const [i64; PARTS]) {
    for part in 0..PARTS {
        // SAFETY: words of the slot.
        unsafe { (&raw mut (*to)[part]).write_volatile((&raw const (*from)[part]).read_volatile()) };
    }
}

/// Tells a new peak, and the next one not before it is 1 % (and 1 MiB) higher.
#[inline(never)]
fn tell_peak(tracked: Tracked, level: u64) {
    let height = level.wrapping_sub(level::BIAS) & level::MASK;
    // SAFETY: a word of the slot.
    unsafe { atomic::store(&raw mut (*tracked.slot).tell_above, level + height / 128 + 256) };
    tell(
        tracked.number,
        notice::PEAK,
        Cause {
            level,
            peak: level,
            ..Cause::default()
        },
    );
}
