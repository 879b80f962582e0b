//! Which slots are in use, by the slots themselves: one with an id is, and a free one has none.

use std::{collections::BTreeMap, mem::offset_of};

use swbpf_common::slot::Slot;

use super::{Losses, Probe, SlotId};
use crate::error::Error;

/// Levels of slots below a target at most.
const MAX_LEVELS: u32 = 4;

/// What is looked at once for all targets.
pub(super) struct Round {
    below: BTreeMap<SlotId, Vec<SlotId>>,
    pub losses: Losses,
}

impl Probe {
    /// From now to the end of the round, the slots below each target and the losses are those of now: who has a thousand targets
    /// does not look for them a thousand times.
    pub fn begin_round(&self) -> Result<(), Error> {
        let mut below: BTreeMap<SlotId, Vec<SlotId>> = BTreeMap::new();
        for slot in self.used_below() {
            if let Some(top) = self.top_of(slot) {
                below.entry(top).or_default().push(slot);
            }
        }
        let losses = self.losses()?;
        self.targets.set(self.used_targets().count() as u64);
        self.round.replace(Some(Round { below, losses }));
        Ok(())
    }

    /// What was lost when the round began; outside of one, until now.
    pub fn losses_of_round(&self) -> Result<Losses, Error> {
        let known = self.round.borrow().as_ref().map(|round| round.losses);
        known.map_or_else(|| self.losses(), Ok)
    }

    /// How many targets there were at the begin of the last round, and 1 at least.
    pub fn targets(&self) -> u64 {
        self.targets.get().max(1)
    }

    /// From now on, what is asked is looked at.
    pub fn end_round(&self) {
        self.round.replace(None);
    }

    /// The target that a slot belongs to; `None` where a reader has given the slot back.
    pub fn top_of(&self, slot: SlotId) -> Option<SlotId> {
        let mut number = slot.0;
        for _ in 0..=MAX_LEVELS {
            if number < self.room.targets {
                return Some(SlotId(number));
            }
            number = u32::try_from(self.word(number, offset_of!(Slot, parent)).checked_sub(1)?).ok()?;
        }
        None
    }

    /// The slots of targets that are in use, with the ids of their cgroups.
    pub fn used_targets(&self) -> impl Iterator<Item = (SlotId, u64)> {
        (0..self.room.targets).filter_map(|number| {
            let id = self.word(number, offset_of!(Slot, cgroup_id));
            (id != 0).then_some((SlotId(number), id))
        })
    }

    /// Whether the cgroup of a slot was removed.
    pub fn is_gone(&self, slot: SlotId) -> bool {
        self.word(slot.0, offset_of!(Slot, gone_ns)) != 0
    }

    /// The slots of cgroups below targets that are in use.
    pub(super) fn used_below(&self) -> impl Iterator<Item = SlotId> {
        (self.room.targets..self.room.all())
            .filter(|number| {
                // The first is in a cache line that is fetched anyway; of those that were never used, it is 0.
                self.word(*number, offset_of!(Slot, parent)) != 0
                    && self.word(*number, offset_of!(Slot, cgroup_id)) != 0
            })
            .map(SlotId)
    }

    /// Those below one target, at any depth, in the order of the slots. In a round: those that were there when it began.
    pub(super) fn slots_below(&self, top: SlotId) -> Vec<SlotId> {
        if let Some(round) = &*self.round.borrow() {
            return round.below.get(&top).cloned().unwrap_or_default();
        }
        self.slots_below_now(top)
    }

    /// The same, whether in a round or not.
    pub(super) fn slots_below_now(&self, top: SlotId) -> Vec<SlotId> {
        self.used_below()
            .filter(|slot| self.top_of(*slot) == Some(top))
            .collect()
    }

    /// 0 beyond the last slot.
    fn word(&self, number: u32, offset: usize) -> u64 {
        self.maps.slots.view.word(number, offset).unwrap_or(0)
    }
}
