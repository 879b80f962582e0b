//! A cgroup of its own for one command: made, joined between fork and exec, limited, removed.

mod parent;
mod remove;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::membership::{self, Membership};
use super::{Cgroup, CgroupDir, CgroupError, Controller, Hierarchies, Place, Version};
use parent::Parent;

/// Highest number in a name: cgroups left behind by earlier processes of the same id can hold lower ones.
const MAX_NUMBER: u32 = 999;

/// The one below it that processes join.
const INSIDE: &str = "command";

/// How long the kernel may take to let go of processes that have just ended.
const PATIENCE: Duration = Duration::from_secs(1);

/// A cgroup made for one command, in the hierarchies that count memory, CPU time and huge pages.
///
/// It lies below the caller's own cgroup, so that the caller's limits hold for the command too. It is removed by
/// [`remove`](Self::remove), or at the latest when it is dropped.
#[derive(Debug)]
pub struct OwnCgroup {
    cgroup: Cgroup,
    made: Made,
    /// Where processes join instead of in the first directory.
    inside: Option<PathBuf>,
    is_done: bool,
}

/// What was made, the directory that counts memory first.
#[derive(Debug, Default)]
struct Made {
    dirs: Vec<CgroupDir>,
    missing: Vec<CgroupError>,
}

impl OwnCgroup {
    /// Makes one.
    ///
    /// On version 2 the processes in the caller's cgroup bar it from having children that count memory. Then the
    /// nearest ancestor that can have them is the parent, unless a limit would be escaped by that. The memory
    /// controller that is switched on there for the children stays on: another command may rely on it by then.
    pub fn create(hierarchies: &Hierarchies) -> Result<Self, CgroupError> {
        let members = membership::own()?;
        let parents = parent::find_all(hierarchies, &members, parent::let_children_count_memory)?;
        let mut number = 0;
        let made = loop {
            match make(&parents, &format!("sw-bpf-run-{}-{number}", std::process::id())) {
                Err(CgroupError::Taken { .. }) if number < MAX_NUMBER => number += 1,
                made => break made?,
            }
        };
        Self::around(hierarchies, &members, made)
    }

    /// Whether one can be made: it is, and is removed, but no controller is switched on for it.
    pub fn try_out(hierarchies: &Hierarchies) -> Result<(), CgroupError> {
        let count = parent::could_let_children_count_memory;
        let parents = parent::find_all(hierarchies, &membership::own()?, count)?;
        let made = make(&parents, &format!("sw-bpf-doctor-{}", std::process::id()))?;
        made.remove();
        Ok(())
    }

    fn around(hierarchies: &Hierarchies, members: &[Membership], made: Made) -> Result<Self, CgroupError> {
        let places = hierarchies.places(|hierarchy| {
            let made = made
                .dirs
                .iter()
                .find(|dir| hierarchy.is_mounted_at(&dir.mount_point));
            match made {
                Some(dir) => Some(Place {
                    dir: dir.clone(),
                    exact: true,
                }),
                None => Some(Place {
                    dir: hierarchy.dir_of(hierarchy.membership(members)?)?,
                    exact: false,
                }),
            }
        });
        let main = made.dirs.first().cloned().ok_or(CgroupError::NotMounted)?;
        Ok(Self {
            cgroup: Cgroup::new(main, places)?,
            made,
            inside: None,
            is_done: false,
        })
    }

    /// The cgroup.
    pub fn cgroup(&self) -> &Cgroup {
        &self.cgroup
    }

    /// Why it has no directory in a hierarchy that counts CPU time or huge pages, where it has none.
    pub fn missing(&self) -> &[CgroupError] {
        &self.made.missing
    }

