//! Memory limits from a cgroup up to the root.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::Files;
use crate::job::cgroup::{Cgroup, CgroupDir, Controller, Version};

/// Version 1 has no word for "no limit": it is the highest number of pages, which depends on the size of a page.
const UNLIMITED_V1: u64 = (i64::MAX as u64) & !((1 << 24) - 1);

/// The memory limit of one cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitLevel {
    /// Directory of the cgroup.
    pub path: PathBuf,
    /// Its limit; `None` where it has none.
    pub limit_bytes: Option<u64>,
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
    /// Reads that of one directory.
    pub fn read(path: &Path, version: Version) -> Self {
        let files = Files::new(path);
        let limit_bytes = match version {
            Version::V1 => files
                .number("memory.limit_in_bytes")
                .ok()
                .filter(|&limit| limit < UNLIMITED_V1),
            // "max" is not a number: no limit.
            Version::V2 => files.number("memory.max").ok(),
        };
        Self {
            path: path.to_path_buf(),
            limit_bytes,
        }
    }
}

/// The lowest limit that holds for a cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
