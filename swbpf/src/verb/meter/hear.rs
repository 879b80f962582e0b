//! Notices of the programs, as they come.

use std::iter;

use super::Meter;
use crate::{
    error::Error,
    fold::{Kill, is_hit},
    probe::{Notice, SlotId, What, monotonic_ns},
    sampled::cgroupfs::limit_levels,
    snapshot::{LimitOf, Task},
};

impl Meter {
    /// Takes the notices that wait.
    pub fn hear(&mut self) -> Result<(), Error> {
        let Some(counting) = &self.counting else {
            return Ok(());
        };
        let mut probe = counting.probe.borrow_mut();
        let notices: Vec<Notice> = iter::from_fn(|| probe.next_notice()).collect();
        drop(probe);
        self.heed(notices)
    }

    /// Takes notices of this target.
    pub fn heed(&mut self, notices: Vec<Notice>) -> Result<(), Error> {
        let (readings, gone) = if self.are_rows_due(&notices) {
            self.rows()?
        } else {
            Default::default()
        };
        // The files of the target are read once more before it is removed.
        let is_emptied =
            |notice: &Notice| notice.what == What::Emptied && notice.cgroup_id == self.cgroup.id();
        if notices.iter().any(is_emptied) {
            let reading = self.reading()?;
            self.fold.add(reading);
        }
        let is_end = |notice: &Notice| matches!(notice.what, What::Gone | What::Emptied | What::Populated);
        if let Some(counting) = self.counting.as_ref().filter(|_| notices.iter().any(is_end)) {
            self.ending.see(counting.probe.borrow().ended(counting.slot)?);
        }
        let has_moved = notices.iter().any(|notice| notice.what == What::Moved);
        for notice in notices {
            match notice.what {
                What::Peak if self.is_own(notice.slot) => self.new_peak(notice)?,
                What::Victim => self.kill(notice),
                What::Peak | What::Moved | What::Born | What::Gone | What::Emptied | What::Populated => {}
            }
        }
        self.fold.below(readings, false);
        if let Some(counting) = self.counting.as_ref().filter(|_| has_moved) {
            counting.probe.borrow().look()?;
        }
        self.forget(gone)
    }

    /// Whether a slot is that of the target.
    fn is_own(&self, slot: SlotId) -> bool {
        self.counting
            .as_ref()
            .is_some_and(|counting| counting.slot == slot)
    }

    /// Whether the cgroups below the target are to be read on these notices: a kill is told with what the victim's cgroup is,
    /// so that has to be known; else as often as it is cheap, since their slots keep what is not read now.
    fn are_rows_due(&self, notices: &[Notice]) -> bool {
        let is_unknown = |notice: &Notice| {
            notice.what == What::Victim && self.follower.role_of(notice.victim_slot).is_none()
        };
        let has_changed = |notice: &Notice| matches!(notice.what, What::Born | What::Gone);
        notices.iter().any(is_unknown)
            || (monotonic_ns() >= self.next_rows_ns && notices.iter().any(has_changed))
    }

    fn new_peak(&mut self, notice: Notice) -> Result<(), Error> {
        let (pid, comm) = notice.by;
        self.fold.raised(notice.level, Task { pid, comm });
        self.scan()
    }

    fn kill(&mut self, notice: Notice) {
        let limit = notice.limit.filter(is_hit);
        let (limit_of, limit_dir) = limit.map_or((LimitOf::Unknown, None), |limit| {
            self.follower.whose(limit.cgroup_id, &self.cgroup)
        });
        self.fold.killed(Kill {
            victim: self.follower.role_of(notice.victim_slot),
            measured: self.follower.id_of(notice.slot),
            limit_of,
            limit_dir,
            notice,
        });
        self.limits = limit_levels(&self.cgroup);
    }
}
