//! The hierarchies of this machine, and the cgroup at a path.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::membership::{self, Membership};
use super::mounts::{self, Device, Mount, MountLine};
use super::{Cgroup, CgroupDir, CgroupError, Controller, Version, kernfile};

/// Longest mount table: a node with ten thousand containers has a few MiB.
const MAX_MOUNTINFO_BYTES: u64 = 64 << 20;

/// One hierarchy and where it is mounted.
#[derive(Debug, Clone)]
pub(super) struct Hierarchy {
    pub version: Version,
    device: Device,
    controllers: Vec<Controller>,
    /// The widest view first.
    mounts: Vec<Mount>,
}

impl Hierarchy {
    /// The directory of the cgroup `inside`, a path as `/proc/PID/cgroup` gives it, where there is one.
    pub fn dir_of(&self, inside: &Path) -> Option<CgroupDir> {
        let mut dirs = self
            .mounts
            .iter()
            .filter_map(|mount| Some((mount, mount.dir_of(inside)?)));
        let (mount, path) = dirs.find(|(_, dir)| dir.is_dir())?;
        Some(CgroupDir {
            version: self.version,
            path,
            mount_point: mount.point.clone(),
        })
    }

    /// Where it is mounted, the widest view first.
    pub fn mounts(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    /// Whether `point` is a mount of this hierarchy.
    pub fn is_mounted_at(&self, point: &Path) -> bool {
        self.mounts.iter().any(|mount| mount.point == point)
    }

    /// Whether a cgroup at `inside` would be seen.
    pub fn shows(&self, inside: &Path) -> bool {
        self.mounts.iter().any(|mount| mount.dir_of(inside).is_some())
    }

    /// The innermost mount that `dir` is below, and the path within the hierarchy. `dir` has no links in it.
    fn inside_of(&self, dir: &Path) -> Option<(&Mount, PathBuf)> {
        let within = self
            .mounts
            .iter()
            .filter_map(|mount| Some((mount, mount.inside_of(dir)?)));
        within.max_by_key(|(mount, _)| mount.point.as_os_str().len())
    }

    /// What a process with these memberships is in here.
    pub fn membership<'a>(&self, members: &'a [Membership]) -> Option<&'a Path> {
        let here = |member: &&Membership| match self.version {
            Version::V1 => member
                .controllers
                .iter()
                .any(|controller| self.controllers.contains(controller)),
            Version::V2 => member.version == Version::V2,
        };
        members.iter().find(here).map(|member| member.inside.as_path())
    }

    /// Reads which controllers version 2 has. Every cgroup of it counts CPU time and can be frozen.
    fn learn_controllers(&mut self) {
        let Some(mount) = self.mounts.first() else { return };
        let text = kernfile::read_text(&mount.point.join("cgroup.controllers")).unwrap_or_default();
        self.controllers = text
            .split_ascii_whitespace()
            .filter_map(|n| Controller::by_name(n.as_bytes()))
            .collect();
        self.controllers
            .extend([Controller::Cpuacct, Controller::Freezer]);
    }
}

/// The cgroup hierarchies of this machine, as this process sees them.
#[derive(Debug, Clone)]
pub struct Hierarchies {
    /// Version 1 first: what it has, version 2 has not.
    all: Vec<Hierarchy>,
}

impl Hierarchies {
    /// What is mounted here.
    pub fn detect() -> Result<Self, CgroupError> {
        let path = Path::new("/proc/self/mountinfo");
        let table =
            kernfile::read_up_to(path, MAX_MOUNTINFO_BYTES).map_err(|e| CgroupError::of_proc(path, e))?;
        Self::from_lines(mounts::parse(&table).into_iter().filter(is_visible))
    }

    /// What the given mount table says, in the form of `/proc/PID/mountinfo`.
    pub fn parse(mountinfo: &[u8]) -> Result<Self, CgroupError> {
        Self::from_lines(mounts::parse(mountinfo).into_iter())
    }

    fn from_lines(lines: impl Iterator<Item = MountLine>) -> Result<Self, CgroupError> {
        let mut all: Vec<Hierarchy> = Vec::new();
        for MountLine {
            device,
            mount,
            version,
            controllers,
        } in lines
        {
            match all.iter_mut().find(|hierarchy| hierarchy.device == device) {
                Some(known) => known.mounts.push(mount),
                None => all.push(Hierarchy {
                    version,
                    device,
                    controllers,
                    mounts: vec![mount],
                }),
            }
        }
        for hierarchy in &mut all {
            hierarchy
                .mounts
                .sort_by_key(|mount| mount.root.components().count());
            if hierarchy.version == Version::V2 {
                hierarchy.learn_controllers();
            }
        }
        all.sort_by_key(|hierarchy| hierarchy.version);
        if all.is_empty() {
            Err(CgroupError::NotMounted)
        } else {
            Ok(Self { all })
        }
    }

