//! Old records go: by age, and where all of them take too much room.

use std::{
    collections::BTreeSet,
    io,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::fs::{AtFlags, Dir as Entries, FileType, Stat, statat, unlinkat};

use super::{Dir, Inode, RecordName};

/// Records that one round looks at, and that it removes.
const MAX_LOOKED_AT: usize = 1_000_000;
const MAX_REMOVED: usize = 10_000;
/// The unit of [`Stat::st_blocks`].
const BLOCK: u64 = 512;

/// What is kept.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// So long after the last line.
    pub age: Duration,
    /// So much room on the disk, of all records together.
    pub bytes: u64,
}

/// What a round did.
#[derive(Debug, Default)]
pub struct Pruned {
    /// Records that it removed.
    pub removed: usize,
    /// The room that they took.
    pub removed_bytes: u64,
    /// The room that those take that are left.
    pub left_bytes: u64,
    /// The first failure to remove one.
    pub failure: Option<io::Error>,
}

/// A file as it was seen.
struct Seen {
    file: String,
    stat: Stat,
}

impl Dir {
    /// Removes records, the oldest first, but none of `writing`, whatever their names are by now. What is no record is left alone.
    pub fn prune(&self, keep: Keep, writing: &BTreeSet<Inode>, now: SystemTime) -> io::Result<Pruned> {
        let mut seen = self.seen()?;
        seen.sort_by(|a, b| (written(&a.stat), &a.file).cmp(&(written(&b.stat), &b.file)));
        let mut pruned = Pruned {
            left_bytes: seen.iter().map(|seen| room(&seen.stat)).sum(),
            ..Pruned::default()
        };
        let oldest = now
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .saturating_sub(keep.age);
        for seen in seen.iter().filter(|seen| !writing.contains(&seen.stat.st_ino)) {
            let is_old = written(&seen.stat) < oldest.as_secs() as i64;
            if pruned.removed >= MAX_REMOVED || !(is_old || pruned.left_bytes > keep.bytes) {
                break;
            }
            match self.remove(seen) {
                Ok(true) => {
                    let room = room(&seen.stat);
                    pruned.removed += 1;
                    pruned.removed_bytes += room;
                    pruned.left_bytes -= room;
                }
                Ok(false) => {}
                Err(error) => {
                    pruned.failure.get_or_insert(error);
                }
            }
        }
        Ok(pruned)
    }

    fn seen(&self) -> io::Result<Vec<Seen>> {
        let mut seen = Vec::new();
        for entry in Entries::read_from(&*self.fd)?.take(MAX_LOOKED_AT) {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().ok().and_then(RecordName::of_file) else {
                continue;
            };
            let file = name.file();
            let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            // One that cannot be looked at has gone.
            let stat = statat(&*self.fd, &file, AtFlags::SYMLINK_NOFOLLOW).ok();
            seen.extend(stat.filter(is_file).map(|stat| Seen { file, stat }));
        }
        Ok(seen)
    }

    /// Removes a file, unless its name is another's by now, or it was written to.
    fn remove(&self, seen: &Seen) -> io::Result<bool> {
        let _names = self.names();
        let Ok(now) = statat(&*self.fd, &seen.file, AtFlags::SYMLINK_NOFOLLOW) else {
            return Ok(false);
        };
        let then = &seen.stat;
        if (now.st_ino, now.st_size, written(&now)) != (then.st_ino, then.st_size, written(then)) {
            return Ok(false);
        }
        unlinkat(&*self.fd, &seen.file, AtFlags::empty())?;
        Ok(true)
    }
}

fn room(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0) * BLOCK
}

