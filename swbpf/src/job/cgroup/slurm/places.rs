//! The jobs that have cgroups on this host.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{JobDirName, JobPath, JobPlace, NodePart, is_slice, procs, uid_of};
use crate::job::cgroup::hierarchies::Hierarchy;
use crate::job::cgroup::membership::{self, Membership};
use crate::job::cgroup::{CgroupError, Controller, Hierarchies, Version, kernfile};
use crate::job::id::StepName;

/// Slices are nested two or three deep; `user.slice` and what users may make in theirs is not gone into any further.
const MAX_SLICES: usize = 4;

/// A memory hierarchy of the kernel holds at most this many cgroups.
const MAX_ENTRIES: usize = 65_535;

impl Hierarchies {
    /// The jobs that have a cgroup here, by their paths; those that have just gone are left out.
    ///
    /// Looks only where Slurm puts jobs, whatever else there is.
    pub fn slurm_jobs(&self) -> Result<Vec<JobPlace>, CgroupError> {
        // Which hierarchy a path was met in first: the one that counts memory, where that has it.
        let mut found: BTreeMap<PathBuf, (&Hierarchy, JobPath)> = BTreeMap::new();
        let mut looked_at: Vec<&Hierarchy> = Vec::new();
        for hierarchy in self.by_rank() {
            if looked_at.iter().any(|known| std::ptr::eq(*known, hierarchy)) {
                continue;
            }
            looked_at.push(hierarchy);
            for job in jobs_in(hierarchy)? {
                found.entry(job.job.clone()).or_insert((hierarchy, job));
            }
        }
        let mut places = Vec::new();
        for (hierarchy, job) in found.into_values() {
            places.extend(self.place(hierarchy, job)?);
        }
        Ok(places)
    }

    /// The job that the cgroup at `path` belongs to, and what it is there, as [`JobPath::below`] of it; `None` where it
    /// is of no job. `path` is the directory of a cgroup.
    pub fn slurm_job_at(&self, path: &Path) -> Result<Option<(JobPlace, PathBuf)>, CgroupError> {
        let Ok(real) = fs::canonicalize(path) else {
            return Ok(None);
        };
        let Some((hierarchy, inside)) = self.inside_of(&real) else {
            return Ok(None);
        };
        self.job_inside(hierarchy, &inside)
    }

    /// The job that process `pid` is in; `None` where it is in none.
    pub fn own_slurm_job(&self) -> Result<Option<(JobPlace, PathBuf)>, CgroupError> {
        self.job_of_members(&membership::own()?)
    }

    pub(super) fn job_of_members(
        &self,
        members: &[Membership],
    ) -> Result<Option<(JobPlace, PathBuf)>, CgroupError> {
        for hierarchy in self.by_rank() {
            if let Some(inside) = hierarchy.membership(members)
                && let Some(found) = self.job_inside(hierarchy, inside)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn job_inside(
        &self,
        hierarchy: &Hierarchy,
        inside: &Path,
    ) -> Result<Option<(JobPlace, PathBuf)>, CgroupError> {
        let Some(job) = job_path(hierarchy, inside) else {
            return Ok(None);
        };
        let below = job.below.clone();
        Ok(self.place(hierarchy, job)?.map(|place| (place, below)))
    }

    /// `None` where the job has just gone.
    fn place(&self, hierarchy: &Hierarchy, job: JobPath) -> Result<Option<JobPlace>, CgroupError> {
        let cgroup = match self.cgroup_inside(hierarchy, &job.job) {
            Ok(cgroup) => cgroup,
            Err(CgroupError::Gone { .. }) => return Ok(None),
            Err(e) => return Err(e),
        };
        let uid = job.uid.or_else(|| procs::uid(&cgroup, Path::new("/proc")));
        Ok(Some(JobPlace {
            cgroup,
            node: job.node,
            uid,
            name: job.name,
        }))
    }
}

impl Hierarchies {
    /// Where directories of jobs are made in the hierarchy that counts memory, what is above those too.
    pub fn slurm_nests(&self) -> Result<Vec<Nest>, CgroupError> {
        let version = self.version_of(Controller::Memory);
        let root = self.mount_point_of(Controller::Memory);
        let tree = version
            .zip(root)
            .and_then(|(version, root)| Tree::at(version, root));
        tree.map_or(Ok(Vec::new()), |tree| {
            let mut nests = tree.nests()?;
            nests.retain(|nest| tree.is_ours(&nest.dir));
            Ok(nests)
        })
    }
}

/// A directory below which Slurm makes those of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nest {
    /// The directory.
    pub dir: PathBuf,
    /// How many levels below it; 1: directly.
    pub levels: u32,
    /// Whether only in a child of it whose name begins with `slurm`: it is not Slurm's own.
    pub slurm_alone: bool,
    node: Option<String>,
    uid: Option<u32>,
}

impl Nest {
    /// One of Slurm's, in which jobs are.
    fn of(dir: PathBuf, node: NodePart<'_>) -> Self {
        Self {
            dir,
            levels: 1,
            slurm_alone: false,
            node: node.to_owned(),
            uid: None,
        }
    }

    /// One in which Slurm makes its own.
    fn above(dir: PathBuf, levels: u32) -> Self {
        Self {
            dir,
            levels,
            slurm_alone: true,
            node: None,
            uid: None,
        }
    }
}

impl JobPlace {
    /// The steps that have a cgroup here.
    pub fn steps(&self) -> Result<Vec<StepName>, CgroupError> {
        let mut steps: Vec<_> = names_in(self.cgroup.path())?
            .iter()
            .filter_map(|name| StepName::from_dir(name))
            .collect();
        steps.sort_unstable();
        Ok(steps)
    }

