//! Follows the cgroups below a job: which of them are steps and tasks, and what is read of each.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    os::unix::fs::{DirEntryExt, MetadataExt},
    path::{Path, PathBuf},
};

use super::{
    count::{Counting, start},
    reading::is_flushed,
};
use crate::{
    error::Error,
    fold::{BelowReading, Place, Role, Rows, Values, compare},
    job::cgroup::{Cgroup, Hierarchies, Version},
    probe::{Below, SlotId, monotonic_ns},
    sampled::cgroupfs::{CpuFiles, MemoryFiles},
    snapshot::LimitOf,
};

/// Directories that are looked at below a target at most: whoever owns a job can make more.
const MAX_LISTED: usize = 4096;

/// What is known of the cgroups below the target.
pub struct Follower {
    place: Place,
    /// Directory of the target.
    top: PathBuf,
    levels: u32,
    known: BTreeMap<SlotId, Known>,
    /// Cgroups whose files can be compared with their slots.
    files: BTreeMap<u64, Cgroup>,
    hierarchies: Option<Hierarchies>,
}

/// One of them.
struct Known {
    id: u64,
    role: Role,
    /// Below the target.
    path: PathBuf,
}

impl Follower {
    /// Nothing is known yet.
    pub fn new(cgroup: &Cgroup, place: &Place) -> Self {
        // Version 1: job, step, task. Version 2 has `user` and `slurm` between the last two.
        let below_job = match cgroup.version() {
            Version::V1 => 2,
            Version::V2 => 3,
        };
        let levels = match place {
            Place::Job => below_job,
            Place::Step(_) => below_job - 1,
            Place::Other => 0,
        };
        Self {
            place: place.clone(),
            top: cgroup.path().to_path_buf(),
            levels,
            known: BTreeMap::new(),
            files: BTreeMap::new(),
            hierarchies: None,
        }
    }

    /// How many levels below the target are followed.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// Gives those that are there already slots of their own. The target is tracked: what is born from now on has one.
    pub fn enter_existing(
        &mut self,
        hierarchies: &Hierarchies,
        counting: &mut Counting,
    ) -> Result<(), Error> {
        self.hierarchies = Some(hierarchies.clone());
        let mut above = vec![(self.top.clone(), counting.slot)];
        for _ in 0..self.levels {
            let mut entered = Vec::new();
            for (dir, slot) in &above {
                for (name, id) in subdirectories(dir) {
                    let path = dir.join(&name);
                    if let Some(slot) = self.enter(counting, *slot, id, &path)? {
                        entered.push((path, slot));
                    }
                }
            }
            above = entered;
        }
        Ok(())
    }

