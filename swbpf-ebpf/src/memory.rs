//! Every change of a job's memory, as the kernel's own statistics count it.

use aya_ebpf::{
    EbpfContext, cty::c_void, helpers::bpf_ktime_get_ns, macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use swbpf_common::{
    level::{self, BAND_TIME_BITS, BAND_TIME_MASK, BIAS, Band},
    slot::{FILE, FILE_MAPPED, KERNEL, PAGE_TABLES, PARTS, SHMEM, SWAP, THP},
};

use crate::{
    atomic,
    kernel::{Css, Load, Typed},
    maps::{COUNTING, LEVELS, PENDING, count_collision, count_rescued, offset},
    peak,
    track::{MAX_LEVELS, Tracked, User, resolve},
};

/// `mod_memcg_lruvec_state(struct mem_cgroup *memcg, int item, int val)`: pages of the LRU and page tables.
///
/// Most events are of other items: what acts is a function of its own, so that these need not save its registers.
#[btf_tracepoint(function = "mod_memcg_lruvec_state")]
pub fn mod_memcg_lruvec_state(ctx: BtfTracePointContext) -> i32 {
    if is_followed(ctx.arg(1)) {
        lruvec(ctx.as_ptr());
    }
    0
}

#[inline(never)]
fn lruvec(ctx: *mut c_void) {
    let ctx = BtfTracePointContext::new(ctx);
    count_lruvec(Css::<Typed>::new(ctx.arg(0)), ctx.arg(1), ctx.arg(2));
}

/// Whether a `node_stat_item` is one of those that are counted.
#[inline(always)]
pub fn is_followed(item: u32) -> bool {
    offset!(lruvec_items) >> (item & 63) & 1 != 0
}

/// Counts a change of a followed `node_stat_item`.
#[inline(always)]
pub fn count_lruvec<L: Load>(memcg: Css<L>, item: u32, change: i32) {
    let part = if item == offset!(item_anon) {
        ANON
    } else if item == offset!(item_shmem) {
        SHMEM
    } else if item == offset!(item_file) {
        FILE
    } else if item == offset!(item_file_mapped) {
        FILE_MAPPED
    } else if item == offset!(item_anon_thps) {
        THP
    } else {
        PAGE_TABLES
    };
    account_up(
        resolve(memcg, User::Lruvec as u32),
        part as u64,
        i64::from(change),
    );
}

/// `mod_memcg_state(struct mem_cgroup *memcg, int item, int val)`: kernel memory, sockets, swap.
///
/// Interrupts free kernel memory too, by thousands at once where they run the callbacks of RCU. One that comes while this
/// program runs would find it skipped, since a program does not run inside itself: then its twin counts.
#[btf_tracepoint(function = "mod_memcg_state")]
pub fn mod_memcg_state(ctx: BtfTracePointContext) -> i32 {
    let Some(counting) = COUNTING.get_ptr_mut(0) else {
        return 0;
    };
    // SAFETY: this CPU's own value.
    unsafe { atomic::store(counting, 1) };
    state(ctx.as_ptr(), User::State as u32);
    // SAFETY: as above.
    unsafe { atomic::store(counting, 0) };
    0
}

/// The twin, on the same hook: counts what interrupts the other one, and nothing else.
#[btf_tracepoint(function = "mod_memcg_state")]
pub fn mod_memcg_state_nested(ctx: BtfTracePointContext) -> i32 {
    let Some(counting) = COUNTING.get_ptr_mut(0) else {
        return 0;
    };
    // SAFETY: this CPU's own value.
    if unsafe { atomic::load(counting) } != 0 {
        count_rescued();
        state(ctx.as_ptr(), User::Nested as u32);
    }
    0
}

#[inline(never)]
fn state(ctx: *mut c_void, user: u32) {
    let ctx = BtfTracePointContext::new(ctx);
    count_state(Css::<Typed>::new(ctx.arg(0)), ctx.arg(1), ctx.arg(2), user);
}

/// Counts a change of a `memcg_stat_item`.
#[inline(always)]
pub fn count_state<L: Load>(memcg: Css<L>, item: u32, change: i32, user: u32) {
    let part = if item == offset!(item_kmem) || item == offset!(item_sock) {
        KERNEL
    } else if item == offset!(item_swap) {
        SWAP
    } else {
        return;
    };
    account_up(resolve(memcg, user), part as u64, i64::from(change));
}

/// Stands for anonymous memory, which is needed and no part of its own.
const ANON: usize = PARTS;

/// Whether a part is needed memory; the others are counted beside it.
#[inline(always)]
fn is_needed(part: usize) -> bool {
    part == ANON || part == SHMEM || part == KERNEL
}

/// Whether a part lies within needed memory without being counted in its sum.
#[inline(always)]
fn is_within(part: usize) -> bool {
    part == PAGE_TABLES || part == THP
}

/// Counts a change for the slot of `key` and all above it.
#[inline(always)]
fn account_up(mut key: u64, part: u64, change: i64) {
    for _ in 0..MAX_LEVELS {
        if key == 0 {
            return;
        }
        key = account(key, part, change);
    }
}

/// One addition to needed memory, and the maximum of what stood before and after it. The part follows last: while the
/// level falls from a peak, the parts are still those of the peak. Some kernels take page tables out of the statistics by
/// thousands before they give the first one back: so the level counts as left already when these fall. The key of the slot
/// above is returned.
///
/// A function of integers that the linker lets others see: the verifier checks it once, and not anew on each level.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn account(key: u64, part: u64, change: i64) -> u64 {
    let part = part as usize;
    let Some(tracked) = Tracked::by_key(key) else {
        return 0;
    };
    let needed = if part == ANON {
        batched(tracked, change)
    } else if is_needed(part) {
        change
    } else {
        0
    };
    if needed != 0 {
        // SAFETY: a word of the slot.
        let before = unsafe { atomic::fetch_add(&raw mut (*tracked.slot).now, needed as u64) };
        let after = before.wrapping_add(needed as u64);
        peak::follow(tracked, before, after);
        if tracked.is_target() {
            follow_band(tracked, after);
        }
    }
    if part < PARTS {
        if change < 0 && is_within(part) {
            // SAFETY: a word of the slot.
            peak::leave(tracked, unsafe { atomic::load(&raw const (*tracked.slot).now) });
        }
        // SAFETY: a word of the slot.
        unsafe { atomic::fetch_add((&raw mut (*tracked.slot).parts[part]).cast(), change as u64) };
    }
    tracked.parent()
}

