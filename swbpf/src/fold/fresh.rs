//! What is known between two looks, for whoever asks then: the looks, and what is told of them, stay as they are.

use super::{BelowReading, Fold, Reading, Values, memory::to_bytes};
use crate::{
    probe::SlotReading,
    snapshot::{Exit, Kind, Snapshot},
};

impl Fold {
    /// All that is known now. Rates are those since the reading `from`.
    pub fn snapshot_from(&self, from: &Reading, kind: Kind, exit: Option<Exit>) -> Snapshot {
        let in_window = kind == Kind::Progress;
        let ended_since_ns = if in_window { self.previous.ns } else { 0 };
        self.snapshot_since((from, ended_since_ns), kind, exit)
    }

    /// All that is known at a reading between two looks, with the steps that have ended since a moment and those that are there.
    pub fn fresh(&mut self, reading: Reading, ended_since_ns: u64) -> Snapshot {
        let looked = std::mem::replace(&mut self.last, reading);
        self.keep_best();
        let snapshot = self.snapshot_since((&self.previous, ended_since_ns), Kind::Progress, None);
        self.last = looked;
        snapshot
    }

    /// A level of the target's slot as needed memory in bytes; `None` where it is not known what it held before.
    pub fn needed_bytes(&self, level: i64) -> Option<u64> {
        self.counted()?;
        Some(to_bytes(level + self.base.pages()?))
    }

    /// A reading of a cgroup below the target, which was read before, by its slot alone.
    pub fn read_again(&self, cgroup_id: u64, slot: SlotReading) -> Option<BelowReading> {
        let last = self.below.last_of(cgroup_id)?;
        let Values::Counted { needed_bytes, .. } = last.values else {
            return None;
        };
        Some(BelowReading {
            ns: slot.read_ns,
            values: Values::Counted {
                slot: Box::new(slot),
                evidence: None,
                needed_bytes,
            },
            ..last.clone()
        })
    }
}
