//! The cgroups below one, and the processes in them.
//!
//! Cgroups come and go during a walk: what vanishes is left out. The walk keeps its own stack, since whoever owns a
//! cgroup may nest others in it as deep as a path can be written.

use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{CgroupDir, CgroupError, Version, kernfile};

/// A memory hierarchy of the kernel holds at most this many cgroups.
const MAX_CGROUPS: usize = 65_535;

/// Longest `cgroup.procs`: as many process ids as the kernel can give, of seven digits each.
const MAX_PROCS_BYTES: u64 = (4 << 20) * 8;

/// Links of a directory that has none in it: its name and its own `.`; each below adds its `..` (`kernfs_refresh_inode`). Listing a
/// cgroup means going through its files, some forty, and most cgroups have none below them.
const LINKS_OF_LEAF: u64 = 2;

/// A cgroup below another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descendant {
    /// Inode number of the directory, which is the kernel's cgroup id.
    pub id: u64,
    /// The directory.
    pub path: PathBuf,
}

/// The cgroups below `dir`, each after its parent.
pub(super) fn descendants(dir: &Path) -> Result<Vec<Descendant>, CgroupError> {
    let mut found: Vec<Descendant> = Vec::new();
    add_children(dir, &mut found)?;
    let mut next = 0;
    while let Some(path) = found.get(next).map(|descendant| descendant.path.clone()) {
        add_children(&path, &mut found)?;
        if found.len() > MAX_CGROUPS {
            return Err(CgroupError::TooMany {
                path: dir.to_path_buf(),
                max: MAX_CGROUPS,
            });
        }
        next += 1;
    }
    Ok(found)
}

fn add_children(dir: &Path, found: &mut Vec<Descendant>) -> Result<(), CgroupError> {
    match subdirectories(dir) {
        Ok(children) => found.extend(children),
        Err(e) if kernfile::is_gone(&e) => {}
        Err(e) => return Err(CgroupError::from_io("list", dir, e)),
    }
    Ok(())
}

/// The cgroups right below the one at `dir`, in no order.
pub fn subdirectories(dir: &Path) -> io::Result<impl Iterator<Item = Descendant>> {
    let is_leaf = fs::metadata(dir)?.nlink() == LINKS_OF_LEAF;
    let entries = (!is_leaf).then(|| fs::read_dir(dir)).transpose()?;
    // A directory that is removed while it is listed ends the list early; its children went before it.
    let entries = entries.into_iter().flatten().map_while(Result::ok);
    Ok(entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| Descendant {
            id: entry.ino(),
            path: entry.path(),
        }))
}

/// The processes in `dir` and below it, in ascending order.
pub(super) fn procs(dir: &Path) -> Result<Vec<u32>, CgroupError> {
    let mut pids = procs_of(dir)?;
    for descendant in descendants(dir)? {
        pids.append(&mut procs_of(&descendant.path)?);
    }
    // A process that moves during the walk can be met twice.
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

/// The processes in `dir` itself.
pub(super) fn procs_of(dir: &Path) -> Result<Vec<u32>, CgroupError> {
    let file = dir.join("cgroup.procs");
    match kernfile::read_up_to(&file, MAX_PROCS_BYTES) {
        Ok(bytes) => Ok(parse_procs(&bytes)),
        Err(e) if kernfile::is_gone(&e) || is_threaded(&e) => Ok(Vec::new()),
        Err(e) => Err(CgroupError::from_io("read", &file, e)),
    }
}

/// A threaded cgroup of version 2 has no list; its processes stand in the one above that is not.
fn is_threaded(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::OPNOTSUPP)
}

/// One process id a line; 0 stands for a process that this PID namespace does not see.
fn parse_procs(bytes: &[u8]) -> Vec<u32> {
    String::from_utf8_lossy(bytes)
        .lines()
        .filter_map(|line| line.parse().ok())
        .filter(|&pid| pid != 0)
        .collect()
}

/// Whether a process is in `dir` or below it.
pub(super) fn is_populated(dir: &CgroupDir) -> Result<bool, CgroupError> {
    if dir.version == Version::V2
        && let Ok(events) = kernfile::read_text(&dir.path.join("cgroup.events"))
        && let Some(&populated) = kernfile::keyed(&events).get("populated")
    {
        return Ok(populated != 0);
    }
    // Version 1, and the root of version 2, which has no events.
    if has_procs(&dir.path)? {
        return Ok(true);
    }
    for descendant in descendants(&dir.path)? {
        if has_procs(&descendant.path)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a process is in `dir` itself, seen from this PID namespace or not.
fn has_procs(dir: &Path) -> Result<bool, CgroupError> {
    let file = dir.join("cgroup.procs");
    match kernfile::read_up_to(&file, MAX_PROCS_BYTES) {
        Ok(bytes) => Ok(!bytes.is_empty()),
        Err(e) if kernfile::is_gone(&e) || is_threaded(&e) => Ok(false),
        Err(e) => Err(CgroupError::from_io("read", &file, e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hidden_and_odd_process_ids_are_left_out() {
        assert_eq!(parse_procs(b"12\n0\nx\n-4\n99999999999\n7\n"), [12, 7]);
    }

    #[test]
    fn a_directory_with_files_alone_has_nothing_below_and_others_have_their_own() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let names = |path: &Path| {
            let mut names: Vec<PathBuf> = { subdirectories(path).expect("listed") }
                .map(|below| below.path)
                .collect();
            names.sort();
            names
        };
        fs::write(dir.path().join("cgroup.procs"), "").expect("a file");
        assert!(names(dir.path()).is_empty());
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        fs::create_dir_all(two.join("deep")).expect("made");
        assert_eq!(names(dir.path()), std::slice::from_ref(&two));
        fs::create_dir(&one).expect("made");
        assert_eq!(names(dir.path()), [one, two.clone()]);
        assert_eq!(descendants(dir.path()).expect("walked").len(), 3);
        assert!(subdirectories(&two.join("gone")).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            parse_procs(&bytes);
        }
    }
}
