//! Memory limits from a cgroup up to the root, and which of them was hit.

use std::path::{Path, PathBuf};

use super::files::Files;
use crate::job::cgroup::{Cgroup, CgroupDir, Controller, Version};

/// Version 1 has no word for "no limit": it is the highest number of pages, which depends on the size of a page.
const UNLIMITED_V1: u64 = (i64::MAX as u64) & !((1 << 24) - 1);

/// The memory limit of one cgroup, and how often it was hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitLevel {
    /// Directory of the cgroup.
    pub path: PathBuf,
    /// Its limit; `None` where it has none.
    pub limit_bytes: Option<u64>,
    /// How often this limit was hit: `memory.failcnt` and `memory.memsw.failcnt`, `max` of `memory.events.local`.
    ///
    /// On version 1 the kernel tries the limit with swap first: where both are equal, it is the one that is hit, and
    /// kernels from 6.15 on do not count that.
    /// Version 2 before 5.2 counts hits of the cgroups below as well.
    pub hits: Option<u64>,
    /// Processes killed for want of memory: on version 1 in this cgroup itself, on version 2 also in those below.
    pub kills: Option<u64>,
}

/// The limits of `cgroup` and those above it, up to the mount point; empty where its memory is not counted.
pub fn limit_levels(cgroup: &Cgroup) -> Vec<LimitLevel> {
    match cgroup.dir(Controller::Memory) {
        Some(dir) => dir
            .ancestors()
            .map(|path| LimitLevel::read(path, dir.version))
            .collect(),
        None => Vec::new(),
    }
}

impl LimitLevel {
    fn read(path: &Path, version: Version) -> Self {
        let files = Files::new(path);
        let (limit_bytes, hits, kills) = match version {
            Version::V1 => (
                files
                    .number("memory.limit_in_bytes")
                    .ok()
                    .filter(|&limit| limit < UNLIMITED_V1),
                hits_v1(&files),
                files.keyed("memory.oom_control").get("oom_kill"),
            ),
            Version::V2 => {
                let all = files.keyed("memory.events");
                let local = files.keyed("memory.events.local").get("max");
                // "max" is not a number: no limit.
                (
                    files.number("memory.max").ok(),
                    local.or_else(|_| all.get("max")),
                    all.get("oom_kill"),
                )
            }
        };
        Self {
            path: path.to_path_buf(),
            limit_bytes,
            hits: hits.ok(),
            kills: kills.ok(),
        }
    }
}

/// Hits of the limit, and of the one with swap where the kernel accounts swap.
fn hits_v1(files: &Files) -> Result<u64, String> {
    let with_swap = files.number("memory.memsw.failcnt").unwrap_or(0);
    files
        .number("memory.failcnt")
        .map(|hits| hits.saturating_add(with_swap))
}

/// The lowest limit that holds for a cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveLimit {
    /// The limit.
    pub bytes: u64,
    /// Directory of the cgroup that has it; `None` where it lies above what is mounted here.
    pub path: Option<PathBuf>,
}

/// The lowest limit that holds for `cgroup`, whose levels are given; `None` where none does.
pub fn effective_limit(cgroup: &Cgroup, levels: &[LimitLevel]) -> Option<EffectiveLimit> {
    // Of equal limits the first, which is the one nearest to the target.
    let limits = levels
        .iter()
        .filter_map(|level| Some((level.limit_bytes?, &level.path)));
    let seen = limits.min_by_key(|&(bytes, _)| bytes);
    let seen = seen.map(|(bytes, path)| EffectiveLimit {
        bytes,
        path: Some(path.clone()),
    });
    match (hierarchical_limit(cgroup.dir(Controller::Memory)), seen) {
        (Some(bytes), seen) if seen.as_ref().is_none_or(|seen| bytes < seen.bytes) => {
            Some(EffectiveLimit { bytes, path: None })
        }
        (_, seen) => seen,
    }
}

/// On version 1 the kernel tells the lowest limit itself, those above a container's view among them.
fn hierarchical_limit(dir: Option<&CgroupDir>) -> Option<u64> {
    let dir = dir.filter(|dir| dir.version == Version::V1)?;
    let limit = Files::new(&dir.path)
        .keyed("memory.stat")
        .get("hierarchical_memory_limit")
        .ok()?;
    (limit < UNLIMITED_V1).then_some(limit)
}

/// The level whose limit was hit between two readings of the same levels: the nearest to the target.
pub fn limit_hit<'a>(before: &[LimitLevel], after: &'a [LimitLevel]) -> Option<&'a LimitLevel> {
    after.iter().find(|level| {
        let earlier = before
            .iter()
            .find(|earlier| earlier.path == level.path)
            .and_then(|earlier| earlier.hits);
        level.hits > Some(earlier.unwrap_or(0))
    })
}