    /// Version of the hierarchy that has `controller`; `None` where none has.
    pub fn version_of(&self, controller: Controller) -> Option<Version> {
        self.hierarchy(controller).map(|hierarchy| hierarchy.version)
    }

    /// Where the hierarchy that has `controller` is mounted; `None` where none has.
    pub fn mount_point_of(&self, controller: Controller) -> Option<&Path> {
        let mount = self.hierarchy(controller)?.mounts.first();
        mount.map(|mount| mount.point.as_path())
    }

    /// Whether a hierarchy of this version is mounted, whatever it has.
    pub fn has(&self, version: Version) -> bool {
        self.all.iter().any(|hierarchy| hierarchy.version == version)
    }

    pub(super) fn hierarchy(&self, controller: Controller) -> Option<&Hierarchy> {
        self.all
            .iter()
            .find(|hierarchy| hierarchy.controllers.contains(&controller))
    }

    /// The hierarchy that counts memory, then the others by how well they tell jobs apart.
    pub(super) fn by_rank(&self) -> impl Iterator<Item = &Hierarchy> {
        let ranked = Controller::ALL
            .into_iter()
            .filter_map(|controller| self.hierarchy(controller));
        ranked.chain(&self.all)
    }

    /// The cgroup at `path`: a directory below any mount of a hierarchy, or a path from the root of a hierarchy such
    /// as `/slurm/uid_0/job_1`, the one that counts memory first.
    pub fn cgroup_at(&self, path: &Path) -> Result<Cgroup, CgroupError> {
        let real = fs::canonicalize(path);
        if let Ok(real) = &real
            && let Some((hierarchy, inside)) = self.inside_of(real)
        {
            return self.cgroup_inside(hierarchy, &inside);
        }
        if let Some((hierarchy, inside)) = self.by_rank().find_map(|hierarchy| below_root(hierarchy, path)) {
            return self.cgroup_inside(hierarchy, &inside);
        }
        Err(match real {
            Err(e) if !is_absent(&e) => CgroupError::from_io("look at", path, e),
            Err(_) => CgroupError::Gone {
                path: path.to_path_buf(),
            },
            Ok(_) => CgroupError::NotACgroup {
                path: path.to_path_buf(),
                example: self.example(),
            },
        })
    }

    /// The cgroup that process `pid` is in.
    pub fn cgroup_of_pid(&self, pid: u32) -> Result<Cgroup, CgroupError> {
        self.cgroup_of_members(pid, &membership::of_pid(pid)?)
    }

    /// The cgroup that this process is in.
    pub fn own_cgroup(&self) -> Result<Cgroup, CgroupError> {
        self.cgroup_of_members(std::process::id(), &membership::own()?)
    }

    /// The hierarchy that the directory `real`, which has no links in it, belongs to, and its path there.
    pub(super) fn inside_of(&self, real: &Path) -> Option<(&Hierarchy, PathBuf)> {
        let found = self
            .all
            .iter()
            .filter_map(|hierarchy| Some((hierarchy, hierarchy.inside_of(real)?)));
        // Mounts can lie below one another: the innermost is the one that is seen.
        let (hierarchy, (_, inside)) = found.max_by_key(|(_, (mount, _))| mount.point.as_os_str().len())?;
        real.is_dir().then_some((hierarchy, inside))
    }

    /// Where cgroups are, for an error to show.
    fn example(&self) -> PathBuf {
        self.by_rank()
            .next()
            .and_then(|hierarchy| hierarchy.mounts.first())
            .map(|m| m.point.clone())
            .unwrap_or_default()
    }
}

/// The cgroup at `path`, taken from the root of `hierarchy`. Links and `..` must not lead out of it.
fn below_root<'a>(hierarchy: &'a Hierarchy, path: &Path) -> Option<(&'a Hierarchy, PathBuf)> {
    let inside = Path::new("/").join(path);
    hierarchy.mounts.iter().find_map(|mount| {
        let rest = inside.strip_prefix(&mount.root).ok()?;
        let real = fs::canonicalize(mounts::join(&mount.point, rest)).ok()?;
        real.is_dir().then_some((hierarchy, mount.inside_of(&real)?))
    })
}

/// Whether the error says that a path leads nowhere.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput
    ) || kernfile::is_gone(error)
}

/// Whether a mount can be seen: another one can lie over it.
fn is_visible(line: &MountLine) -> bool {
    fs::metadata(&line.mount.point)
        .is_ok_and(|there| (rustix::fs::major(there.dev()), rustix::fs::minor(there.dev())) == line.device)
}
