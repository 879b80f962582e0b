//! Follows the cgroups below a job: which of them are steps and tasks, and what is read of each.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    count::{Counting, start},
    reading::is_flushed,
    scan::Scanner,
    target::Chosen,
};
use crate::{
    error::Error,
    fold::{BelowReading, Evidence, Rows, Values, compare},
    job::cgroup::{
        Cgroup, Controller, Descendant, Version, saved_path,
        slurm::{Role, role},
        subdirectories,
    },
    probe::{Below, Probe, SlotId, monotonic_ns},
    sampled::cgroupfs::{CpuFiles, MemoryFiles},
    snapshot::LimitOf,
};

/// Directories that are looked at below a target at most: whoever owns a job can make more.
const MAX_LISTED: usize = 4096;

/// What is known of the cgroups below the target.
#[derive(Debug, Serialize, Deserialize)]
pub struct Follower {
    /// What the target is to a job, and where in it.
    role: Option<Role>,
    #[serde(with = "saved_path")]
    below_job: PathBuf,
    version: Version,
    /// Directory of the target.
    #[serde(with = "saved_path")]
    top: PathBuf,
    top_id: u64,
    levels: u32,
    known: BTreeMap<SlotId, Known>,
    /// Cgroups whose files can be compared with their slots.
    #[serde(skip)]
    files: BTreeMap<u64, Cgroup>,
}

/// One of them.
#[derive(Debug, Serialize, Deserialize)]
struct Known {
    id: u64,
    /// Id of the cgroup of its step.
    step: Option<u64>,
    role: Role,
    /// Below the target.
    #[serde(with = "saved_path")]
    path: PathBuf,
}

impl Follower {
    /// Nothing is known yet.
    pub fn new(chosen: &Chosen) -> Self {
        let cgroup = &chosen.cgroup;
        let role = chosen.role();
        // Version 1: job, step, task. Version 2 has `user` and `slurm` between the last two.
        let levels_of_job = match cgroup.version() {
            Version::V1 => 2,
            Version::V2 => 3,
        };
        let levels = match role {
            Some(Role::Job) => levels_of_job,
            Some(Role::Step(_)) => levels_of_job - 1,
            _ => 0,
        };
        Self {
            role,
            below_job: chosen
                .job
                .as_ref()
                .map(|job| job.below.clone())
                .unwrap_or_default(),
            version: cgroup.version(),
            top: cgroup.path().to_path_buf(),
            top_id: cgroup.id(),
            levels,
            known: BTreeMap::new(),
            files: BTreeMap::new(),
        }
    }

    /// How many levels below the target are followed.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// Gives those that are there already slots of their own. The target is tracked: what is born from now on has one.
    pub fn enter_existing(&mut self, target: &Cgroup, counting: &Counting) -> Result<(), Error> {
        let mut above = vec![(PathBuf::new(), counting.slot)];
        for _ in 0..self.levels {
            let mut entered = Vec::new();
            for (path, slot) in &above {
                for (name, id) in names_below(&self.top.join(path)) {
                    let path = path.join(&name);
                    let cgroup = target.below(&path).filter(|cgroup| cgroup.id() == id);
                    if let Some(cgroup) = cgroup
                        && let Some(slot) = enter(counting, *slot, &cgroup)?
                    {
                        self.files.insert(id, cgroup);
                        entered.push((path, slot));
                    }
                }
            }
            above = entered;
        }
        Ok(())
    }

