//! What the programs hold between two looks.

use super::Meter;
use crate::{
    error::Error, fold::KernelReading, job::cgroup::slurm::Role, snapshot::Snapshot, verb::reading::fresh,
};

impl Meter {
    /// All that is known now, after the CPUs were looked at, with the steps that have ended since a moment and those that are
    /// there; and what the programs hold of the target.
    pub fn fresh(&mut self, ended_since_ns: u64) -> Result<(Snapshot, Option<KernelReading>), Error> {
        let Some(counting) = &self.counting else {
            let last = self.fold.last().clone();
            return Ok((self.fold.fresh(last, ended_since_ns), None));
        };
        let mut steps = Vec::new();
        for (slot, cgroup_id, role) in self.follower.all() {
            if matches!(role, Role::Step(_)) {
                let slot = counting.probe.borrow().read_after_look(slot)?;
                steps.extend(self.fold.read_again(cgroup_id, slot));
            }
        }
        let reading = fresh(counting, &self.cgroup, self.fold.last())?;
        let held = reading.kernel.clone();
        self.fold.below(steps, false);
        Ok((self.fold.fresh(reading, ended_since_ns), held))
    }
}