    /// Directory of a step, whether it is there or not; [`Hierarchies::cgroup_at`] makes a cgroup of it.
    pub fn step_path(&self, step: StepName) -> PathBuf {
        self.cgroup.path().join(format!("step_{step}"))
    }
}

/// The job of `inside`; below a container's root the names begin there.
fn job_path(hierarchy: &Hierarchy, inside: &Path) -> Option<JobPath> {
    JobPath::of(inside)
        .or_else(|| {
            hierarchy.mounts().find_map(|mount| {
                let rest = inside.strip_prefix(&mount.root).ok()?;
                let mut job = JobPath::of(&Path::new("/").join(rest))?;
                job.job = mount.root.join(job.job.strip_prefix("/").ok()?);
                Some(job)
            })
        })
        .filter(|job| job.version == hierarchy.version)
}

/// The jobs of one hierarchy.
fn jobs_in(hierarchy: &Hierarchy) -> Result<Vec<JobPath>, CgroupError> {
    // The first mount is the widest view.
    let Some(mount) = hierarchy.mounts().next() else {
        return Ok(Vec::new());
    };
    let Some(tree) = Tree::at(hierarchy.version, &mount.point) else {
        return Ok(Vec::new());
    };
    let mut jobs = tree.jobs()?;
    for job in &mut jobs {
        if let Some(inside) = mount.inside_of(&job.job) {
            job.job = inside;
        }
    }
    Ok(jobs)
}

/// A mounted hierarchy.
struct Tree {
    version: Version,
    /// Who owns its root, and whatever Slurm or systemd makes in it.
    owner: u32,
    root: PathBuf,
}

impl Tree {
    /// That below a mount point; `None` where nothing is there.
    fn at(version: Version, root: &Path) -> Option<Self> {
        Some(Self {
            version,
            owner: fs::metadata(root).ok()?.uid(),
            root: root.to_path_buf(),
        })
    }

    /// Where Slurm makes directories of jobs, or will.
    fn nests(&self) -> Result<Vec<Nest>, CgroupError> {
        match self.version {
            Version::V1 => self.nests_v1(),
            Version::V2 => self.nests_v2(),
        }
    }

    /// `slurm[_NODE]/uid_U/job_J`
    fn nests_v1(&self) -> Result<Vec<Nest>, CgroupError> {
        let mut nests = vec![Nest::above(self.root.clone(), 3)];
        for slurm in names_in(&self.root)? {
            let Some(node) = NodePart::of_v1(&slurm) else {
                continue;
            };
            let slurm = self.root.join(&slurm);
            for user in names_in(&slurm)? {
                let Some(uid) = uid_of(&user) else { continue };
                nests.push(Nest {
                    uid: Some(uid),
                    ..Nest::of(slurm.join(&user), node)
                });
            }
            nests.push(Nest {
                levels: 2,
                ..Nest::of(slurm, node)
            });
        }
        Ok(nests)
    }

    /// `SLICE…/[NODE_]slurmstepd.scope/{job_J,SLUID}`
    fn nests_v2(&self) -> Result<Vec<Nest>, CgroupError> {
        let mut nests = Vec::new();
        let mut slices = vec![self.root.clone()];
        for depth in 0..=MAX_SLICES {
            let mut below = Vec::new();
            for slice in slices {
                for name in names_in(&slice)? {
                    let path = slice.join(&name);
                    if let Some(node) = NodePart::of_v2(&name) {
                        nests.push(Nest::of(path, node));
                    } else if depth < MAX_SLICES && is_slice(&name) && self.is_ours(&path) {
                        below.push(path);
                    }
                }
                nests.push(Nest::above(slice, 2));
            }
            slices = below;
        }
        Ok(nests)
    }

    /// The directories of jobs that are there, as [`JobPath::job`].
    fn jobs(&self) -> Result<Vec<JobPath>, CgroupError> {
        let mut jobs = Vec::new();
        for nest in self.nests()?.iter().filter(|nest| nest.levels == 1) {
            self.add_jobs(nest, &mut jobs)?;
        }
        Ok(jobs)
    }

    /// Adds the jobs whose directories are in one.
    fn add_jobs(&self, nest: &Nest, jobs: &mut Vec<JobPath>) -> Result<(), CgroupError> {
        if !self.is_ours(&nest.dir) {
            return Ok(());
        }
        for name in names_in(&nest.dir)? {
            let path = nest.dir.join(&name);
            if let Some(name) = JobDirName::from_dir(&name)
                && self.is_ours(&path)
            {
                jobs.push(JobPath {
                    version: self.version,
                    node: nest.node.clone(),
                    uid: nest.uid,
                    name,
                    job: path,
                    below: PathBuf::new(),
                });
            }
        }
        Ok(())
    }

    /// Whether no user made it.
    fn is_ours(&self, dir: &Path) -> bool {
        fs::symlink_metadata(dir).is_ok_and(|there| there.is_dir() && there.uid() == self.owner)
    }
}

/// Names of the directories in `dir` that are UTF-8, as all of Slurm's are; none where it is gone.
fn names_in(dir: &Path) -> Result<Vec<String>, CgroupError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if kernfile::is_gone(&e) => return Ok(Vec::new()),
        Err(e) => return Err(CgroupError::from_io("list", dir, e)),
    };
    let mut names = Vec::new();
    // A directory that is removed while it is listed ends the list early.
    for entry in entries.map_while(Result::ok) {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if names.len() >= MAX_ENTRIES {
            return Err(CgroupError::TooMany {
                path: dir.to_path_buf(),
                max: MAX_ENTRIES,
            });
        }
        names.extend(entry.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}
