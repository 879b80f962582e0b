//! The files that are written, and the directory that they are in, wherever it is by now.

use std::{collections::BTreeSet, path::Path};

use super::{Jobs, lines::Failing};
use crate::{error::Error, record::Dir, verb::agent::note};

/// The directory of the records: it may be moved or removed at any time.
pub struct Place {
    dir: Dir,
    finding: Failing,
}

impl Place {
    /// Takes the directory of this path, which is made where it is not there.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            dir: taken(path)?,
            finding: Failing::default(),
        })
    }

    /// The directory; `None` as long as there is none that can be used: what is to be written waits.
    pub fn dir(&self) -> Option<&Dir> {
        (!self.finding.is_failing()).then_some(&self.dir)
    }

    /// Looks for it where it was; whether it is another by now, in which nothing is yet of the jobs that run.
    fn find(&mut self) -> bool {
        if self.dir.is_in_place() {
            let _ = self.finding.new_one(Ok(()));
            return false;
        }
        let path = self.dir.path().to_owned();
        let found = taken(&path);
        let is_found = found.is_ok();
        let failure = match found {
            Ok(dir) => {
                self.dir = dir;
                note(&format!(
                    "{} is another directory by now: the records of the jobs that run begin anew in it",
                    path.display()
                ));
                self.finding.new_one(Ok(()))
            }
            Err(error) => self.finding.new_one(Err(error)),
        };
        if let Some(error) = failure {
            note(&format!(
                "the directory of the records is gone: {error}; it is looked for each second, and what is to be written waits"
            ));
        }
        is_found
    }
}

/// A directory that no other agent writes to.
fn taken(path: &Path) -> Result<Dir, Error> {
    let dir = Dir::open(path)?;
    dir.hold()?;
    Ok(dir)
}

impl Jobs {
    /// The directory of the records, where there is one.
    pub fn records(&self) -> Option<Dir> {
        self.records.dir().cloned()
    }

    /// Names of the files that are being written.
    pub fn writing(&self) -> BTreeSet<String> {
        let of_jobs = self.by_slot.values().filter_map(|job| job.lines.file());
        of_jobs.chain(self.unwritten.files()).map(str::to_owned).collect()
    }

    /// Looks whether the directory of the records is where it was.
    pub(super) fn find_records(&mut self) {
        if self.records.find() {
            for job in self.by_slot.values_mut() {
                job.lines.begin_anew();
                job.has_news = true;
            }
            self.unwritten.begin_anew();
            self.late.begin_anew();
        }
    }
}
