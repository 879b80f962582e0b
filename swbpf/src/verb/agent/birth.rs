//! Where jobs are born, and what is born there.

mod asked;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{
    error::Error,
    fold::SlurmJob,
    job::{
        cgroup::{
            Cgroup, Controller, Descendant, Hierarchies, Version,
            slurm::{JobDirName, JobPlace},
            subdirectories,
        },
        id::JobId,
    },
    probe::{Top, Watch},
    record::RecordName,
    snapshot::TargetKind,
    verb::target::{Chosen, OfJob, told},
};
use asked::{Asked, refuse_nested};

/// Directories that are looked at in one.
const MAX_LISTED: usize = 65_536;
/// Longest name of a record of what is no job.
const MAX_NAME: usize = 64;

/// A cgroup below which targets are born.
#[derive(Debug, Clone)]
pub struct Nest {
    dir: PathBuf,
    watch: Watch,
}

/// All of them, by their ids.
#[derive(Debug, Default)]
pub struct Nests {
    known: BTreeMap<u64, Nest>,
    asked: Vec<Asked>,
    /// Of the hierarchy that counts memory.
    version: Option<Version>,
}

/// A target that was found.
pub struct Born {
    /// What is measured.
    pub chosen: Chosen,
    /// What its record is named by.
    pub name: String,
    /// Whose job it is, where that is known yet.
    pub uid: Option<u32>,
    /// How Slurm is asked for it.
    pub id: Option<JobId>,
}

impl Nests {
    /// Those of Slurm, and these cgroups: each cgroup right below one of them is a target.
    pub fn of(hierarchies: &Hierarchies, asked: &[PathBuf]) -> Result<Self, Error> {
        let mut nests = Self {
            version: hierarchies.version_of(Controller::Memory),
            ..Self::default()
        };
        for path in asked {
            let one = Asked::of(hierarchies, path)?;
            // One that is named twice is watched once.
            if { nests.asked.iter() }.all(|other| other.dir != one.dir) {
                nests.asked.push(one);
            }
        }
        let dirs: Vec<&Path> = nests.asked.iter().map(|asked| asked.dir.as_path()).collect();
        refuse_nested(&dirs)?;
        Ok(nests)
    }

    /// Looks which of those that were asked for are there; whether one has come or gone.
    pub fn see_asked(&mut self, hierarchies: &Hierarchies) -> bool {
        let seen = self.asked.iter_mut().map(|asked| asked.see(hierarchies));
        seen.fold(false, |any, has_changed| any | has_changed)
    }

    /// Tells which of them have come: what is made in them has a slot from now on.
    pub fn are_watched(&mut self) {
        for asked in &mut self.asked {
            asked.is_watched();
        }
    }

    /// What is recorded, for whoever starts the agent to see whether it is what was meant.
    pub fn told(&self, hierarchies: &Hierarchies) -> String {
        let root = hierarchies.mount_point_of(Controller::Memory);
        let of_slurm = root.zip(self.version).map(|(root, version)| {
            format!(
                " for the jobs of Slurm below {} (cgroup version {})",
                root.display(),
                version.number()
            )
        });
        let asked: Vec<String> = self.asked.iter().map(Asked::to_string).collect();
        format!("watches{}{}", of_slurm.unwrap_or_default(), asked.concat())
    }

    /// In so many looks, they are looked for once. On version 1 the programs find those of Slurm as they are made: this is in case
    /// one had no room. On version 2 systemd makes slices and scopes anywhere.
    pub fn looked_at_every(&self) -> u64 {
        match self.version {
            Some(Version::V1) => 30,
            _ => 1,
        }
    }

    /// Those that have come since the last look, with their ids.
    pub fn new_ones(&mut self, hierarchies: &Hierarchies) -> Result<Vec<(u64, Watch)>, Error> {
        self.see_asked(hierarchies);
        let slurms = hierarchies.slurm_nests()?.into_iter().map(|nest| Nest {
            watch: Watch {
                levels: nest.levels,
                follow: levels_of_job(hierarchies),
                slurm_alone: nest.slurm_alone,
            },
            dir: nest.dir,
        });
        let asked = self.asked.iter().map(|asked| Nest {
            dir: asked.dir.clone(),
            watch: Watch {
                levels: 1,
                follow: 0,
                slurm_alone: false,
            },
        });
        let mut there = BTreeMap::new();
        for nest in slurms.chain(asked) {
            if let Ok(metadata) = fs::metadata(&nest.dir) {
                there.insert(metadata.ino(), nest);
            }
        }
        let is_new = |(id, _): &(&u64, &Nest)| !self.known.contains_key(*id);
        let new = there
            .iter()
            .filter(is_new)
            .map(|(id, nest)| (*id, nest.watch))
            .collect();
        self.known = there;
        Ok(new)
    }

    /// Whether this is one that is known.
    pub fn is_known(&self, id: u64) -> bool {
        self.known.contains_key(&id)
    }

