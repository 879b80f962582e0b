//! The exact maximum of each bucket of time, and of all of them.
//!
//! One word holds the bucket's number and its highest level. Whoever replaces a word of an older bucket has that word in
//! hand, and he alone: he puts it into the timeline and into the maximum of all. So an ordinary rise costs one
//! compare-exchange, and no maximum can be lost however late a CPU or the reader is.

use aya_ebpf::helpers::{bpf_jiffies64, bpf_ktime_get_ns};
use swbpf_common::{
    level::{self, BUCKET_MASK, BUCKETS_LATE},
    notice,
    slot::{CELLS, PARTS, Peak, Slot, Timeline},
};

use crate::{
    atomic,
    maps::{TIMELINES, count_collision, offset},
    notice::{Cause, tell},
    track::Tracked,
};

/// Tries of a compare-exchange before it is given up and counted. A level that is given up is not lost for that: the next
/// change finds it as the level before.
const TRIES: u32 = 8;

/// The level went from `before` to `after`.
#[inline(always)]
pub fn follow(tracked: Tracked, before: u64, after: u64) {
    // SAFETY: reads a counter: the verifier turns the call into one load.
    let tick = unsafe { bpf_jiffies64() };
    let fell = after < before;
    let (high, low) = if fell { (before, after) } else { (after, before) };
    raise_high(tracked, high, tick);
    sink_low(tracked, low, tick);
    // SAFETY: words of the slot.
    unsafe {
        if fell {
            if atomic::load(&raw const (*tracked.slot).at_high) != 0 {
                leave_high(tracked.slot);
            }
        } else if after > atomic::load(&raw const (*tracked.slot).tell_above) {
            tell_peak(tracked, after);
        }
    }
}

/// Where `level` stands against the word of its bucket.
enum Against {
    /// Same bucket, same order: nothing to do.
    Within,
    /// Same bucket, beyond it.
    Beyond,
    /// The word is of an older bucket.
    Newer,
}

/// Compares, and gives the bucket to write under. A CPU whose clock reading is late writes under the newer bucket, so
/// that its level counts all the same.
#[inline(always)]
fn against(word: u64, level: u64, tick: u64, beyond: fn(u64, u64) -> bool) -> (Against, u64) {
    let bucket = level::bucket(tick, offset!(bucket_shift));
    let ahead = bucket.wrapping_sub(level::bucket_of(word)) & BUCKET_MASK;
    if ahead != 0 && ahead <= BUCKET_MASK - BUCKETS_LATE {
        return (Against::Newer, bucket);
    }
    let standing = if beyond(level, level::level_of(word)) {
        Against::Beyond
    } else {
        Against::Within
    };
    (standing, level::bucket_of(word))
}

#[inline(always)]
fn raise_high(tracked: Tracked, level: u64, tick: u64) {
    let slot = tracked.slot;
    for _ in 0..TRIES {
        // SAFETY: words of the slot.
        unsafe {
            let old = atomic::load(&raw const (*slot).high);
            let (standing, bucket) = against(old, level, tick, |level, high| level > high);
            if matches!(standing, Against::Within) {
                return;
            }
            if matches!(standing, Against::Newer) && atomic::load(&raw const (*slot).at_high) != 0 {
                leave_high(slot);
            }
            if atomic::compare_exchange(&raw mut (*slot).high, old, level::pack(bucket, level)) {
                if matches!(standing, Against::Newer) {
                    close_high(tracked, old);
                }
                atomic::store(&raw mut (*slot).high_reached_tick, tick);
                atomic::store(&raw mut (*slot).at_high, 1);
                return;
            }
        }
    }
    count_collision();
}

#[inline(always)]
fn sink_low(tracked: Tracked, level: u64, tick: u64) {
    let slot = tracked.slot;
    for _ in 0..TRIES {
        // SAFETY: words of the slot and its timeline.
        unsafe {
            let old = atomic::load(&raw const (*slot).low);
            let (standing, bucket) = against(old, level, tick, |level, low| level < low);
            if matches!(standing, Against::Within) {
                return;
            }
            if atomic::compare_exchange(&raw mut (*slot).low, old, level::pack(bucket, level)) {
                if matches!(standing, Against::Newer)
                    && let Some(timeline) = TIMELINES.get_ptr_mut(tracked.number)
                {
                    atomic::store(&raw mut (*timeline).low[cell(old)], old);
                }
                return;
            }
        }
    }
    count_collision();
}

/// Place of a bucket in the timeline.
#[inline(always)]
fn cell(word: u64) -> usize {
    level::bucket_of(word) as usize & (CELLS - 1)
}

/// Puts the closed bucket's word into the timeline and into the maximum of all.
#[inline(never)]
fn close_high(tracked: Tracked, old: u64) {
    let slot = tracked.slot;
    // SAFETY: words of the slot and its timeline.
    unsafe {
        if let Some(timeline) = TIMELINES.get_ptr_mut(tracked.number) {
            let timeline: *mut Timeline = timeline;
            atomic::store(&raw mut (*timeline).high[cell(old)], old);
        }
        let level = level::level_of(old);
        for _ in 0..TRIES {
            let max = atomic::load(&raw const (*slot).max);
            if level <= max {
                return;
            }
            if atomic::compare_exchange(&raw mut (*slot).max, max, level) {
                let reached = atomic::load(&raw const (*slot).high_reached_tick);
                copy_peak(&raw mut (*slot).max_peak, &raw const (*slot).high_peak, reached);
                return;
            }
        }
    }
    count_collision();
}

#[inline(always)]
unsafe fn copy_peak(to: *mut Peak, from: *const Peak, reached_tick: u64) {
    // SAFETY: both are peaks of the same slot.
    unsafe {
        atomic::store(&raw mut (*to).reached_tick, reached_tick);
        atomic::store(&raw mut (*to).left_ns, (*from).left_ns);
        copy_parts(&raw mut (*to).parts, &raw const (*from).parts);
    }
}

/// The level leaves the highest of its bucket: now its parts are still those of the peak.
#[inline(never)]
fn leave_high(slot: *mut Slot) {
    // SAFETY: words of the slot.
    unsafe {
        atomic::store(&raw mut (*slot).at_high, 0);
        atomic::store(&raw mut (*slot).high_peak.left_ns, bpf_ktime_get_ns());
        copy_parts(&raw mut (*slot).high_peak.parts, &raw const (*slot).parts);
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
        tracked,
        notice::PEAK,
        Cause {
            level,
            peak: level,
            ..Cause::default()
        },
    );
}
