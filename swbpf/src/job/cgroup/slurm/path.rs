//! From the path of any cgroup to the job that it belongs to.

use std::path::{Path, PathBuf};

use super::{JobDirName, NodePart, is_slice, uid_of};
use crate::job::cgroup::Version;

/// The job that a path leads into, by its names alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPath {
    /// Version of the hierarchy in which Slurm makes such paths.
    pub version: Version,
    /// Slurm's name of the node, where the path has it.
    pub node: Option<String>,
    /// Whose job it is, where the path says so.
    pub uid: Option<u32>,
    /// What its directory is named by.
    pub name: JobDirName,
    /// The job's own directory: the path, or above it.
    pub job: PathBuf,
    /// What follows below it; see [`role`](super::role()).
    pub below: PathBuf,
}

impl JobPath {
    /// The job of `inside`, a path from the root of a hierarchy, as in `/proc/PID/cgroup`.
    ///
    /// A path of a job has no other above it, so that a cgroup which someone names so within a job is of that job.
    /// `None` for all else: the scope itself, Slurm's own processes, and paths that climb.
    pub fn of(inside: &Path) -> Option<Self> {
        let names: Vec<&str> = inside
            .strip_prefix("/")
            .ok()?
            .iter()
            .map(|name| name.to_str().unwrap_or_default())
            .collect();
        if names.contains(&"..") {
            return None;
        }
        let (version, node, uid, depth) = match names[..] {
            [slurm, user, _, ..] if NodePart::of_v1(slurm).is_some() && uid_of(user).is_some() => {
                (Version::V1, NodePart::of_v1(slurm)?, uid_of(user), 2)
            }
            _ => {
                let scope = names.iter().position(|name| !is_slice(name))?;
                (Version::V2, NodePart::of_v2(names[scope])?, None, scope + 1)
            }
        };
        let name = JobDirName::from_dir(names.get(depth)?)?;
        let mut parts = inside.iter();
        // The root is a part too.
        let job = parts.by_ref().take(depth + 2).collect();
        Some(Self {
            version,
            node: node.to_owned(),
            uid,
            name,
            job,
            below: parts.collect(),
        })
    }
}
