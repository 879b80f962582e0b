//! A slot of its own for a cgroup that is born below a tracked one.
//!
//! It is entered before the first task can be in the cgroup, so its counters begin at 0 and nothing of it is missed, however
//! short it lives and whatever the reader does meanwhile.

use aya_ebpf::helpers::{bpf_jiffies64, bpf_ktime_get_ns};
use swbpf_common::{
    level::{self, BIAS},
    slot::Slot,
};

use crate::{
    kernel::Cgroup,
    maps::{FREE, TRACKED, count_without_slot, offset},
    track::Tracked,
};

/// Words of a slot.
const WORDS: usize = size_of::<Slot>() / 8;

/// A slot for `cgroup`, whose nearest tracked cgroup is `above`; none where it is deeper than what is told on its own.
#[inline(always)]
pub fn own_slot(cgroup: Cgroup, above: Tracked) -> Option<Tracked> {
    // SAFETY: words of the slot.
    let (follow, above_id) = unsafe { ((*above.slot).follow, (*above.slot).cgroup_id) };
    if follow == 0 || cgroup.css().parent()?.cgroup_id() != above_id {
        return None;
    }
    let own = FREE
        .pop()
        .ok()
        .flatten()
        .and_then(|number| Tracked::by_key(u64::from(number) + 1));
    let Some(own) = own else {
        count_without_slot();
        return None;
    };
    begin(own.slot, above, follow - 1, cgroup);
    if TRACKED.insert(cgroup.css().cgroup_id(), own.number, 0).is_err() {
        let _ = FREE.push(own.number, 0);
        count_without_slot();
        return None;
    }
    Some(own)
}

/// An empty slot that begins now.
#[inline(always)]
fn begin(slot: *mut Slot, above: Tracked, follow: u64, cgroup: Cgroup) {
    // SAFETY: words of the slot, which no one else uses; reads clocks.
    unsafe {
        for word in 0..WORDS {
            slot.cast::<u64>().add(word).write_volatile(0);
        }
        let tick = bpf_jiffies64();
        let word = level::pack(level::bucket(tick, offset!(bucket_shift)), BIAS);
        (*slot).now = BIAS;
        (*slot).high = word;
        (*slot).low = word;
        (*slot).rise_tick = tick;
        // Its peaks are not told.
        (*slot).tell_above = u64::MAX;
        (*slot).parent = u64::from(above.number) + 1;
        (*slot).high_peak.reached_tick = tick;
        (*slot).max_peak.reached_tick = tick;
        (*slot).follow = follow;
        (*slot).cgroup_id = cgroup.css().cgroup_id();
        (*slot).born_ns = bpf_ktime_get_ns();
        cgroup.name(&raw mut (*slot).name);
    }
}
