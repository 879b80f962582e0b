//! A slot of its own for a cgroup that is born below a tracked or a watched one.
//!
//! It is entered before the first task can be in the cgroup, so its counters begin at 0 and nothing of it is missed, however
//! short it lives and whatever the reader does meanwhile.

use aya_ebpf::{
    helpers::{bpf_jiffies64, bpf_ktime_get_ns},
    maps::Queue,
};
use swbpf_common::{
    level::{self, BIAS, Band},
    running,
    slot::{NAME_LEN, SLURM, SLURM_MASK, Slot, Watched},
};

use crate::{
    atomic,
    kernel::Cgroup,
    maps::{FREE, FREE_TARGETS, TRACKED, WATCHED, count_without_slot, count_without_target, offset},
    track::Tracked,
};

/// Words of a slot.
const WORDS: usize = size_of::<Slot>() / 8;
/// Pages above which the first peak of a target is told.
const FIRST_PEAK: u64 = 256;

/// What a slot is entered with, beside what its cgroup says.
struct Place {
    /// Number + 1 of the slot above; 0 is none.
    parent: u64,
    /// Id of the cgroup above.
    above_id: u64,
    follow: u64,
    tell_above: u64,
}

/// A slot for `cgroup`, whose nearest tracked cgroup is `above`; none where it is deeper than what is told on its own.
#[inline(always)]
pub fn own_slot(cgroup: Cgroup, above: Tracked) -> Option<Tracked> {
    // SAFETY: words of the slot.
    let (follow, above_id) = unsafe { ((*above.slot).follow, (*above.slot).cgroup_id) };
    if follow == 0 || cgroup.css().parent()?.cgroup_id() != above_id {
        return None;
    }
    let place = Place {
        parent: u64::from(above.number) + 1,
        above_id,
        follow: follow - 1,
        // Its peaks are not told.
        tell_above: u64::MAX,
    };
    let own = take(&FREE, cgroup, &place);
    if own.is_none() {
        count_without_slot();
    }
    own
}

/// The slot of a target for `cgroup`, where the one above it is watched for such; where that is watched for what is born
/// further below, the cgroup is watched from now on.
#[inline(always)]
pub fn target_slot(cgroup: Cgroup) -> Option<Tracked> {
    let above = cgroup.css().parent()?.cgroup_id();
    // SAFETY: the value is copied at once.
    let Watched {
        levels,
        follow,
        slurm_alone,
    } = unsafe { *WATCHED.get(&above)? };
    if slurm_alone != 0 && !is_slurms(cgroup) {
        return None;
    }
    if levels > 1 {
        let watched = Watched {
            levels: levels - 1,
            follow,
            slurm_alone: 0,
        };
        if WATCHED.insert(cgroup.css().cgroup_id(), watched, 0).is_err() {
            count_without_target();
        }
        return None;
    }
    let place = Place {
        parent: 0,
        above_id: above,
        follow: u64::from(follow),
        tell_above: BIAS + FIRST_PEAK,
    };
    let own = take(&FREE_TARGETS, cgroup, &place);
    if own.is_none() {
        count_without_target();
    }
    own
}

/// Whether its name begins with `slurm`.
#[inline(always)]
fn is_slurms(cgroup: Cgroup) -> bool {
    let mut name = [0_u64; NAME_LEN / 8];
    cgroup.name((&raw mut name).cast());
    u64::from_le(name[0]) & SLURM_MASK == SLURM
}

/// Nothing is born below it any more.
#[inline(always)]
pub fn unwatch(cgroup: Cgroup) {
    let _ = WATCHED.remove(cgroup.css().cgroup_id());
}

/// Takes a free slot and enters the cgroup with it.
#[inline(always)]
fn take(free: &Queue<u32>, cgroup: Cgroup, place: &Place) -> Option<Tracked> {
    let number = free.pop().ok().flatten()?;
    let own = Tracked::by_key(u64::from(number) + 1)?;
    begin(own.slot, cgroup, place);
    if TRACKED.insert(cgroup.css().cgroup_id(), number, 0).is_err() {
        // SAFETY: a word of the slot, which no one else uses.
        unsafe { atomic::store(&raw mut (*own.slot).cgroup_id, 0) };
        let _ = free.push(number, 0);
        return None;
    }
    Some(own)
}

/// An empty slot that begins now.
#[inline(always)]
fn begin(slot: *mut Slot, cgroup: Cgroup, place: &Place) {
    // SAFETY: words of the slot, which no one else uses; reads clocks.
    unsafe {
        for word in 0..WORDS {
            slot.cast::<u64>().add(word).write_volatile(0);
        }
        let tick = bpf_jiffies64();
        let now_ns = bpf_ktime_get_ns();
        let word = level::pack(level::bucket(tick, offset!(bucket_shift)), BIAS);
        (*slot).now = BIAS;
        (*slot).high = word;
        (*slot).low = word;
        (*slot).band = Band::of(0).since(now_ns);
        (*slot).running = running::pack(0, now_ns);
        (*slot).rise_tick = tick;
        (*slot).tell_above = place.tell_above;
        (*slot).parent = place.parent;
        (*slot).high_peak.reached_tick = tick;
        (*slot).max_peak.reached_tick = tick;
        (*slot).follow = place.follow;
        (*slot).born_ns = now_ns;
        (*slot).above_id = place.above_id;
        cgroup.name(&raw mut (*slot).name);
        // Last: a slot with an id is one in use, and all of it is read.
        atomic::store(&raw mut (*slot).cgroup_id, cgroup.css().cgroup_id());
    }
}
