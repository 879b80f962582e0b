//! Page cache, which the kernel could take back at any moment: it is not needed.

use std::path::PathBuf;

use support::measure::{MIB, program};
use tempfile::TempDir;

use crate::truth::{FOOTPRINT, check_peak, measure};

/// A directory on the file system of the build, which is a disk where /tmp may be a tmpfs, and a file name in it.
pub fn on_disk() -> (TempDir, PathBuf) {
    let build = program("workload");
    let dir = tempfile::tempdir_in(build.parent().expect("a directory")).expect("a directory");
    let path = dir.path().join("file");
    (dir, path)
}

/// 64 MiB are written and read back. What the file system keeps to find them, at most 1/32, is kernel memory.
#[test]
fn file_written_and_read() {
    let size = 64 * MIB;
    let (_dir, path) = on_disk();
    let path = path.to_str().expect("a name of letters");
    let Some(run) = measure(&["file-read", "--size", "64M", "--hold-ms", "0", "--path", path]) else {
        return;
    };
    check_peak(&run.summary, 0, FOOTPRINT + size / 32);
    // The kernel's own counter has them all.
    let memory = &run.summary.memory;
    assert!(memory.peak_bytes >= Some(size), "{memory:?}");
    assert!(memory.cache_inflation > Some(16.0), "{memory:?}");
}
