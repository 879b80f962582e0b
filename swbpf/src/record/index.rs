//! What is kept of records that were read, so that one that has not changed is not read again.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use jiff::Timestamp;
use rustix::fs::Stat;

use super::{Brief, Records};
use crate::error::Error;

/// What the hash table takes for each record, beside the name and what the record tells.
const OVERHEAD: usize = size_of::<(Box<str>, Kept)>() + 2 * size_of::<usize>() + 1;
/// A file that was changed so many seconds ago, or less, can be changed once more at what the clock of files says is the same moment.
const FRESH_SECONDS: i64 = 2;

/// What tells that a file is the same, and unchanged: its text, its readers and its name change `ctime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    bytes: i64,
    changed: (i64, i64),
}

#[derive(Debug)]
struct Kept {
    stamp: Stamp,
    brief: Arc<Brief>,
}

/// Names of files, each ended by a newline: whoever goes through them shares them.
pub type Names = Arc<str>;

/// Records in short, by the names of their files, as much of them as there is room for.
#[derive(Debug)]
pub struct Index {
    /// The names in a directory, and what tells that they are the same.
    names: Option<(Stamp, Names)>,
    kept: HashMap<Box<str>, Kept>,
    bytes: usize,
    max_bytes: usize,
}

impl Stamp {
    /// Of a file.
    pub fn of(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino,
            bytes: stat.st_size,
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }

    /// Whether a change from now on cannot go unnoticed. `now`: seconds of UNIX time.
    fn is_sure(&self, now: i64) -> bool {
        self.changed.0 < now - FRESH_SECONDS
    }
}

impl Index {
    /// Of so many bytes at most. What finds no room is not kept: who goes through all records one after another would have those
    /// that are needed next give way to those that were needed last.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            names: None,
            kept: HashMap::new(),
            bytes: 0,
            max_bytes,
        }
    }

    /// What a record tells that has not changed since it was read.
    pub fn get(&self, file: &str, stamp: Stamp) -> Option<&Arc<Brief>> {
        let kept = self.kept.get(file).filter(|kept| kept.stamp == stamp);
        kept.map(|kept| &kept.brief)
    }

    /// Keeps what a record tells, as it was when `stamp` was taken. `now`: seconds of UNIX time.
    pub fn keep(&mut self, brief: &Arc<Brief>, stamp: Stamp, now: i64) {
        self.forget(&brief.file);
        let bytes = bytes_of(brief);
        if stamp.is_sure(now) && self.bytes + bytes <= self.max_bytes {
            self.bytes += bytes;
            let brief = Arc::clone(brief);
            self.kept.insert(brief.file.clone(), Kept { stamp, brief });
        }
    }

    /// The names of the files of all records, and forgets what had another. A directory that has not changed is not read again.
    pub fn names(&mut self, records: &Records) -> Result<Names, Error> {
        let stamp = Stamp::of(&records.stat_own()?);
        if let Some((_, names)) = self.names.as_ref().filter(|(then, _)| *then == stamp) {
            return Ok(Arc::clone(names));
        }
        let names = Names::from(records.files()?);
        self.keep_only(names.lines());
        self.names = stamp
            .is_sure(Timestamp::now().as_second())
            .then(|| (stamp, Arc::clone(&names)));
        Ok(names)
    }

    /// Forgets all but those of these names.
    fn keep_only<'a>(&mut self, files: impl Iterator<Item = &'a str>) {
        if self.kept.is_empty() {
            return;
        }
        let there: HashSet<&str> = files.collect();
        let bytes = &mut self.bytes;
        self.kept.retain(|file, kept| {
            let stays = there.contains(&**file);
            if !stays {
                *bytes -= bytes_of(&kept.brief);
            }
            stays
        });
    }

    fn forget(&mut self, file: &str) {
        if let Some(kept) = self.kept.remove(file) {
            self.bytes -= bytes_of(&kept.brief);
        }
    }
}

