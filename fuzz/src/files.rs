//! Files of the kernel, parts of which whoever owns a cgroup or a process writes.
//!
//! An input is several files: a line `=NAME` begins one, and what follows up to the next is in it.

use std::fs;
use std::path::{Component, Path};

use serde_json::json;
use swbpf::job::cgroup::slurm::{JobDirName, ToldIds};
use swbpf::job::cgroup::{Cgroup, Version, parse};
use swbpf::sampled::cgroupfs::{CpuFiles, LimitLevel, MemoryFiles, effective_limit};
use swbpf::sampled::procfs::{Process, read_share};
use tempfile::TempDir;

/// Most files of an input.
const MOST: usize = 16;

/// A directory with the files of an input.
fn directory(data: &[u8]) -> TempDir {
    let dir = TempDir::new().expect("a directory");
    let mut begin = data;
    for _ in 0..MOST {
        let Some(at) = begin.iter().position(|byte| *byte == b'=') else {
            break;
        };
        let rest = &begin[at + 1..];
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let rest = rest.get(1..).unwrap_or_default();
        let end = rest
            .windows(2)
            .position(|pair| pair == b"\n=")
            .map_or(rest.len(), |at| at + 1);
        let (text, behind) = rest.split_at(end);
        write(dir.path(), name, text);
        begin = behind;
    }
    dir
}

/// Writes a file right in `dir`; names that lead elsewhere are left out.
fn write(dir: &Path, name: &[u8], text: &[u8]) {
    let Ok(name) = str::from_utf8(name) else { return };
    let mut parts = Path::new(name).components();
    if let (Some(Component::Normal(name)), None) = (parts.next(), parts.next()) {
        // Names can be too long.
        let _ = fs::write(dir.join(name), text);
    }
}

/// The files of a cgroup. What is needed is no less than each part of it.
pub fn cgroup_files(data: &[u8]) {
    let dir = directory(data);
    for (version, word) in [(Version::V1, "V1"), (Version::V2, "V2")] {
        let memory = MemoryFiles::read_dir(dir.path(), version);
        for part in [memory.anon_bytes, memory.shmem_bytes, memory.kernel_bytes] {
            assert!(memory.needed().is_none_or(|needed| part <= Some(needed)));
        }
        assert!(memory.working_set() <= memory.current_bytes);
        let place = json!({
            "dir": {"version": word, "path": dir.path(), "mount_point": dir.path()},
            "exact": true,
        });
        let cgroup = json!({
            "main": place["dir"], "id": 1,
            "places": {"Cpu": place, "Cpuacct": place, "Cpuset": place, "Memory": place},
        });
        let cgroup: Cgroup = serde_json::from_value(cgroup).expect("a cgroup as it is saved");
        let cpu = CpuFiles::read(&cgroup);
        assert!(
            cpu.cores_allocated()
                .is_none_or(|cores| cores.is_finite() && cores >= 0.0)
        );
        let level = LimitLevel::read(dir.path(), version);
        let limit = level.limit_bytes;
        let lowest = effective_limit(&cgroup, &[level]).map(|lowest| lowest.bytes);
        assert!(limit.is_none_or(|limit| lowest.is_some_and(|lowest| lowest <= limit)));
        let _ = (cgroup.procs(), cgroup.is_populated());
    }
}

/// The files of a process, and the tables that are read of it.
pub fn proc_files(data: &[u8]) {
    let dir = directory(data);
    let _ = (Process::read(dir.path(), 1), read_share(dir.path()));
    for name in ["job_7", "s0123456789ABC"] {
        if let Some(name) = JobDirName::from_dir(name) {
            let _ = ToldIds::of(&dir.path().join("environ"), name);
        }
    }
    for line in parse::mounts(data) {
        assert!(line.mount.point.is_absolute());
        for member in parse::membership(data) {
            if let Some(there) = line.mount.dir_of(&member.inside) {
                assert!(there.starts_with(&line.mount.point), "{}", there.display());
            }
        }
    }
}
