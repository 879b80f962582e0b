//! Which slot a cgroup belongs to: its own, or that of its nearest tracked ancestor.
//!
//! Userspace enters the cgroups to track, and the kernel those born below them that are to be told on their own. All others
//! below, new ones and dead ones that still hold pages alike, are found by walking up once; each CPU remembers the answer,
//! by the state's serial number, until the next epoch.

use swbpf_common::slot::Slot;

use crate::{
    atomic,
    kernel::{Checked, Css, Load},
    maps::{MEMO_ENTRIES, MEMOS, SLOTS, TRACKED, count_too_deep, epoch, offset},
};

/// Cgroups that are walked up at most: deeper ones belong to no slot.
const MAX_DEPTH: u32 = 128;

/// Slots on the way from one to its target at most: task, `user` on version 2, step, job. The verifier follows each level anew.
pub const MAX_LEVELS: u32 = 4;

/// A slot: its number and its place in the map.
#[derive(Clone, Copy)]
pub struct Tracked {
    pub number: u32,
    pub slot: *mut Slot,
}

impl Tracked {
    /// The slot whose number + 1 is `key`; 0 is none.
    #[inline(always)]
    pub fn by_key(key: u64) -> Option<Self> {
        if key == 0 {
            return None;
        }
        let number = (key - 1) as u32;
        let slot = SLOTS.get_ptr_mut(number)?;
        Some(Self { number, slot })
    }

    /// Number + 1 of the slot above; 0 is none.
    #[inline(always)]
    pub fn parent(self) -> u64 {
        // SAFETY: a word of the slot, constant while it is in use.
        unsafe { atomic::load(&raw const (*self.slot).parent) }
    }

    /// Whether it has a timeline and histograms.
    #[inline(always)]
    pub fn is_target(self) -> bool {
        self.number < offset!(targets)
    }
}

/// Does `each` for the slot of `key` and all above it.
#[inline(always)]
pub fn up(mut key: u64, mut each: impl FnMut(Tracked)) {
    for _ in 0..MAX_LEVELS {
        let Some(tracked) = Tracked::by_key(key) else {
            return;
        };
        each(tracked);
        key = tracked.parent();
    }
}

/// The memo of each program that resolves in its hot path.
#[derive(Clone, Copy)]
pub enum User {
    Lruvec = 0,
    State = 1,
    Switch = 2,
    Nested = 3,
}

/// Slot number + 1 of the cgroup of `css`, 0 where none is tracked: from the memo of `user` where this CPU knows it.
#[inline(always)]
pub fn resolve<L: Load>(css: Css<L>, user: u32) -> u64 {
    let Some(memo) = MEMOS.get_ptr_mut(user) else {
        return 0;
    };
    let serial = css.serial();
    let index = serial as usize & (MEMO_ENTRIES - 1);
    // SAFETY: this CPU's own value, and the index is masked.
    let entry = unsafe { &raw mut (*memo).entries[index] };
    let epoch = epoch();
    // SAFETY: as above.
    unsafe {
        if (*entry).serial == serial && (*entry).epoch == epoch {
            return (*entry).slot;
        }
        let slot = walk(css);
        (*entry).serial = serial;
        (*entry).slot = slot;
        (*entry).epoch = epoch;
        slot
    }
}

/// The same, without memory: for seldom events.
#[inline(always)]
pub fn walk<L: Load>(css: Css<L>) -> u64 {
    if L::IS_TYPED {
        climb(css)
    } else {
        nearest(css.0 as u64)
    }
}

/// Of the state at an address. The verifier checks functions of integers that the linker lets others see only once, and not
/// anew on each way that leads to them.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn nearest(address: u64) -> u64 {
    climb(Css::<Checked>::new(address as *const u8))
}

#[inline(never)]
fn climb<L: Load>(mut css: Css<L>) -> u64 {
    for _ in 0..MAX_DEPTH {
        // SAFETY: the value is copied at once.
        if let Some(number) = unsafe { TRACKED.get(&css.cgroup_id()) } {
            return u64::from(*number) + 1;
        }
        let Some(parent) = css.parent() else { return 0 };
        css = parent;
    }
    count_too_deep();
    0
}
