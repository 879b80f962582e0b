//! Cgroups below the target that are told on their own: the steps and tasks of a job.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    Clock,
    base::{Base, Evidence},
    memory::{page_bytes, to_bytes},
};
use crate::{
    job::{cgroup::slurm::Role, id::StepName},
    probe::{PeakReading, SlotReading},
    snapshot::{Source, Usage},
};

/// Ended rows that are kept: of more, those with the lowest peaks go.
const MAX_ENDED: usize = 4096;

/// One reading of a cgroup below the target.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BelowReading {
    /// What it is.
    pub role: Role,
    /// Its id.
    pub cgroup_id: u64,
    /// Id of the cgroup of its step; its own, if it is one.
    pub step_cgroup_id: Option<u64>,
    /// When it was made; `None` where that was before the measurement.
    pub born_ns: Option<u64>,
    /// When its last process left, while none has come since.
    pub emptied_ns: Option<u64>,
    /// When it was removed.
    pub gone_ns: Option<u64>,
    /// When it was read.
    pub ns: u64,
    /// What was read.
    pub values: Values,
}

/// What was read of a cgroup below the target.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Values {
    /// Its slot.
    Counted {
        /// What it holds.
        slot: Box<SlotReading>,
        /// How that compares with its files, where they were read.
        evidence: Option<Evidence>,
        /// Needed memory by its processes, where no cgroup counts it.
        needed_bytes: Option<u64>,
    },
    /// Its files.
    Sampled {
        /// Needed memory.
        needed_bytes: Option<u64>,
        /// CPU time since it was made.
        usage_ns: Option<u64>,
    },
}

impl Values {
    /// Needed memory at a look.
    fn needed_bytes(&self) -> Option<u64> {
        match self {
            Self::Counted { needed_bytes, .. } | Self::Sampled { needed_bytes, .. } => *needed_bytes,
        }
    }
}

/// One that is there.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    base: Base,
    best: Option<(PeakReading, Base)>,
    /// Highest needed memory by the files, and when.
    highest: Option<(u64, u64)>,
    first: BelowReading,
    /// CPU time by the files before it was measured: none, where the cgroup was made since.
    used_before_ns: Option<u64>,
    /// At the last look but one.
    previous: BelowReading,
    last: BelowReading,
}

/// All of them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Rows {
    live: BTreeMap<u64, Row>,
    /// With when they ended.
    ended: Vec<(u64, Told)>,
    left_out: u64,
    has_begun: bool,
}

/// A row as it is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Told {
    /// What it is.
    pub role: Role,
    /// Id of the cgroup of its step.
    pub step_cgroup_id: Option<u64>,
    /// What it used.
    pub usage: Usage,
}

/// What a row needs to know of the whole.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Begin of the measurement.
    pub begin: Clock,
    /// Number of CPUs that are on.
    pub cpus: usize,
    /// Pages that the CPUs may keep to themselves.
    pub batch_bound_pages: u64,
    /// Whether memory is counted in the hierarchy of the slots.
    pub counts_memory: bool,
}

impl Rows {
    /// Begins a new window: rates are told from the last readings on.
    pub fn turn(&mut self) {
        for row in self.live.values_mut() {
            row.previous = row.last.clone();
        }
    }

    /// Takes readings; one of a removed cgroup is its last.
    pub fn add(&mut self, readings: Vec<BelowReading>, frame: Frame) {
        let is_begin = !self.has_begun;
        self.has_begun = true;
        for reading in readings {
            let (id, is_gone) = (reading.cgroup_id, reading.gone_ns.is_some());
            if is_gone && !self.live.contains_key(&id) && self.has_ended(id) {
                // A process before this one was killed when it had told it, and not given its slot back yet.
                continue;
            }
            let row = self
                .live
                .entry(id)
                .or_insert_with(|| Row::new(&reading, frame.cpus, is_begin));
            row.add(reading);
            if is_gone && let Some(row) = self.live.remove(&id) {
                self.end(row.end_ns(), row.told(frame, false));
            }
        }
    }

    fn has_ended(&self, id: u64) -> bool {
        self.ended.iter().any(|(_, told)| told.usage.cgroup_id == id)
    }

    /// Those that are not among these, which were found at `ns`, have been removed since they were last read.
    pub fn end_absent(&mut self, present: &BTreeSet<u64>, ns: u64, frame: Frame) {
        let absent: Vec<u64> = self
            .live
            .keys()
            .copied()
            .filter(|id| !present.contains(id))
            .collect();
        for id in absent {
            if let Some(mut row) = self.live.remove(&id) {
                row.last.gone_ns = Some(ns);
                self.end(row.end_ns(), row.told(frame, false));
            }
        }
    }

