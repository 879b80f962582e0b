//! Every change of a job's memory, as the kernel's own statistics count it.

use aya_ebpf::{
    helpers::bpf_ktime_get_ns,
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use swbpf_common::{
    level::{self, BAND_TIME_BITS, BAND_TIME_MASK, BIAS},
    slot::{FILE, FILE_MAPPED, KERNEL, PAGE_TABLES, SHMEM, SWAP, Slot, THP},
};

use crate::{
    atomic,
    kernel::Css,
    maps::{LEVELS, PENDING, count_collision, offset},
    peak,
    track::{Tracked, User, resolve},
};

/// `mod_memcg_lruvec_state(struct mem_cgroup *memcg, int item, int val)`: pages of the LRU and page tables.
#[btf_tracepoint(function = "mod_memcg_lruvec_state")]
pub fn mod_memcg_lruvec_state(ctx: BtfTracePointContext) -> i32 {
    let item: u32 = ctx.arg(1);
    if offset!(lruvec_items) >> (item & 63) & 1 == 0 {
        return 0;
    }
    let key = resolve(Css(ctx.arg(0)), User::Lruvec);
    let Some(tracked) = Tracked::by_key(key) else { return 0 };
    let change = i64::from(ctx.arg::<i32>(2));
    if item == offset!(item_anon) {
        anon(tracked, change);
    } else if item == offset!(item_shmem) {
        needed(tracked, change, Some(SHMEM));
    } else if item == offset!(item_file) {
        part(tracked.slot, FILE, change);
    } else if item == offset!(item_file_mapped) {
        part(tracked.slot, FILE_MAPPED, change);
    } else if item == offset!(item_anon_thps) {
        part(tracked.slot, THP, change);
    } else {
        part(tracked.slot, PAGE_TABLES, change);
    }
    0
}

/// `mod_memcg_state(struct mem_cgroup *memcg, int item, int val)`: kernel memory, sockets, swap.
#[btf_tracepoint(function = "mod_memcg_state")]
pub fn mod_memcg_state(ctx: BtfTracePointContext) -> i32 {
    let item: u32 = ctx.arg(1);
    let kernel = item == offset!(item_kmem) || item == offset!(item_sock);
    if !kernel && item != offset!(item_swap) {
        return 0;
    }
    let key = resolve(Css(ctx.arg(0)), User::State);
    let Some(tracked) = Tracked::by_key(key) else { return 0 };
    let change = i64::from(ctx.arg::<i32>(2));
    if kernel {
        needed(tracked, change, Some(KERNEL));
    } else {
        part(tracked.slot, SWAP, change);
    }
    0
}

/// A change of a part that is not needed memory, or that is counted elsewhere too.
#[inline(always)]
fn part(slot: *mut Slot, part: usize, change: i64) {
    // SAFETY: a word of the slot.
    unsafe { atomic::fetch_add((&raw mut (*slot).parts[part]).cast(), change as u64) };
}

/// A change of anonymous memory; with a batch, what is less than it stays with this CPU.
#[inline(always)]
fn anon(tracked: Tracked, change: i64) {
    let batch = offset!(batch_pages) as i64;
    if batch == 0 {
        return needed(tracked, change, None);
    }
    let Some(pending) = PENDING.get_ptr_mut(tracked.number) else { return };
    // SAFETY: this CPU's own value.
    let sum = unsafe { *pending } as i64 + change;
    let keep = sum < batch && sum > -batch;
    // SAFETY: as above.
    unsafe { *pending = if keep { sum as u64 } else { 0 } };
    if !keep {
        needed(tracked, sum, None);
    }
}

/// A change of needed memory: one addition, and the maximum of what stood before and after it.
#[inline(always)]
fn needed(tracked: Tracked, change: i64, changed_part: Option<usize>) {
    let slot = tracked.slot;
    // SAFETY: words of the slot.
    let before = unsafe { atomic::fetch_add(&raw mut (*slot).now, change as u64) };
    let after = before.wrapping_add(change as u64);
    if change < 0 {
        peak::fall(tracked, before, after);
    } else {
        peak::rise(tracked, before, after);
    }
    if let Some(changed) = changed_part {
        part(slot, changed, change);
    }
    follow_band(tracked, after);
}

/// Keeps the time by level: nothing to do while the level stays in its band.
#[inline(always)]
fn follow_band(tracked: Tracked, level: u64) {
    let pages = level.wrapping_sub(BIAS);
    // SAFETY: a word of the slot.
    let band = unsafe { atomic::load(&raw const (*tracked.slot).band) } >> BAND_TIME_BITS;
    let (from, to) = level::band_edges(band);
    if pages < from || pages >= to {
        change_band(tracked);
    }
}

/// Adds the span of the old band and begins the new one. The level is read again after each change, so that of two CPUs
/// the last to write leaves the right band.
#[inline(always)]
fn change_band(tracked: Tracked) {
    let Some(levels) = LEVELS.get_ptr_mut(tracked.number) else { return };
    // SAFETY: words of the slot and of its levels.
    unsafe {
        let word = &raw mut (*tracked.slot).band;
        for _ in 0..8 {
            let old = atomic::load(word);
            let now = atomic::load(&raw const (*tracked.slot).now);
            let pages = if now < BIAS { 0 } else { (now - BIAS) & level::MASK };
            let band = level::band(pages);
            if band == old >> BAND_TIME_BITS {
                return;
            }
            let ns = bpf_ktime_get_ns();
            let span = ns.wrapping_sub(old) & BAND_TIME_MASK;
            if atomic::compare_exchange(word, old, band << BAND_TIME_BITS | (ns & BAND_TIME_MASK))
                && span >> (BAND_TIME_BITS - 1) == 0
            {
                let index = (old >> BAND_TIME_BITS) as usize & (level::BANDS - 1);
                atomic::fetch_add(&raw mut (*levels).ns[index], span);
            }
        }
    }
    count_collision();
}
