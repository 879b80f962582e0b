//! Cgroups below a target that are told on their own: those that the kernel gave a slot at their birth, and those that were
//! there before.

use std::collections::BTreeSet;

use anyhow::Context;
use aya::maps::MapError;
use swbpf_common::slot::{NAME_LEN, Slot};

use super::{Probe, SlotId, Start, monotonic_ns};
use crate::error::Error;

/// `BPF_NOEXIST`: the kernel refuses where the key is there.
const ONLY_NEW: u64 = 1;

/// A cgroup below a target, with a slot of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Below {
    /// Its slot.
    pub slot: SlotId,
    /// The slot of the cgroup above it.
    pub above: SlotId,
    /// Its id.
    pub cgroup_id: u64,
    /// When it was made, on the monotonic clock; `None` where that was before it was tracked.
    pub born_ns: Option<u64>,
    /// When it was removed.
    pub gone_ns: Option<u64>,
    /// When the last process left it; `None` while one is there, and before the first one came.
    pub emptied_ns: Option<u64>,
    /// Name of its directory, at most 31 bytes; bytes that are not UTF-8 are replaced.
    pub name: String,
}

/// A target that has a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top {
    /// Its slot.
    pub slot: SlotId,
    /// Its id.
    pub cgroup_id: u64,
    /// When it was made, on the monotonic clock; `None` where that was before it was tracked: then the rest is not known either.
    pub born_ns: Option<u64>,
    /// Id of the cgroup right above it.
    pub above_id: u64,
    /// Name of its directory, at most 31 bytes; bytes that are not UTF-8 are replaced.
    pub name: String,
}

impl Probe {
    /// A target that has a slot.
    pub fn top(&self, slot: SlotId) -> Result<Top, Error> {
        let state = self.slot(slot)?;
        Ok(Top {
            slot,
            cgroup_id: state.cgroup_id,
            born_ns: (state.born_ns != 0).then_some(state.born_ns),
            above_id: state.above_id,
            name: name(&state),
        })
    }

    /// The targets, in the order of the slots.
    pub fn tops(&self) -> Result<Vec<Top>, Error> {
        self.used_targets().map(|(slot, _)| self.top(slot)).collect()
    }

    /// Tracks a cgroup that is there already below one that has a slot; one without a process counts as emptied now. `None` where it has one too: it was born since.
    pub fn track_below(
        &mut self,
        above: SlotId,
        cgroup_id: u64,
        name: &str,
        start: Start,
        is_populated: bool,
    ) -> Result<Option<SlotId>, Error> {
        let follow = self.slot(above)?.follow.saturating_sub(1);
        let number = match self.maps.free_below.pop(0) {
            Ok(number) => number,
            Err(MapError::ElementNotFound) => {
                return Err(Error::TableFull {
                    capacity: self.room.below,
                });
            }
            Err(error) => return Err(anyhow::Error::from(error).context("take a free slot").into()),
        };
        let state = Slot {
            // Its peaks are not told.
            tell_above: u64::MAX,
            parent: u64::from(above.0) + 1,
            follow,
            cgroup_id,
            name: cut(name),
            emptied_ns: if is_populated { 0 } else { monotonic_ns() },
            ..self.first_state(start)?
        };
        self.enter(number, &state)?;
        if self.maps.tracked.insert(cgroup_id, number, ONLY_NEW).is_err() {
            self.clear(number).context("clear a slot")?;
            self.maps
                .free_below
                .push(number, 0)
                .context("give back a free slot")?;
            return Ok(None);
        }
        self.look()?;
        Ok(Some(SlotId(number)))
    }

    /// All that have slots, in the order of the slots.
    pub fn below(&self) -> Result<Vec<Below>, Error> {
        self.read_all(self.used_below())
    }

    /// Those below one target, at any depth.
    pub fn below_one(&self, top: SlotId) -> Result<Vec<Below>, Error> {
        let slots = self.slots_below(top).into_iter();
        // One that was given back since the round began may be another target's by now.
        self.read_all(slots.filter(|slot| self.top_of(*slot) == Some(top)))
    }

    pub(super) fn read_all(&self, slots: impl Iterator<Item = SlotId>) -> Result<Vec<Below>, Error> {
        slots
            .filter_map(|slot| self.slot(slot).map(|state| told(slot, &state)).transpose())
            .collect()
    }

    /// How many slots are in use: of targets, and of cgroups below them.
    pub fn slots_in_use(&self) -> (u64, u64) {
        (
            self.used_targets().count() as u64,
            self.used_below().count() as u64,
        )
    }

    /// Numbers of the slots that are in the table of tracked cgroups.
    pub(super) fn tracked_slots(&self) -> Result<BTreeSet<u32>, Error> {
        // An entry that is removed meanwhile makes the kernel begin anew.
        let most = 2 * self.room.all() as usize;
        let entries = self.maps.tracked.iter().take(most);
        let numbers = entries.map(|entry| Ok(entry.context("read the table of tracked cgroups")?.1));
        numbers.collect()
    }

    /// Gives the slots of removed cgroups back. What happens to pages that are still charged to one of them counts for the
    /// one above it.
    pub fn release(&mut self, removed: &[Below]) -> Result<(), Error> {
        if removed.is_empty() {
            return Ok(());
        }
        for below in removed {
            match self.maps.tracked.remove(&below.cgroup_id) {
                Ok(()) | Err(MapError::KeyNotFound) => {}
                Err(error) => {
                    return Err(anyhow::Error::from(error)
                        .context("take a cgroup out of the table")
                        .into());
                }
            }
        }
        self.look()?;
        for below in removed {
            let SlotId(number) = below.slot;
            self.clear(number).context("clear a slot")?;
            self.maps
                .free_below
                .push(number, 0)
                .context("give back a free slot")?;
        }
        Ok(())
    }
}

/// `None` for a slot of no cgroup.
fn told(slot: SlotId, state: &Slot) -> Option<Below> {
    if state.cgroup_id == 0 {
        return None;
    }
    let above = u32::try_from(state.parent.checked_sub(1)?).ok()?;
    Some(Below {
        slot,
        above: SlotId(above),
        cgroup_id: state.cgroup_id,
        born_ns: (state.born_ns != 0).then_some(state.born_ns),
        gone_ns: (state.gone_ns != 0).then_some(state.gone_ns),
        emptied_ns: (state.emptied_ns != 0).then_some(state.emptied_ns),
        name: name(state),
    })
}

fn name(state: &Slot) -> String {
    let name = state.name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// The name as the kernel keeps it: cut off, with an end mark.
fn cut(name: &str) -> [u8; NAME_LEN] {
    let mut kept = [0; NAME_LEN];
    for (to, from) in kept.iter_mut().take(NAME_LEN - 1).zip(name.bytes()) {
        *to = from;
    }
    kept
}