    /// Limits its memory, swap included; once, before the command starts.
    pub fn set_memory_limit(&self, bytes: u64) -> Result<(), CgroupError> {
        let dir = self
            .cgroup
            .dir(Controller::Memory)
            .ok_or(CgroupError::NoMemoryController)?;
        // On version 1 the limit with swap is tried first, and recent kernels do not count its hits. One page more, and
        // the limit without swap is the one that is hit.
        let with_swap = bytes.saturating_add(rustix::param::page_size() as u64);
        let (limit, swap, swap_limit) = match dir.version {
            Version::V1 => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", with_swap),
            Version::V2 => ("memory.max", "memory.swap.max", 0),
        };
        write(&dir.path.join(limit), &bytes.to_string())?;
        let swap = dir.path.join(swap);
        // Missing on kernels that do not account swap.
        if swap.exists() {
            write(&swap, &swap_limit.to_string())
        } else {
            Ok(())
        }
    }

    /// Has the processes join one below it, where that is what lets them make others whose memory is counted here: on version
    /// 2, where processes in a cgroup bar it from having children that count memory. Before the command starts.
    pub fn allow_nesting(&mut self) -> Result<(), CgroupError> {
        let Some(dir) = self.cgroup.dir(Controller::Memory) else {
            return Ok(());
        };
        if dir.version == Version::V2 {
            write(&dir.path.join("cgroup.subtree_control"), "+memory")?;
            let inside = dir.path.join(INSIDE);
            fs::create_dir(&inside).map_err(|e| CgroupError::from_io("make", &inside, e))?;
            self.inside = Some(inside);
        }
        Ok(())
    }

    /// What the child needs to move itself in.
    pub fn join_files(&self) -> Result<JoinFiles, CgroupError> {
        let open = |dir: &Path| {
            let path = dir.join("cgroup.procs");
            OpenOptions::new()
                .write(true)
                .open(&path)
                .map_err(|e| CgroupError::from_io("open", &path, e))
        };
        let mut dirs: Vec<&Path> = self.made.dirs.iter().map(|dir| dir.path.as_path()).collect();
        if let (Some(first), Some(inside)) = (dirs.first_mut(), &self.inside) {
            *first = inside;
        }
        dirs.into_iter()
            .map(open)
            .collect::<Result<_, _>>()
            .map(JoinFiles)
    }

    /// Removes it, with the cgroups that the command made below it.
    ///
    /// Processes that the command left behind are not ended: after a second they are reported, and the cgroup stays.
    pub fn remove(&mut self) -> Result<(), CgroupError> {
        self.is_done = true;
        let until = Instant::now() + PATIENCE;
        self.made
            .dirs
            .iter()
            .map(|dir| remove::tree(&dir.path, until))
            .fold(Ok(()), remove::both)
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        if !self.is_done {
            // Who wants to know calls `remove`.
            let _ = self.remove();
        }
    }
}

/// The opened `cgroup.procs` of a cgroup in all its hierarchies.
#[derive(Debug)]
pub struct JoinFiles(Vec<File>);

impl JoinFiles {
    /// Moves the calling process into the cgroup.
    ///
    /// Safe between fork and exec: it does nothing but write(2).
    pub fn join(&self) -> io::Result<()> {
        for file in &self.0 {
            rustix::io::write(file, b"0")?;
        }
        Ok(())
    }
}

/// Makes directories of this name below all the parents, or none.
fn make(parents: &[Parent], name: &str) -> Result<Made, CgroupError> {
    let mut made = Made::default();
    for parent in parents {
        let path = parent.dir.path.join(name);
        match fs::create_dir(&path) {
            Ok(()) => made.dirs.push(CgroupDir {
                path,
                ..parent.dir.clone()
            }),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                return Err(made.undo(CgroupError::Taken { path }));
            }
            Err(e) if parent.is_required => {
                return Err(made.undo(CgroupError::may_not_make(path, parent.dir.version, e)));
            }
            Err(e) => made.missing.push(CgroupError::from_io("make", &path, e)),
        }
    }
    Ok(made)
}

impl Made {
    /// Removes the directories because of `error`.
    fn undo(self, error: CgroupError) -> CgroupError {
        self.remove();
        error
    }

    fn remove(self) {
        for dir in self.dirs {
            // Nothing is in it yet; what cannot be removed all the same is an empty directory left.
            let _ = fs::remove_dir(dir.path);
        }
    }
}

/// Writes into a file that is there.
pub(super) fn write(path: &Path, text: &str) -> Result<(), CgroupError> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|e| CgroupError::from_io("write", path, e))
}