    /// Reads all that have slots. Those that are gone, and nothing below them is there, are returned too.
    pub fn counted(
        &mut self,
        target: &Cgroup,
        counting: &Counting,
        rows: &Rows,
        scanner: &Scanner,
    ) -> Result<(Vec<BelowReading>, Vec<Below>), Error> {
        if self.levels == 0 {
            return Ok((Vec::new(), Vec::new()));
        }
        let probe = &counting.probe.borrow();
        let all = probe.below_one(counting.slot)?;
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
            readings.push(self.read(target, probe, &below, is_over, rows, scanner)?);
            if is_over {
                gone.push(below);
            }
        }
        Ok((readings, gone))
    }

    fn read(
        &mut self,
        target: &Cgroup,
        probe: &Probe,
        below: &Below,
        is_over: bool,
        rows: &Rows,
        scanner: &Scanner,
    ) -> Result<BelowReading, Error> {
        let evidence = if below.gone_ns.is_none() && rows.wants_files(below.cgroup_id) {
            self.evidence(target, probe, below)?
        } else {
            None
        };
        let slot = probe.read_after_look(below.slot)?;
        // Where memory has no cgroups of its own, slots count time alone.
        let needed_bytes = if target.dir(Controller::Memory).is_some() {
            None
        } else {
            self.cgroup_of(target, below)
                .and_then(|cgroup| scanner.memory_below(cgroup).needed())
        };
        Ok(BelowReading {
            role: self.role_of(below.slot).unwrap_or(Role::Other),
            cgroup_id: below.cgroup_id,
            step_cgroup_id: self.known.get(&below.slot).and_then(|known| known.step),
            born_ns: below.born_ns,
            emptied_ns: below.emptied_ns,
            gone_ns: below.gone_ns.filter(|_| is_over),
            ns: slot.read_ns,
            values: Values::Counted {
                slot: Box::new(slot),
                evidence,
                needed_bytes,
            },
        })
    }

    /// Its directories, while it is there.
    fn cgroup_of(&mut self, target: &Cgroup, below: &Below) -> Option<&Cgroup> {
        if below.gone_ns.is_some() {
            return None;
        }
        if !self.files.contains_key(&below.cgroup_id)
            && let Some(known) = self.known.get(&below.slot)
            && let Some(cgroup) = target.below(&known.path)
            && cgroup.id() == below.cgroup_id
        {
            self.files.insert(below.cgroup_id, cgroup);
        }
        self.files.get(&below.cgroup_id)
    }

    /// What its files have more than its slot.
    fn evidence(&mut self, target: &Cgroup, probe: &Probe, below: &Below) -> Result<Option<Evidence>, Error> {
        let Some(cgroup) = self.cgroup_of(target, below) else {
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
            let mut ids = vec![below.cgroup_id];
            let mut above = below.above;
            while above != top
                && names.len() < self.levels as usize
                && let Some(next) = by_slot.get(&above)
            {
                names.push(&next.name);
                ids.push(next.cgroup_id);
                above = next.above;
            }
            let path: PathBuf = names.into_iter().rev().collect();
            let known = Known {
                id: below.cgroup_id,
                step: match self.role {
                    Some(Role::Step(_)) => Some(self.top_id),
                    _ => ids.pop(),
                },
                role: self.role_at(&path),
                path,
            };
            self.known.insert(below.slot, known);
        }
    }

    /// Gives the slots of those that are gone back.
    pub fn release(&mut self, gone: &[Below], counting: &Counting) -> Result<(), Error> {
        for below in gone {
            self.known.remove(&below.slot);
            self.files.remove(&below.cgroup_id);
        }
        counting.probe.borrow_mut().release(gone)
    }

    /// What the cgroup at a path below the target is.
    fn role_at(&self, path: &Path) -> Role {
        role(self.version, &self.below_job.join(path))
    }

    /// All that are known, with their slots, ids and what they are.
    pub fn all(&self) -> impl Iterator<Item = (SlotId, u64, Role)> {
        self.known
            .iter()
            .map(|(slot, known)| (*slot, known.id, known.role))
    }

    /// What the cgroup of a slot is.
    pub fn role_of(&self, slot: SlotId) -> Option<Role> {
        self.known.get(&slot).map(|known| known.role)
    }

    /// Id of the cgroup of a slot; none for the target's.
    pub fn id_of(&self, slot: SlotId) -> Option<u64> {
        self.known.get(&slot).map(|known| known.id)
    }

    /// Whose limit it is, and its directory.
    pub fn whose(&self, cgroup_id: u64, target: &Cgroup) -> (LimitOf, Option<PathBuf>) {
        if cgroup_id == target.id() {
            return (
                self.role.map_or(LimitOf::Target, limit_of),
                Some(self.top.clone()),
            );
        }
        if let Some(known) = self.known.values().find(|known| known.id == cgroup_id) {
            return (limit_of(known.role), Some(self.top.join(&known.path)));
        }
        let is_it = |dir: &&Path| fs::metadata(dir).is_ok_and(|dir| dir.ino() == cgroup_id);
        match self.top.ancestors().skip(1).find(is_it) {
            Some(dir) => (LimitOf::Above, Some(dir.to_path_buf())),
            None => (LimitOf::Below, None),
        }
    }

    /// Reads the files of the steps and tasks that are there.
    pub fn sampled(&self, target: &Cgroup, scanner: &Scanner) -> Vec<BelowReading> {
        let mut readings = Vec::new();
        let own_step = matches!(self.role, Some(Role::Step(_))).then_some(self.top_id);
        let mut above = vec![(PathBuf::new(), own_step)];
        for _ in 0..self.levels {
            let mut entered = Vec::new();
            for (path, step) in &above {
                for (name, id) in names_below(&self.top.join(path)) {
                    let path = path.join(name);
                    let step = step.or(Some(id));
                    readings.extend(self.sample(target, &path, (id, step), scanner));
                    entered.push((path, step));
                }
            }
            entered.truncate(MAX_LISTED);
            above = entered;
        }
        readings
    }

    /// One of them, by its id and that of its step.
    fn sample(
        &self,
        target: &Cgroup,
        path: &Path,
        (id, step): (u64, Option<u64>),
        scanner: &Scanner,
    ) -> Option<BelowReading> {
        let role = self.role_at(path);
        if !matches!(role, Role::Step(_) | Role::Task { .. } | Role::Slurmstepd { .. }) {
            return None;
        }
        let cgroup = target.below(path).filter(|cgroup| cgroup.id() == id)?;
        let is_populated = cgroup.is_populated().unwrap_or(true);
        let ns = monotonic_ns();
        Some(BelowReading {
            role,
            cgroup_id: id,
            step_cgroup_id: step,
            born_ns: None,
            emptied_ns: (!is_populated).then_some(ns),
            gone_ns: None,
            ns,
            values: Values::Sampled {
                needed_bytes: scanner.memory_below(&cgroup).needed(),
                usage_ns: CpuFiles::read(&cgroup).usage_ns,
            },
        })
    }
}