    /// Enters one; `None` where it has gone, or no slot is left: it counts for the one above it.
    fn enter(
        &mut self,
        counting: &mut Counting,
        above: SlotId,
        id: u64,
        path: &Path,
    ) -> Result<Option<SlotId>, Error> {
        let Some(cgroup) = self.cgroup_at(path, id) else {
            return Ok(None);
        };
        let start = start(&MemoryFiles::read(&cgroup));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match counting.probe.track_below(above, id, &name, start) {
            Ok(Some(slot)) => Ok(Some(slot)),
            // Born since the target was tracked: then what is below it was too.
            Ok(None) | Err(Error::TableFull { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The cgroup of a directory below the target, if it is the one of this id.
    fn cgroup_at(&mut self, path: &Path, id: u64) -> Option<Cgroup> {
        let cgroup = self.hierarchies.as_ref()?.cgroup_at(path).ok()?;
        (cgroup.id() == id).then_some(cgroup)
    }

    /// Reads all that have slots. Those that are gone, and nothing below them is there, are returned too.
    pub fn counted(
        &mut self,
        counting: &Counting,
        rows: &Rows,
    ) -> Result<(Vec<BelowReading>, Vec<Below>), Error> {
        if self.levels == 0 {
            return Ok((Vec::new(), Vec::new()));
        }
        let all = counting.probe.below()?;
        self.learn(&all, counting.slot);
        let in_use: BTreeSet<SlotId> = all
            .iter()
            .filter(|below| below.gone_ns.is_none())
            .map(|below| below.above)
            .collect();
        let mut readings = Vec::with_capacity(all.len());
        let mut gone = Vec::new();
        for below in all {
            let is_over = below.gone_ns.is_some() && !in_use.contains(&below.slot);
            readings.push(self.read(counting, &below, is_over, rows)?);
            if is_over {
                gone.push(below);
            }
        }
        Ok((readings, gone))
    }

    fn read(
        &mut self,
        counting: &Counting,
        below: &Below,
        is_over: bool,
        rows: &Rows,
    ) -> Result<BelowReading, Error> {
        let evidence = if below.gone_ns.is_none() && rows.wants_files(below.cgroup_id) {
            self.evidence(counting, below)?
        } else {
            None
        };
        let slot = counting.probe.read_after_look(below.slot)?;
        Ok(BelowReading {
            role: self.role_of(below.slot).unwrap_or(Role::Other),
            cgroup_id: below.cgroup_id,
            born_ns: below.born_ns,
            gone_ns: below.gone_ns.filter(|_| is_over),
            ns: slot.read_ns,
            values: Values::Counted(Box::new(slot), evidence),
        })
    }

    /// What its files have more than its slot.
    fn evidence(
        &mut self,
        counting: &Counting,
        below: &Below,
    ) -> Result<Option<crate::fold::Evidence>, Error> {
        let probe = &counting.probe;
        if !self.files.contains_key(&below.cgroup_id)
            && let Some(path) = self
                .known
                .get(&below.slot)
                .map(|known| self.top.join(&known.path))
            && let Some(cgroup) = self.cgroup_at(&path, below.cgroup_id)
        {
            self.files.insert(below.cgroup_id, cgroup);
        }
        let Some(cgroup) = self.files.get(&below.cgroup_id) else {
            return Ok(None);
        };
        let before = probe.peek(below.slot)?;
        let files_ns = monotonic_ns();
        let files = MemoryFiles::read(cgroup);
        let after = probe.peek(below.slot)?;
        let changed_ns = probe.read_after_look(below.slot)?.last_change_ns;
        let is_flushed = is_flushed(probe.flushed_ns()?, changed_ns, files_ns);
        let spread = after.spread_since(&before, files_ns);
        Ok(spread.map(|spread| compare(&(after, spread), &files, is_flushed)))
    }

    /// Finds the path of each, which is that of the one above it and its own name.
    fn learn(&mut self, all: &[Below], top: SlotId) {
        let by_slot: BTreeMap<SlotId, &Below> = all.iter().map(|below| (below.slot, below)).collect();
        for below in all {
            if self
                .known
                .get(&below.slot)
                .is_some_and(|known| known.id == below.cgroup_id)
            {
                continue;
            }
            let mut names = vec![below.name.as_str()];
            let mut above = below.above;
            while above != top
                && names.len() < self.levels as usize
                && let Some(next) = by_slot.get(&above)
            {
                names.push(&next.name);
                above = next.above;
            }
            let path: PathBuf = names.into_iter().rev().collect();
            let known = Known {
                id: below.cgroup_id,
                role: role(&self.place, &path),
                path,
            };
            self.known.insert(below.slot, known);
        }
    }

    /// Gives the slots of those that are gone back.
    pub fn release(&mut self, gone: &[Below], counting: &mut Counting) -> Result<(), Error> {
        for below in gone {
            self.known.remove(&below.slot);
            self.files.remove(&below.cgroup_id);
        }
        counting.probe.release(gone)
    }

    /// What the cgroup of a slot is.
    pub fn role_of(&self, slot: SlotId) -> Option<Role> {
        self.known.get(&slot).map(|known| known.role.clone())
    }

    /// Id of the cgroup of a slot; none for the target's.
    pub fn id_of(&self, slot: SlotId) -> Option<u64> {
        self.known.get(&slot).map(|known| known.id)
    }

    /// Whose limit it is, and its directory.
    pub fn whose(&self, cgroup_id: u64, target: &Cgroup) -> (LimitOf, Option<PathBuf>) {
        if cgroup_id == target.id() {
            let of = match self.place {
                Place::Job => LimitOf::Job,
                Place::Step(_) => LimitOf::Step,
                Place::Other => LimitOf::Target,
            };
            return (of, Some(self.top.clone()));
        }
        if let Some(known) = self.known.values().find(|known| known.id == cgroup_id) {
            let of = match known.role {
                Role::Task(..) => LimitOf::Task,
                Role::Step(_) => LimitOf::Step,
                Role::Slurmstepd(_) | Role::Other => LimitOf::Below,
            };
            return (of, Some(self.top.join(&known.path)));
        }
        let is_it = |dir: &&Path| fs::metadata(dir).is_ok_and(|dir| dir.ino() == cgroup_id);
        match self.top.ancestors().skip(1).find(is_it) {
            Some(dir) => (LimitOf::Above, Some(dir.to_path_buf())),
            None => (LimitOf::Below, None),
        }
    }

    /// Reads the files of those that are there; one of `rows` that is not has ended.
    pub fn sampled(&self, target: &Cgroup, rows: &Rows) -> Vec<BelowReading> {
        let _ = (target, rows);
        Vec::new()
    }
}

/// The directories in one, with their inode numbers.
fn subdirectories(dir: &Path) -> Vec<(PathBuf, u64)> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .map_while(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| (PathBuf::from(entry.file_name()), entry.ino()))
        .take(MAX_LISTED)
        .collect()
}

/// What a directory below the target is.
fn role(place: &Place, path: &Path) -> Role {
    let mut names: Vec<&OsStr> = path.iter().collect();
    let own;
    if let Place::Step(step) = place {
        own = format!("step_{step}");
        names.insert(0, OsStr::new(&own));
    }
    let names: Vec<_> = names.iter().filter_map(|name| name.to_str()).collect();
    let step = |name: &str| name.strip_prefix("step_").map(str::to_owned);
    let task = |name: &str| name.strip_prefix("task_").and_then(|task| task.parse().ok());
    match names[..] {
        [one] => step(one).map_or(Role::Other, Role::Step),
        [one, "slurm"] => step(one).map_or(Role::Other, Role::Slurmstepd),
        [one, other] | [one, "user", other] => step(one)
            .zip(task(other))
            .map_or(Role::Other, |(step, task)| Role::Task(step, task)),
        _ => Role::Other,
    }
}