/// With a batch, a change that stays below it is kept by this CPU; what is to be added now is returned.
#[inline(always)]
fn batched(tracked: Tracked, change: i64) -> i64 {
    let batch = offset!(batch_pages) as i64;
    if batch == 0 {
        return change;
    }
    let Some(pending) = PENDING.get_ptr_mut(tracked.number) else {
        return change;
    };
    // SAFETY: this CPU's own value.
    let sum = unsafe { *pending } as i64 + change;
    let keep = sum < batch && sum > -batch;
    // SAFETY: as above.
    unsafe { *pending = if keep { sum as u64 } else { 0 } };
    if keep { 0 } else { sum }
}

/// Keeps the time by level: nothing to do while the level stays in its band.
#[inline(always)]
fn follow_band(tracked: Tracked, level: u64) {
    // SAFETY: a word of the slot.
    let word = unsafe { atomic::load(&raw const (*tracked.slot).band) };
    if !Band::of_word(word).holds(level.wrapping_sub(BIAS)) {
        change_band(tracked);
    }
}

/// Adds the span of the old band and begins the new one. The level is read again after each change, so that of two CPUs
/// the last to write leaves the right band.
#[inline(never)]
fn change_band(tracked: Tracked) {
    let Some(levels) = LEVELS.get_ptr_mut(tracked.number) else {
        return;
    };
    // SAFETY: words of the slot and of its levels.
    unsafe {
        let word = &raw mut (*tracked.slot).band;
        for _ in 0..8 {
            let old = atomic::load(word);
            let now = atomic::load(&raw const (*tracked.slot).now);
            let pages = if now < BIAS { 0 } else { (now - BIAS) & level::MASK };
            let band = Band::of(pages);
            if Band::of_word(old) == band {
                return;
            }
            let ns = bpf_ktime_get_ns();
            let span = ns.wrapping_sub(old) & BAND_TIME_MASK;
            // A span of the upper half is a clock reading a little behind that of another CPU.
            if atomic::compare_exchange(word, old, band.since(ns)) && span >> (BAND_TIME_BITS - 1) == 0 {
                atomic::fetch_add(&raw mut (*levels).ns[Band::of_word(old).number()], span);
            }
        }
    }
    count_collision();
}
