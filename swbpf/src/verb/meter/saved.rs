//! A measurement that outlives its process.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Meter, Place};
use crate::{
    error::Error,
    fold::Fold,
    job::cgroup::Cgroup,
    probe::SlotId,
    sampled::cgroupfs::{LimitLevel, limit_levels},
    verb::{calibrate::Calibrator, count::Counting, ending::Ending, rows::Follower, scan::Scanner},
};

/// A measurement as one process leaves it to the next.
#[derive(Debug, Deserialize)]
pub struct Saved {
    /// Its slot.
    pub slot: Option<SlotId>,
    /// The target.
    pub cgroup: Cgroup,
    pub(super) fold: Fold,
    pub(super) follower: Follower,
    pub(super) hears_end: bool,
}

/// The same, as it is written.
#[derive(Serialize)]
struct Saving<'a> {
    slot: Option<SlotId>,
    cgroup: &'a Cgroup,
    fold: &'a Fold,
    follower: &'a Follower,
    hears_end: bool,
}

impl Meter {
    /// With what is known, and nothing looked at yet.
    pub(super) fn of(
        known: Saved,
        counting: Option<Counting>,
        limits: Vec<LimitLevel>,
        place: Place,
    ) -> Self {
        Self {
            cgroup: known.cgroup,
            counting,
            fold: known.fold,
            limits,
            scanner: Scanner::default(),
            calibrator: Calibrator::default(),
            place,
            gone: Vec::new(),
            follower: known.follower,
            ending: Ending::default(),
            hears_end: known.hears_end,
            was_populated: false,
            next_rows_ns: 0,
            next_glimpse_ns: 0,
            seen: None,
        }
    }

    /// Goes on where another process was.
    pub fn resume(saved: Saved, counting: Counting) -> Result<Self, Error> {
        let limits = limit_levels(&saved.cgroup);
        let mut meter = Self::of(saved, Some(counting), limits, Place::BesideOthers);
        let reading = meter.reading()?;
        meter.fold.add(reading);
        meter.read_below()?;
        Ok(meter)
    }

    /// What another process needs to go on.
    pub fn save(&self) -> Result<Box<RawValue>, Error> {
        let slot = self.counting.as_ref().map(|counting| counting.slot);
        let saving = Saving {
            slot,
            cgroup: &self.cgroup,
            fold: &self.fold,
            follower: &self.follower,
            hears_end: self.hears_end,
        };
        Ok(serde_json::value::to_raw_value(&saving).context("save a measurement")?)
    }
}