    /// The directory of a target; `None` where it has gone.
    pub fn find(&self, top: &Top) -> Option<PathBuf> {
        let id = top.cgroup_id;
        // Longer names are cut off.
        let named = self.known.get(&top.above_id).map(|nest| nest.dir.join(&top.name));
        let is_it = |dir: &PathBuf| fs::metadata(dir).is_ok_and(|there| there.ino() == id);
        named.filter(is_it).or_else(|| {
            self.known
                .values()
                .find_map(|nest| search(&nest.dir, nest.watch.levels, nest.watch.slurm_alone, id))
        })
    }

    /// The targets that are there.
    pub fn existing(&self, hierarchies: &Hierarchies) -> Result<Vec<PathBuf>, Error> {
        let mut found: Vec<PathBuf> = Vec::new();
        for place in hierarchies.slurm_jobs()? {
            found.push(place.cgroup.path().to_path_buf());
        }
        for asked in &self.asked {
            found.extend(below(&asked.dir).map(|cgroup| cgroup.path));
        }
        Ok(found)
    }

    /// What the cgroup of a directory is; `None` where it has gone, or is neither a job nor below what was asked for.
    pub fn identify(&self, hierarchies: &Hierarchies, dir: &Path, from_birth: bool) -> Option<Born> {
        let cgroup = hierarchies.cgroup_at(dir).ok()?;
        match hierarchies.slurm_job_at(dir).ok()? {
            Some((place, below)) if below.as_os_str().is_empty() => Some(job(cgroup, place, from_birth)),
            _ => {
                let above = cgroup.path().parent()?;
                self.asked
                    .iter()
                    .any(|asked| asked.dir == above)
                    .then(|| other(cgroup, from_birth))
            }
        }
    }
}

impl Nests {
    /// A target that was removed before it was looked at, by what its slot tells; `None` where it is neither a job nor below
    /// what was asked for.
    pub fn removed(&self, hierarchies: &Hierarchies, top: &Top) -> Option<Born> {
        let version = hierarchies.version_of(Controller::Memory)?;
        let root = hierarchies.mount_point_of(Controller::Memory)?.to_path_buf();
        let nest = self.known.get(&top.above_id);
        let dir = nest.map_or(root.as_path(), |nest| nest.dir.as_path());
        let cgroup = Cgroup::removed(dir.join(&top.name), top.cgroup_id, version, root.clone());
        if self.asked.iter().any(|asked| asked.id == Some(top.above_id)) {
            return Some(other(cgroup, true));
        }
        let place = JobPlace {
            name: JobDirName::from_dir(&top.name)?,
            node: None,
            uid: None,
            cgroup: cgroup.clone(),
        };
        Some(job(cgroup, place, true))
    }
}

fn job(cgroup: Cgroup, place: JobPlace, from_birth: bool) -> Born {
    let name = place.name.to_string();
    Born {
        uid: place.uid,
        id: name.parse().ok(),
        chosen: Chosen {
            told: told(&cgroup, TargetKind::Job, None, None),
            slurm: SlurmJob {
                job_id: Some(name.clone()),
                facts: None,
                why_no_facts: Some("Slurm has not answered yet".to_owned()),
                started: None,
            },
            job: Some(OfJob {
                place,
                below: PathBuf::new(),
            }),
            from_birth,
            stand_in: None,
            cgroup,
        },
        name,
    }
}

fn other(cgroup: Cgroup, from_birth: bool) -> Born {
    let last = cgroup.path().file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = last.chars().take(MAX_NAME).map(plain).collect();
    let mut name = format!("cgroup-{name}");
    // Such is the name of an earlier run.
    if RecordName::of_file(&format!("{name}.jsonl")).is_none_or(|record| record.run != 0) {
        name = name.replace('.', "_");
    }
    Born {
        uid: None,
        id: None,
        name,
        chosen: Chosen {
            told: told(&cgroup, TargetKind::Cgroup, None, None),
            slurm: SlurmJob::default(),
            job: None,
            from_birth,
            stand_in: None,
            cgroup,
        },
    }
}

/// Levels below a job that are told on their own.
fn levels_of_job(hierarchies: &Hierarchies) -> u32 {
    match hierarchies.version_of(Controller::Memory) {
        Some(Version::V2) => 3,
        _ => 2,
    }
}

fn search(dir: &Path, levels: u32, slurm_alone: bool, id: u64) -> Option<PathBuf> {
    let is_apt = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !slurm_alone || name.starts_with("slurm")
    };
    let mut below = below(dir).filter(|cgroup| is_apt(&cgroup.path));
    if levels <= 1 {
        return below.find(|found| found.id == id).map(|found| found.path);
    }
    below.find_map(|found| search(&found.path, levels - 1, false, id))
}

/// The cgroups right below one.
fn below(dir: &Path) -> impl Iterator<Item = Descendant> {
    subdirectories(dir).into_iter().flatten().take(MAX_LISTED)
}