/// Enters a cgroup that is there; `None` where no slot is left: it counts for the one above it.
fn enter(counting: &Counting, above: SlotId, cgroup: &Cgroup) -> Result<Option<SlotId>, Error> {
    let start = start(&MemoryFiles::read(cgroup));
    let name = cgroup.path().file_name().unwrap_or_default().to_string_lossy();
    let is_populated = cgroup.is_populated().unwrap_or(true);
    let mut probe = counting.probe.borrow_mut();
    match probe.track_below(above, cgroup.id(), &name, start, is_populated) {
        // None where it was born since the target was tracked: then all below it were, too.
        Ok(slot) => Ok(slot),
        Err(Error::TableFull { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whose limit it is by what the cgroup is. On version 2 the limit of a step holds for its tasks together.
fn limit_of(role: Role) -> LimitOf {
    match role {
        Role::Job => LimitOf::Job,
        Role::Step(_) | Role::User { .. } => LimitOf::Step,
        Role::Task { .. } | Role::Special { .. } => LimitOf::Task,
        Role::Slurmstepd { .. } | Role::Nested { .. } | Role::Other => LimitOf::Below,
    }
}

/// The names of the cgroups right below one, with their ids.
fn names_below(dir: &Path) -> impl Iterator<Item = (PathBuf, u64)> {
    let below = subdirectories(dir).into_iter().flatten().take(MAX_LISTED);
    below.filter_map(|Descendant { id, path }| Some((path.file_name()?.into(), id)))
}
