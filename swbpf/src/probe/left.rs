//! Programs that another agent left in a directory that this one was not given: they go on counting, for nobody.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use super::home::is_loading;

/// Where BPF file systems are mounted by custom.
const MOUNT: &str = "/sys/fs/bpf";
/// Entries of a directory that are looked at.
const MAX_LISTED: usize = 1024;
/// Levels below a mount that are looked at.
const LEVELS: u32 = 2;

/// The directories with pins of an agent that does not run, other than `own`: beside it, and below the usual mount.
pub fn left_beside(own: &Path) -> BTreeSet<PathBuf> {
    let own = fs::canonicalize(own).unwrap_or_else(|_| own.to_owned());
    let roots = own.parent().into_iter().chain([Path::new(MOUNT)]);
    let mut found = BTreeSet::new();
    for root in roots {
        search(root, LEVELS, &own, &mut found);
    }
    found
}

fn search(dir: &Path, levels: u32, own: &Path, found: &mut BTreeSet<PathBuf>) {
    for below in directories(dir) {
        if below == own {
            continue;
        }
        if has_loading(&below) {
            if !is_held(&below) {
                found.insert(below);
            }
        } else if levels > 1 {
            search(&below, levels - 1, own, found);
        }
    }
}

fn has_loading(dir: &Path) -> bool {
    directories(dir).any(|below| {
        let name = below.file_name().unwrap_or_default().to_string_lossy();
        is_loading(&name) && fs::symlink_metadata(below.join("prog_look")).is_ok()
    })
}

/// Whether an agent runs that has the directory; also where that cannot be told.
fn is_held(dir: &Path) -> bool {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = open(dir, flags, Mode::empty());
    opened.map_or(true, |dir| {
        flock(&dir, FlockOperation::NonBlockingLockShared).is_err()
    })
}

/// The directories in one; links are not followed.
fn directories(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(MAX_LISTED);
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_of_an_agent_that_does_not_run_are_found() {
        let temp = tempfile::tempdir().expect("a directory");
        let root = fs::canonicalize(temp.path()).expect("there");
        for dir in ["own/1-2", "before/3-4", "site/deeper/5-6", "runs/7-8", "others/x"] {
            let dir = root.join(dir);
            fs::create_dir_all(&dir).expect("made");
            fs::write(dir.join("prog_look"), "").expect("written");
        }
        std::os::unix::fs::symlink(root.join("before"), root.join("link")).expect("linked");
        let held = fs::File::open(root.join("runs")).expect("there");
        flock(&held, FlockOperation::NonBlockingLockExclusive).expect("free");
        let mut found = BTreeSet::new();
        search(&root, LEVELS, &root.join("own"), &mut found);
        let expected = ["before", "site/deeper"].map(|dir| root.join(dir));
        assert_eq!(found, BTreeSet::from(expected));
    }
}