    /// Events may have been lost, and no one knows.
    pub fn doubt(&mut self) {
        self.live.values_mut().for_each(|row| row.base.doubt());
    }

    /// The programs were not called for a time.
    pub fn deafen(&mut self) {
        self.live.values_mut().for_each(|row| row.base.deafen());
    }

    /// Events were lost.
    pub fn lose(&mut self, lru_too: bool) {
        self.live.values_mut().for_each(|row| row.base.lose(lru_too));
    }

    /// Whether a comparison with its files would tell more of this cgroup.
    pub fn wants_files(&self, cgroup_id: u64) -> bool {
        self.live
            .get(&cgroup_id)
            .is_some_and(|row| row.base.bound() != Some(0))
    }

    /// Pages to add to the slot of a cgroup, where that is known. One that has not been read yet was born since.
    pub fn base_of(&self, cgroup_id: u64) -> Option<i64> {
        self.live.get(&cgroup_id).map_or(Some(0), |row| row.base.pages())
    }

    /// How far off so many pages can be that were added to the slot of a cgroup, while it is there.
    pub fn bound_of(&self, cgroup_id: u64, pages: i64) -> Option<u64> {
        self.live.get(&cgroup_id)?.base.bound_of(pages)
    }

    /// The last reading of a cgroup, while it is there.
    pub fn last_of(&self, cgroup_id: u64) -> Option<&BelowReading> {
        self.live.get(&cgroup_id).map(|row| &row.last)
    }

    /// Until when processes of a step were there: its end, or `now_ns` where one still is. `None` for one that was never seen.
    pub fn step_until(&self, step: StepName, now_ns: u64) -> Option<u64> {
        let is_it = |role: &Role| *role == Role::Step(step);
        if let Some(row) = self.live.values().find(|row| is_it(&row.last.role)) {
            return Some(if row.has_ended() { row.end_ns() } else { now_ns });
        }
        let ended = self.ended.iter().rev().find(|(_, told)| is_it(&told.role));
        ended.map(|(end_ns, _)| *end_ns)
    }

    /// All rows that ended after `since_ns`, and those that are there. `in_window`: rates of the last window alone.
    pub fn told(&self, since_ns: u64, frame: Frame, in_window: bool) -> Vec<Told> {
        let is_new = |row: &&Row| !row.has_ended() || row.end_ns() >= since_ns;
        let live = self.live.values().filter(is_new);
        let ended = self
            .ended
            .iter()
            .filter(|(end_ns, _)| *end_ns >= since_ns)
            .map(|(_, told)| told.clone());
        ended.chain(live.map(|row| row.told(frame, in_window))).collect()
    }

    /// Ended rows that are no longer kept.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn end(&mut self, end_ns: u64, told: Told) {
        if !matches!(told.role, Role::Step(_) | Role::Task { .. }) {
            return;
        }
        self.ended.push((end_ns, told));
        if self.ended.len() > MAX_ENDED {
            let lowest = (0..self.ended.len()).min_by_key(|&at| self.ended[at].1.usage.needed_peak_bytes);
            if let Some(lowest) = lowest {
                self.ended.remove(lowest);
                self.left_out += 1;
            }
        }
    }
}

impl Row {
    fn new(reading: &BelowReading, cpus: usize, is_begin: bool) -> Self {
        let base = if reading.born_ns.is_some() {
            Base::from_birth(cpus)
        } else {
            Base::unknown(cpus)
        };
        Self {
            base,
            best: None,
            highest: None,
            used_before_ns: match reading.values {
                Values::Sampled { usage_ns, .. } if is_begin => usage_ns,
                _ => Some(0),
            },
            first: reading.clone(),
            previous: reading.clone(),
            last: reading.clone(),
        }
    }

    fn add(&mut self, reading: BelowReading) {
        match &reading.values {
            Values::Counted {
                slot,
                evidence,
                needed_bytes,
            } => {
                self.see(*needed_bytes, reading.ns);
                if let Some(evidence) = evidence.filter(|_| self.base.bound() != Some(0)) {
                    self.base.learn(evidence);
                }
                let peak = slot.peak;
                let stands = |(known, base): &(PeakReading, Base)| {
                    peak.level <= known.level
                        && base.pages().is_some()
                        && base.rebased() != self.base.rebased()
                };
                if !self.best.as_ref().is_some_and(stands) {
                    self.best = Some((peak, self.base));
                }
            }
            Values::Sampled { needed_bytes, .. } => self.see(*needed_bytes, reading.ns),
        }
        self.last = reading;
    }

