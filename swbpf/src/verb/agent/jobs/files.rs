//! The files that are written, and the directory that they are in, wherever it is by now.

use std::{collections::BTreeSet, path::Path};

use super::{Jobs, lines::Failing};
use crate::{
    error::Error,
    record::{Dir, Inode},
    verb::agent::note,
};

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
                    "{} was moved or removed, or has another directory over it: the records of the jobs that run begin anew in what is there now",
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

    /// The files that are being written.
    pub fn writing(&self) -> BTreeSet<Inode> {
        let of_jobs = self.by_slot.values().filter_map(|job| job.lines.file());
        of_jobs
            .chain(self.unwritten.files())
            .map(|file| file.inode)
            .collect()
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

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::value::RawValue;

    use super::{super::lines::Lines, *};
    use crate::verb::agent::{jobs::lines::Unwritten, state::States};

    fn text(number: u32) -> Box<RawValue> {
        RawValue::from_string(number.to_string()).expect("JSON")
    }

    #[test]
    fn what_is_to_be_written_waits_for_a_directory() {
        let temp = tempfile::tempdir().expect("a directory");
        let path = temp.path().join("jobs");
        let states = States::open(temp.path().join("states")).expect("made");
        let mut place = Place::open(&path).expect("made");
        let mut unwritten = Unwritten::default();
        fs::remove_dir(&path).expect("empty");
        fs::write(&path, "in its place").expect("written");
        assert!(!place.find() && place.dir().is_none());
        unwritten.wait(7, Lines::of("7".into(), None), text(1));
        assert!(unwritten.write(&place, &states).is_empty());
        fs::remove_file(&path).expect("there");
        assert!(place.find() && place.dir().is_some());
        assert!(!place.find(), "it is found once");
        let mut written = unwritten.write(&place, &states);
        let (cgroup_id, lines) = written.pop().expect("written");
        assert_eq!((cgroup_id, unwritten.count()), (7, 0));
        // What comes later goes to the same record, though its name is another's by then.
        let mut next = Unwritten::default();
        next.wait(8, Lines::of("7".into(), None), text(2));
        assert_eq!(next.write(&place, &states).len(), 1);
        unwritten.wait(7, lines, text(3));
        assert_eq!(unwritten.write(&place, &states).len(), 1);
        let read = |name: &str| fs::read_to_string(path.join(name)).expect("there");
        assert_eq!(
            (read("7.1.jsonl"), read("7.jsonl")),
            ("1\n3\n".into(), "2\n".into())
        );
    }

    #[test]
    fn one_that_waits_is_taken_back_alone() {
        let mut unwritten = Unwritten::default();
        for id in [7, 8] {
            unwritten.wait(id, Lines::of(id.to_string(), None), text(1));
        }
        assert!(unwritten.take(9).is_none());
        let taken = unwritten.take(7).expect("there");
        assert_eq!((taken.job.as_str(), unwritten.count()), ("7", 1));
    }
}
