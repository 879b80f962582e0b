//! The removal of a cgroup with those below it.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::job::cgroup::{CgroupError, kernfile, tree};

/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// How many of the processes that are in the way an error tells.
const MAX_TOLD: usize = 10;

/// Removes `dir` and all below it, waiting at most `until` then for the processes that are in the way.
pub(super) fn tree(dir: &Path, until: Instant) -> Result<(), CgroupError> {
    while !try_once(dir)? {
        if Instant::now() >= until {
            let mut pids = tree::procs(dir)?;
            pids.truncate(MAX_TOLD);
            return Err(CgroupError::InUse {
                paths: vec![dir.to_path_buf()],
                pids,
            });
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Both removals as one: directories that are left behind are told together, of other failures the first.
pub(super) fn both(one: Result<(), CgroupError>, other: Result<(), CgroupError>) -> Result<(), CgroupError> {
    match (one, other) {
        (
            Err(CgroupError::InUse { mut paths, mut pids }),
            Err(CgroupError::InUse {
                paths: more_paths,
                pids: more_pids,
            }),
        ) => {
            paths.extend(more_paths);
            pids.extend(more_pids);
            pids.sort_unstable();
            pids.dedup();
            pids.truncate(MAX_TOLD);
            Err(CgroupError::InUse { paths, pids })
        }
        (one, other) => one.and(other),
    }
}

/// Removes what can be; whether nothing is left.
fn try_once(dir: &Path) -> Result<bool, CgroupError> {
    let below = tree::descendants(dir)?;
    let children_first = below.iter().rev().map(|descendant| descendant.path.as_path());
    let mut all_gone = true;
    for path in children_first.chain([dir]) {
        match fs::remove_dir(path) {
            Ok(()) => {}
            Err(e) if kernfile::is_gone(&e) => {}
            Err(e) if is_busy(&e) => all_gone = false,
            Err(e) => return Err(CgroupError::from_io("remove", path, e)),
        }
    }
    Ok(all_gone)
}

fn is_busy(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::BUSY | Errno::NOTEMPTY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_directories_go_first() {
        let tree_dir = tempfile::tempdir().expect("a temporary directory");
        let top = tree_dir.path().join("top");
        fs::create_dir_all(top.join("a/b/c")).expect("directories");
        fs::create_dir_all(top.join("d")).expect("directories");
        tree(&top, Instant::now()).expect("all removed");
        assert!(!top.exists());
    }

    #[test]
    fn what_is_in_use_is_reported_after_the_patience() {
        let tree_dir = tempfile::tempdir().expect("a temporary directory");
        let tops = ["memory", "cpuacct"].map(|name| tree_dir.path().join(name));
        for top in &tops {
            fs::create_dir_all(top.join("a")).expect("directories");
            fs::write(top.join("a/cgroup.procs"), "12\n7\n").expect("a file");
        }
        let until = Instant::now() + Duration::from_millis(10);
        let removed = tops.iter().map(|top| tree(top, until)).fold(Ok(()), both);
        assert!(Instant::now() >= until);
        match removed {
            Err(CgroupError::InUse { paths, pids }) => assert_eq!((paths, pids), (tops.into(), vec![7, 12])),
            other => panic!("{other:?}"),
        }
    }
}