fn bytes_of(brief: &Brief) -> usize {
    brief.bytes() + brief.file.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, time::Duration};

    use proptest::prelude::*;
    use rustix::fs::stat;

    use super::*;

    fn brief(file: &str) -> Arc<Brief> {
        let brief = Brief::unread(file.to_owned(), 0, "it has no whole line yet");
        Arc::new(brief.expect("plain values"))
    }

    fn stamp(path: &Path) -> Stamp {
        Stamp::of(&stat(path).expect("there"))
    }

    #[test]
    fn what_has_changed_is_not_told_again() {
        let temp = tempfile::tempdir().expect("a directory");
        let path = temp.path().join("7.jsonl");
        fs::write(&path, "a line\n").expect("written");
        let before = stamp(&path);
        let mut index = Index::new(1 << 20);
        index.keep(&brief("7.jsonl"), before, before.changed.0 + FRESH_SECONDS + 1);
        assert!(index.get("7.jsonl", stamp(&path)).is_some());
        assert!(index.get("8.jsonl", stamp(&path)).is_none());
        // The clock of files moves on by the tick.
        let changed = |change: &dyn Fn()| {
            let before = stamp(&path);
            while stamp(&path) == before {
                change();
            }
            stamp(&path)
        };
        let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
        let mut last = before;
        for change in [
            &(|| fs::write(&path, "a li\ne\n").expect("written")) as &dyn Fn(),
            &|| fs::set_permissions(&path, mode(0o640)).expect("changed"),
            &|| {
                let other = temp.path().join("other");
                fs::write(&other, "a line\n").expect("written");
                fs::rename(other, &path).expect("replaced");
            },
        ] {
            let now = changed(change);
            assert_ne!(now, last);
            assert!(index.get("7.jsonl", now).is_none());
            index.keep(&brief("7.jsonl"), now, now.changed.0 + FRESH_SECONDS + 1);
            assert!(index.get("7.jsonl", now).is_some());
            last = now;
        }
        // It could be changed once more within the same tick, or the clock was set back.
        for now in [last.changed.0 + FRESH_SECONDS, last.changed.0 - 100] {
            index.keep(&brief("7.jsonl"), last, now);
            assert!(index.get("7.jsonl", last).is_none());
        }
    }

    #[test]
    fn names_are_read_once_from_a_directory_that_has_not_changed() {
        let temp = tempfile::tempdir().expect("a directory");
        let begin = |name: &str| fs::write(temp.path().join(name), "").expect("written");
        begin("7.jsonl");
        let records = Records::open(temp.path()).expect("there");
        let mut index = Index::new(0);
        let mut names = || index.names(&records).expect("read");
        // It was changed a moment ago, and could be once more.
        assert!(!Arc::ptr_eq(&names(), &names()));
        std::thread::sleep(Duration::from_secs(FRESH_SECONDS as u64 + 1));
        let first = names();
        assert!(Arc::ptr_eq(&first, &names()));
        assert_eq!(&*first, "7.jsonl\n");
        begin("8.jsonl");
        assert_eq!(names().lines().count(), 2);
    }

    proptest! {
        #[test]
        fn it_takes_no_more_than_it_may(names in proptest::collection::vec("[a-d]{1,3}", 0..60), some in 0..8_usize) {
            let stamp = Stamp { inode: 1, bytes: 1, changed: (0, 0) };
            let max_bytes = some * bytes_of(&brief("aaa"));
            let mut index = Index::new(max_bytes);
            for name in &names {
                index.keep(&brief(name), stamp, 100);
                let all: usize = index.kept.values().map(|kept| bytes_of(&kept.brief)).sum();
                prop_assert_eq!(index.bytes, all);
                prop_assert!(all <= max_bytes);
            }
            let stay = names.iter().filter(|name| name.starts_with('a')).map(String::as_str);
            index.keep_only(stay);
            prop_assert!(index.kept.keys().all(|name| name.starts_with('a')));
            index.keep_only([].into_iter());
            prop_assert_eq!((index.bytes, index.kept.len()), (0, 0));
        }
    }
}
