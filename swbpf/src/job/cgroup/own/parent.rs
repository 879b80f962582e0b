//! Below which cgroups one for a command can be made.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use rustix::io::Errno;

use crate::job::cgroup::hierarchies::{Hierarchies, Hierarchy};
use crate::job::cgroup::membership::Membership;
use crate::job::cgroup::{CgroupDir, CgroupError, Controller, Version, kernfile};

/// The controllers that count for children.
const SUBTREE: &str = "cgroup.subtree_control";

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

/// Whether the children of a cgroup count memory, or what keeps them from it.
pub(super) type ChildrenCount = fn(&Path) -> io::Result<()>;

/// The parents in the hierarchies that count memory, CPU time and huge pages; the first is required. On version 2 it is one for
/// which `children_count` holds.
pub(super) fn find_all(
    hierarchies: &Hierarchies,
    members: &[Membership],
    children_count: ChildrenCount,
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
            (Controller::Memory, Version::V2) => memory_parent(&own, children_count)?,
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
fn memory_parent(own: &CgroupDir, children_count: ChildrenCount) -> Result<CgroupDir, CgroupError> {
    let mut refused = None;
    for dir in own.ancestors() {
        match children_count(dir) {
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
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                CgroupError::may_not_make(own.path.clone(), own.version, source)
            }
            _ => CgroupError::NoMemoryForChildren {
                path: own.path.clone(),
                source,
            },
        }),
    )
}

/// Switches the memory controller on for the children of a cgroup.
pub(super) fn let_children_count_memory(dir: &Path) -> io::Result<()> {
    let file = dir.join(SUBTREE);
    if names_memory(&file)? {
        return Ok(());
    }
    OpenOptions::new().write(true).open(&file)?.write_all(b"+memory")
}

/// Whether that would be done, by all that can be seen of it.
pub(super) fn could_let_children_count_memory(dir: &Path) -> io::Result<()> {
    let file = dir.join(SUBTREE);
    if names_memory(&file)? {
        return Ok(());
    }
    OpenOptions::new().write(true).open(&file)?;
    if !names_memory(&dir.join("cgroup.controllers"))? {
        return Err(Errno::NOENT.into());
    }
    // The root alone, which has no such file, may have both.
    let is_root = !dir.join("cgroup.type").exists();
    if is_root || kernfile::read(&dir.join("cgroup.procs"))?.is_empty() {
        Ok(())
    } else {
        Err(Errno::BUSY.into())
    }
}

fn names_memory(file: &Path) -> io::Result<bool> {
    let text = kernfile::read_text(file)?;
    Ok(text
        .split_ascii_whitespace()
        .any(|name| name == Controller::Memory.name()))
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
            memory_parent(&own, let_children_count_memory)
                .expect("a parent")
                .path,
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
        memory_parent(&own, let_children_count_memory).expect("no limit yet");
        fs::write(own.path.join("memory.high"), "1048576\n").expect("a file");
        let error = memory_parent(&own, let_children_count_memory).expect_err("a limit");
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
        let error = memory_parent(&own, let_children_count_memory).expect_err("no controller");
        assert!(
            matches!(error, CgroupError::NoMemoryForChildren { .. }),
            "{error}"
        );
    }

    #[test]
    fn what_would_be_switched_on_is_known_without_doing_it() {
        let tree = tempfile::tempdir().expect("a temporary directory");
        let dir = dir_of(tree.path(), "a").path;
        let write = |name: &str, text: &str| fs::write(dir.join(name), text).expect("a file");
        let answer = || could_let_children_count_memory(&dir).map_err(|error| error.raw_os_error());
        write(SUBTREE, "cpu\n");
        write("cgroup.controllers", "cpu\n");
        write("cgroup.type", "domain\n");
        write("cgroup.procs", "7\n");
        assert_eq!(answer(), Err(Some(Errno::NOENT.raw_os_error())));
        write("cgroup.controllers", "cpu memory\n");
        assert_eq!(answer(), Err(Some(Errno::BUSY.raw_os_error())));
        write("cgroup.procs", "");
        assert_eq!(answer(), Ok(()));
        write("cgroup.procs", "7\n");
        write(SUBTREE, "cpu memory\n");
        assert_eq!(answer(), Ok(()));
        fs::remove_file(dir.join("cgroup.type")).expect("as in the root");
        write(SUBTREE, "\n");
        assert_eq!(answer(), Ok(()));
        assert_eq!(fs::read(dir.join(SUBTREE)).expect("a file"), b"\n");
    }
}
