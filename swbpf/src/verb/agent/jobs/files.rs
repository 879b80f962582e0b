//! The files that are written.

use std::collections::BTreeSet;

use super::Jobs;
use crate::record::Dir;

impl Jobs {
    /// The directory of the records.
    pub fn records(&self) -> Dir {
        self.records.clone()
    }

    /// Names of the files that are being written.
    pub fn writing(&self) -> BTreeSet<String> {
        let of_jobs = self.by_slot.values().filter_map(|job| job.lines.file());
        of_jobs.chain(self.unwritten.files()).map(str::to_owned).collect()
    }
}