/// Seconds of UNIX time.
fn written(stat: &Stat) -> i64 {
    stat.st_mtime
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::fs::{MetadataExt, symlink},
        process::Command,
    };

    use super::{super::Run, *};

    const DAY: Duration = Duration::from_hours(24);
    const KIB: u64 = 1 << 10;
    const ALL: Keep = Keep {
        age: Duration::from_hours(24 * 1000),
        bytes: u64::MAX,
    };

    struct Scene {
        _temp: tempfile::TempDir,
        dir: Dir,
        now: SystemTime,
    }

    impl Scene {
        fn new() -> Self {
            let temp = tempfile::tempdir().expect("a directory");
            let dir = Dir::open(temp.path()).expect("there");
            Self {
                _temp: temp,
                dir,
                now: SystemTime::now(),
            }
        }

        /// A file of so many KiB, last written so many days ago.
        fn file(&self, name: &str, kib: u64, days: u32) {
            let path = self.dir.path_of(name);
            fs::write(&path, vec![b'x'; (kib * KIB) as usize]).expect("written");
            let file = File::options().write(true).open(path).expect("there");
            file.set_modified(self.now - DAY * days).expect("set back");
        }

        fn prune(&self, keep: Keep, writing: &[&str]) -> Pruned {
            let inode = |name: &&str| fs::metadata(self.dir.path_of(name)).expect("there").ino();
            let writing = writing.iter().map(inode).collect();
            self.dir.prune(keep, &writing, self.now).expect("a round")
        }

        fn there(&self) -> Vec<String> {
            let listed = fs::read_dir(self.dir.path_of("")).expect("listed");
            let names = listed.map(|entry| entry.expect("an entry").file_name());
            let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
            names.sort_unstable();
            names
        }
    }

    #[test]
    fn records_go_by_age() {
        let scene = Scene::new();
        for (name, days) in [("1.jsonl", 9), ("2.1.jsonl", 8), ("2.jsonl", 6), ("3.jsonl", 20)] {
            scene.file(name, 4, days);
        }
        let keep = Keep { age: DAY * 7, ..ALL };
        let pruned = scene.prune(keep, &["3.jsonl"]);
        assert_eq!(scene.there(), ["2.jsonl", "3.jsonl"]);
        assert_eq!((pruned.removed, pruned.removed_bytes), (2, 8 * KIB));
        assert_eq!(scene.prune(keep, &[]).removed, 1);
    }

    #[test]
    fn one_that_is_being_written_stays_by_whatever_name() {
        let scene = Scene::new();
        scene.file("1.jsonl", 4, 9);
        let path = |name| scene.dir.path_of(name);
        let writing = BTreeSet::from([fs::metadata(path("1.jsonl")).expect("there").ino()]);
        fs::rename(path("1.jsonl"), path("1.1.jsonl")).expect("renamed");
        scene.file("1.jsonl", 4, 9);
        let keep = Keep { age: DAY * 7, ..ALL };
        let pruned = scene.dir.prune(keep, &writing, scene.now).expect("a round");
        assert_eq!((pruned.removed, scene.there()), (1, vec!["1.1.jsonl".to_owned()]));
    }

    #[test]
    fn the_oldest_go_where_all_take_too_much() {
        let scene = Scene::new();
        for (name, days) in [("1.jsonl", 1), ("2.jsonl", 4), ("3.jsonl", 3), ("4.jsonl", 2)] {
            scene.file(name, 64, days);
        }
        let keep = |kib| Keep {
            bytes: kib * KIB,
            ..ALL
        };
        assert_eq!(scene.prune(keep(256), &[]).removed, 0);
        let pruned = scene.prune(keep(130), &["3.jsonl"]);
        assert_eq!(scene.there(), ["1.jsonl", "3.jsonl"]);
        assert_eq!((pruned.removed, pruned.left_bytes), (2, 128 * KIB));
        // Those that are being written stay, whatever they take.
        let writing = ["1.jsonl", "3.jsonl"];
        assert_eq!(scene.prune(keep(1), &writing).left_bytes, 128 * KIB);
    }

    #[test]
    fn what_is_no_record_stays() {
        let scene = Scene::new();
        for name in ["README", "1.json", "x.jsonl", "1.jsonl.gz"] {
            scene.file(name, 4, 900);
        }
        symlink("README", scene.dir.path_of("2.jsonl")).expect("a link");
        fs::create_dir(scene.dir.path_of("3.jsonl")).expect("a directory");
        let made = Command::new("mkfifo").arg(scene.dir.path_of("4.jsonl")).status();
        assert!(made.expect("mkfifo").success());
        let before = scene.there();
        let keep = Keep {
            age: Duration::ZERO,
            bytes: 0,
        };
        assert_eq!(scene.prune(keep, &[]).removed, 0);
        assert_eq!(scene.there(), before);
    }

    /// A job that begins anew while old records go takes the name of its earlier record.
    #[test]
    fn a_name_that_is_another_files_by_now_stays() {
        let scene = Scene::new();
        scene.file("1.jsonl", 4, 9);
        let seen = scene.dir.seen().expect("listed");
        drop(scene.dir.create("1", Run::Latest).expect("a file"));
        assert!(!scene.dir.remove(&seen[0]).expect("looked at"));
        assert_eq!(scene.there(), ["1.1.jsonl", "1.jsonl"]);
        // So does one that was written to.
        let seen = scene.dir.seen().expect("listed");
        scene.file("1.1.jsonl", 8, 9);
        let earlier = seen.iter().find(|seen| seen.file == "1.1.jsonl").expect("seen");
        assert!(!scene.dir.remove(earlier).expect("looked at"));
        assert_eq!(scene.there(), ["1.1.jsonl", "1.jsonl"]);
    }

    #[test]
    fn a_round_removes_no_more_than_so_many() {
        let scene = Scene::new();
        for number in 1..=MAX_REMOVED + 10 {
            File::create(scene.dir.path_of(&format!("{number}.jsonl"))).expect("made");
        }
        let keep = Keep {
            age: Duration::ZERO,
            ..ALL
        };
        let later = scene.now + DAY;
        let round = || scene.dir.prune(keep, &BTreeSet::new(), later).expect("a round");
        assert_eq!(round().removed, MAX_REMOVED);
        assert_eq!(round().removed, 10);
    }
}