    /// Needed memory was seen at a look.
    fn see(&mut self, needed_bytes: Option<u64>, ns: u64) {
        let highest = self.highest.map(|(bytes, _)| bytes);
        if let Some(needed) = needed_bytes
            && Some(needed) > highest
        {
            self.highest = Some((needed, ns));
        }
    }

    fn told(&self, frame: Frame, in_window: bool) -> Told {
        let last = &self.last;
        let end_ns = self.end_ns();
        let usage = Usage {
            source: Source::Sampled,
            cgroup_id: last.cgroup_id,
            began_at: last.born_ns.map(|ns| frame.begin.rfc3339(ns)),
            ended_at: self.has_ended().then(|| frame.begin.rfc3339(end_ns)),
            seconds: end_ns.saturating_sub(self.begin_ns()) as f64 / 1e9,
            needed_bytes: last.values.needed_bytes().filter(|_| !self.has_ended()),
            needed_peak_bytes: self.highest.map(|(bytes, _)| bytes),
            needed_peak_at: self.highest.map(|(_, ns)| frame.begin.rfc3339(ns)),
            error_bound_bytes: None,
            busy_cores: self.busy_cores(in_window),
            busy_seconds: self.busy_ns(last).map(|ns| ns as f64 / 1e9),
            processes_started: None,
            processes_ended: None,
            oom_kills: None,
        };
        let usage = match &last.values {
            Values::Counted { slot, .. } => self.counted(slot, usage, frame),
            Values::Sampled { .. } => usage,
        };
        Told {
            role: last.role,
            step_cgroup_id: last.step_cgroup_id,
            usage,
        }
    }

    fn counted(&self, slot: &SlotReading, usage: Usage, frame: Frame) -> Usage {
        let usage = Usage {
            processes_started: Some(slot.started),
            processes_ended: Some(slot.ended),
            oom_kills: Some(slot.oom_kills),
            ..usage
        };
        if !frame.counts_memory {
            return usage;
        }
        let (best, best_base) = self.best.unwrap_or((slot.peak, self.base));
        let bytes = |level: i64, base: &Base| Some(to_bytes(level + base.pages()?));
        let bound = self.base.bound().zip(best_base.bound());
        let needed_peak_bytes = bytes(best.level, &best_base);
        Usage {
            source: Source::Kernel,
            needed_bytes: bytes(slot.level, &self.base).filter(|_| !self.has_ended()),
            needed_peak_bytes,
            needed_peak_at: needed_peak_bytes
                .map(|_| frame.begin.rfc3339(best.reached_ns.max(self.begin_ns()))),
            error_bound_bytes: bound
                .map(|(now, then)| (now.max(then) + frame.batch_bound_pages) * page_bytes()),
            ..usage
        }
    }

    /// CPU time until a reading, from when it was measured.
    fn busy_ns(&self, until: &BelowReading) -> Option<u64> {
        match &until.values {
            Values::Counted { slot, .. } => Some(slot.busy_ns.values().sum()),
            Values::Sampled { usage_ns, .. } => (*usage_ns)?.checked_sub(self.used_before_ns?),
        }
    }

    fn busy_cores(&self, in_window: bool) -> Option<f64> {
        let (busy_before, from_ns) = if in_window && self.previous.ns < self.last.ns {
            (self.busy_ns(&self.previous)?, self.previous.ns)
        } else {
            (0, self.begin_ns())
        };
        let busy_ns = self.busy_ns(&self.last)?.checked_sub(busy_before)?;
        let wall_ns = self.end_ns().saturating_sub(from_ns);
        (wall_ns > 0).then(|| busy_ns as f64 / wall_ns as f64)
    }

    /// Whether its last process has left, or it is removed.
    fn has_ended(&self) -> bool {
        self.last.emptied_ns.or(self.last.gone_ns).is_some()
    }

    /// When its last process left, or it was removed; else when it was last read.
    fn end_ns(&self) -> u64 {
        let last = &self.last;
        last.emptied_ns.or(last.gone_ns).unwrap_or(last.ns)
    }

    /// When it was made, or first read.
    fn begin_ns(&self) -> u64 {
        self.last.born_ns.unwrap_or(self.first.ns)
    }
}
