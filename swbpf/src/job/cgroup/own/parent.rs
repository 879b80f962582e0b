//! Below which cgroups one for a command can be made.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use crate::job::cgroup::hierarchies::{Hierarchies, Hierarchy};
use crate::job::cgroup::membership::Membership;
use crate::job::cgroup::{CgroupDir, CgroupError, Controller, Version, kernfile};

/// What holds for all processes of a version 2 cgroup, and would not for one made beside it.
const LIMIT_FILES: [&str; 5] = [
    "memory.max",
    "memory.high",
    "memory.swap.max",
    "cpu.max",
    "cpuset.cpus",
];

/// A cgroup below which one is to be made.
#[derive(Debug)]
pub(super) struct Parent {
    pub dir: CgroupDir,
    /// Whether nothing can be measured without it.
    pub is_required: bool,
}

/// The parents in the hierarchies that count memory, CPU time and huge pages; the first is required.
pub(super) fn find_all(
    hierarchies: &Hierarchies,
    members: &[Membership],
) -> Result<Vec<Parent>, CgroupError> {
    let mut parents: Vec<Parent> = Vec::new();
    for controller in [Controller::Memory, Controller::Cpuacct, Controller::Hugetlb] {
        let Some(hierarchy) = hierarchies
            .hierarchy(controller)
            .filter(|found| is_wanted(found, controller))
        else {
            continue;
        };
        if parents
            .iter()
            .any(|parent| hierarchy.is_mounted_at(&parent.dir.mount_point))
        {
            continue;
        }
        let own = own_dir(hierarchy, members)?;
        let dir = match (controller, own.version) {
            (Controller::Memory, Version::V2) => memory_parent(&own)?,
            _ => own,
        };
        parents.push(Parent {
            dir,
            is_required: parents.is_empty(),
        });
    }
    Ok(parents)
}

/// On version 2 a cgroup does not count huge pages by itself.
fn is_wanted(hierarchy: &Hierarchy, controller: Controller) -> bool {
    controller != Controller::Hugetlb || hierarchy.version == Version::V1
}

/// The caller's own cgroup.
fn own_dir(hierarchy: &Hierarchy, members: &[Membership]) -> Result<CgroupDir, CgroupError> {
    let inside = hierarchy.membership(members).ok_or(CgroupError::NotMounted)?;
    hierarchy.dir_of(inside).ok_or_else(|| CgroupError::NotVisible {
        pid: std::process::id(),
        path: inside.to_path_buf(),
    })
}

/// On version 2: the nearest cgroup, from `own` upwards, whose children count memory or can be made to.
///
/// Only the root may have such children beside processes, so this is mostly not the caller's own cgroup. Then it
/// must not have limits that the command would escape.
fn memory_parent(own: &CgroupDir) -> Result<CgroupDir, CgroupError> {
    let mut refused = None;
    for dir in own.ancestors() {
        match let_children_count_memory(dir) {
            Ok(()) => {
                return Ok(CgroupDir {
                    path: dir.to_path_buf(),
                    ..own.clone()
                });
            }
            Err(e) => refused.get_or_insert(e),
        };
        if let Some(file) = LIMIT_FILES.into_iter().find(|file| is_limited(&dir.join(file))) {
            return Err(CgroupError::WouldEscapeLimit {
                path: dir.to_path_buf(),
                file,
            });
        }
    }
    Err(
        refused.map_or(CgroupError::NoMemoryController, |source| match source.kind() {
            io::ErrorKind::PermissionDenied => {
                CgroupError::from_io("make a cgroup beside", &own.path, source)
            }
            _ => CgroupError::NoMemoryForChildren {
                path: own.path.clone(),
                source,
            },
        }),
    )
}

fn let_children_count_memory(dir: &Path) -> io::Result<()> {
    let file = dir.join("cgroup.subtree_control");
    if kernfile::read_text(&file)?
        .split_ascii_whitespace()
        .any(|name| name == Controller::Memory.name())
    {
        return Ok(());
    }
    OpenOptions::new().write(true).open(&file)?.write_all(b"+memory")
}

/// Whether the file sets a limit: `max` and `max 100000` do not, nor does an empty set of processors.
fn is_limited(file: &Path) -> bool {
    kernfile::read_text(file).is_ok_and(|text| !text.trim_ascii().is_empty() && !text.starts_with("max"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn dir_of(mount_point: &Path, path: &str) -> CgroupDir {
        let dir = CgroupDir {
            version: Version::V2,
            path: mount_point.join(path),
            mount_point: mount_point.to_path_buf(),
        };
        fs::create_dir_all(&dir.path).expect("a directory");
        dir
    }

    #[test]
    fn the_nearest_ancestor_whose_children_count_memory_is_the_parent() {
        let tree = tempfile::tempdir().expect("a temporary directory");
        let own = dir_of(tree.path(), "user.slice/session.scope");
        fs::write(
            tree.path().join("user.slice/cgroup.subtree_control"),
            "cpu memory pids\n",
        )
        .expect("a file");
        assert_eq!(
            memory_parent(&own).expect("a parent").path,
            tree.path().join("user.slice")
        );
    }

    #[test]
    fn a_limit_is_not_escaped() {
        let tree = tempfile::tempdir().expect("a temporary directory");
        let own = dir_of(tree.path(), "user.slice/session.scope");
        fs::write(tree.path().join("user.slice/cgroup.subtree_control"), "memory\n").expect("a file");
        fs::write(own.path.join("memory.max"), "max\n").expect("a file");
        fs::write(own.path.join("cpu.max"), "max 100000\n").expect("a file");
        fs::write(own.path.join("cpuset.cpus"), "\n").expect("a file");
        memory_parent(&own).expect("no limit yet");
        fs::write(own.path.join("memory.high"), "1048576\n").expect("a file");
        let error = memory_parent(&own).expect_err("a limit");
        assert!(
            matches!(
                error,
                CgroupError::WouldEscapeLimit {
                    file: "memory.high",
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn without_the_controller_the_reason_is_told() {
        let tree = tempfile::tempdir().expect("a temporary directory");
        let own = dir_of(tree.path(), "a");
        let error = memory_parent(&own).expect_err("no controller");
        assert!(
            matches!(error, CgroupError::NoMemoryForChildren { .. }),
            "{error}"
        );
    }
}
