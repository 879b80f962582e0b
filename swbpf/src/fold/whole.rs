//! The whole of a measurement, reading by reading.

use serde::{Deserialize, Serialize};

use super::{
    Clock, KernelReading, Reading, Scan, Unknown,
    base::Base,
    below::{BelowReading, Rows},
    cpu,
    kills::Kill,
    looks::Looks,
    memory::{self, page_bytes},
    overhead::Calibration,
    peak::Witnesses,
    series::Series,
    slurm::SlurmJob,
};
use crate::{
    job::cgroup::slurm::Role,
    probe::{Losses, PeakReading},
    sampled::{cgroupfs::MemoryFiles, procfs::Process},
    snapshot::{Coverage, Exit, Kind, Probes, SCHEMA_VERSION, Snapshot, Target, TargetKind, Task},
};

/// Pages that each CPU may have taken off the charge and not yet off the statistics: a `folio_batch` of `uncharge_batch`.
const UNCHARGED_AHEAD: u64 = 31;

/// What is measured, and how; it does not change meanwhile.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Subject {
    /// What is measured.
    pub target: Target,
    /// What it is to a Slurm job.
    pub role: Option<Role>,
    /// That job.
    pub slurm: SlurmJob,
    /// Whether it was tracked from its birth.
    pub from_start: bool,
    /// Why it is measured from then on.
    pub from_reason: String,
    /// How the numbers are obtained.
    pub probes: Probes,
    /// Number of CPUs that are on.
    pub cpus: usize,
    /// How far a peak can be below the truth because of what the CPUs keep to themselves, in pages.
    pub batch_bound_pages: u64,
    /// Why memory cannot be counted event by event, where it cannot.
    pub memory_not_counted: Option<String>,
    /// Whether this process measures others beside it: its CPU time is not spent on this one alone.
    pub is_one_of_many: bool,
}

/// A measurement under way.
#[derive(Debug, Serialize, Deserialize)]
pub struct Fold {
    pub(super) subject: Subject,
    pub(super) begin: Clock,
    pub(super) base: Base,
    /// The highest level so far, with the base that held then: a loss after it does not change what it was.
    pub(super) best: Option<(PeakReading, Base)>,
    pub(super) first: Reading,
    /// The one of the look before the last.
    pub(super) previous: Reading,
    /// The one of the last look, where others came after it.
    pub(super) looked: Option<Reading>,
    pub(super) last: Reading,
    /// Whether all of these two but what the programs hold is the same.
    #[serde(skip)]
    pub(super) files_are_same: bool,
    /// The reading with the highest needed memory by the files.
    pub(super) highest: Reading,
    pub(super) readings: u64,
    /// How often memory alone was read between them, and the longest time between any two of all.
    pub(super) glimpses: u64,
    pub(super) gap_ns: u64,
    /// Whether the kernel's high-water mark was reset, or went with its cgroup before it was read for the last time.
    pub(super) mark_is_lost: bool,
    glimpsed_ns: u64,
    pub(super) looks: u64,
    pub(super) each_second: Looks,
    pub(super) each_30_s: Looks,
    pub(super) rss_peak: Option<u64>,
    pub(super) hugetlb_peak: Option<u64>,
    pub(super) working_set_peak: Option<u64>,
    pub(super) cores_peak: Option<f64>,
    /// Where memory is counted: the buckets so far.
    pub(super) series: Option<Series>,
    pub(super) witnesses: Witnesses,
    pub(super) below: Rows,
    /// Each with the base that held then.
    pub(super) kills: Vec<(Kill, Option<i64>)>,
    pub(super) calibration: Calibration,
}

impl Fold {
    /// Begins with the reading just taken.
    pub fn new(subject: Subject, first: Reading) -> Self {
        let begin = Clock::now().at(first.ns);
        let base = if subject.from_start {
            Base::from_birth(subject.cpus)
        } else {
            Base::unknown(subject.cpus)
        };
        let first_ns = first.ns;
        let mut fold = Self {
            subject,
            begin,
            base,
            best: None,
            previous: first.clone(),
            looked: None,
            last: first.clone(),
            files_are_same: true,
            highest: first.files_alone(),
            first,
            readings: 1,
            glimpses: 0,
            gap_ns: 0,
            mark_is_lost: false,
            glimpsed_ns: first_ns,
            looks: 0,
            each_second: Looks::every(1),
            each_30_s: Looks::every(30),
            rss_peak: None,
            hugetlb_peak: None,
            working_set_peak: None,
            cores_peak: None,
            series: None,
            witnesses: Witnesses::default(),
            below: Rows::default(),
            kills: Vec::new(),
            calibration: Calibration::default(),
        };
        fold.learn(Losses::default());
        fold.keep_maxima();
        fold
    }

    /// Takes a reading.
    pub fn add(&mut self, mut reading: Reading) {
        self.mark_is_lost |= reading.is_gone || reading.memory.peak_bytes < self.last.memory.peak_bytes;
        if reading.is_gone {
            let slack = UNCHARGED_AHEAD * self.subject.cpus as u64 * page_bytes();
            reading.keep_last(&self.last, slack);
        }
        let losses = self.last.losses();
        self.see(reading.ns);
        let mut before = std::mem::replace(&mut self.last, reading);
        before.take_times();
        self.looked.get_or_insert(before);
        self.files_are_same = false;
        self.readings += 1;
        self.learn(losses);
        self.keep_maxima();
    }

    /// Takes what the files say of memory between two readings, where only files tell it, and the processes, where they were
    /// looked at.
    pub fn glimpse(&mut self, memory: MemoryFiles, processes: &[Process], ns: u64) {
        self.glimpses += 1;
        self.see(ns);
        self.keep_processes(processes);
        if memory.needed() > self.highest.memory.needed() {
            self.highest = Reading {
                ns,
                memory,
                processes: processes.to_vec(),
                ..self.last.files_alone()
            };
        }
    }

    /// Memory was seen at `ns`.
    pub(super) fn see(&mut self, ns: u64) {
        self.gap_ns = self.gap_ns.max(ns.saturating_sub(self.glimpsed_ns));
        self.glimpsed_ns = ns;
    }

    /// Whether it is known how far the numbers can be off.
    pub fn is_bounded(&self) -> bool {
        self.subject.memory_not_counted.is_some()
            || self.last.kernel.is_none()
            || self.base.is_deaf()
            || self.base.bound().is_some()
    }

    /// Compares slot and files once more, after the last reading: the base is the same then.
    pub fn settle(&mut self, reading: &Reading) {
        if let Some(evidence) = memory::evidence(reading) {
            self.base.learn(evidence);
        }
        self.keep_best();
    }

    /// A new peak was told.
    pub fn raised(&mut self, level: i64, by: Task) {
        self.witnesses.raised(level, by);
    }

    /// The processes were looked at, near a peak or early.
    pub fn scanned(&mut self, scan: Scan) {
        self.keep_processes(&scan.processes);
        self.witnesses.scanned(scan);
    }

    fn keep_processes(&mut self, processes: &[Process]) {
        self.rss_peak = self.rss_peak.max(memory::rss_sum(processes));
        self.hugetlb_peak = self.hugetlb_peak.max(memory::hugetlb(processes));
    }

    /// Cgroups below the target were read; `at_look`: with the look just taken, which begins a new window.
    pub fn below(&mut self, readings: Vec<BelowReading>, at_look: bool) {
        if at_look {
            self.below.turn();
        }
        let frame = self.frame();
        let is_sampled = self.last.kernel.is_none();
        let present = readings.iter().map(|reading| reading.cgroup_id).collect();
        self.below.add(readings, frame);
        if is_sampled && at_look {
            self.below.end_absent(&present, self.last.ns, frame);
        }
    }

    /// Cgroups below the target.
    pub fn rows(&self) -> &Rows {
        &self.below
    }

    /// What Slurm says of the job has come to be known; whether that is another thing than before.
    pub fn tell_job(&mut self, slurm: SlurmJob) -> bool {
        let is_new = self.subject.slurm != slurm;
        self.subject.slurm = slurm;
        is_new
    }

    /// What Slurm says of the job.
    pub fn slurm(&self) -> &SlurmJob {
        &self.subject.slurm
    }

    /// The last reading.
    pub fn last(&self) -> &Reading {
        &self.last
    }

    /// That of the look before the last.
    pub fn previous(&self) -> &Reading {
        &self.previous
    }

    /// The programs were timed for a while.
    pub fn calibrated(&mut self, window: Calibration) {
        self.calibration.add(window);
    }

    /// All that is known now. Rates are those since the look before the last, or since the begin.
    pub fn snapshot(&self, kind: Kind, exit: Option<Exit>) -> Snapshot {
        let from = if kind == Kind::Progress {
            &self.previous
        } else {
            &self.first
        };
        self.snapshot_from(from, kind, exit)
    }

    /// The same with rates since the reading `from`, the steps that have ended since a moment, and those that are there.
    pub(super) fn snapshot_since(
        &self,
        (from, ended_since_ns): (&Reading, u64),
        kind: Kind,
        exit: Option<Exit>,
    ) -> Snapshot {
        let mut unknown = Unknown::new();
        let last = &self.last;
        let seconds = self.begin.seconds_to(last.ns);
        let cpu = cpu::told(&self.first, from, last, self.cores_peak, &mut unknown);
        let memory = self.memory(from.ns, &mut unknown);
        let steps = self.steps(kind, ended_since_ns, &memory, &mut unknown);
        self.note_job(&mut unknown);
        self.note_absent(exit, &mut unknown);
        Snapshot {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            kind,
            timestamp: self.begin.rfc3339(last.ns),
            hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            job_id: self.subject.slurm.job_id.clone(),
            step_id: self
                .subject
                .role
                .and_then(Role::step)
                .map(|step| step.to_string()),
            job: self.subject.slurm.facts.clone(),
            target: self.subject.target.clone(),
            source: self.source(),
            window_seconds: (i128::from(last.ns) - i128::from(from.ns)) as f64 / 1e9,
            elapsed_seconds: self.elapsed(self.begin, last.ns),
            coverage: Coverage {
                from: self.begin.rfc3339(self.begin.ns()),
                to: self.begin.rfc3339(last.ns),
                seconds,
                from_start: self.subject.from_start,
                reason: self.subject.from_reason.clone(),
            },
            memory,
            cpu,
            processes: cpu::processes(
                last,
                self.subject.target.kind == TargetKind::Command,
                &mut unknown,
            ),
            steps_left_out: steps.as_ref().map(|_| self.below.left_out()),
            steps,
            oom_kills_untold: self.kills_untold(),
            oom_kills: self.oom_kills(),
            gpus: None,
            exit,
            probes: self.subject.probes.clone(),
            loss: self.loss(),
            overhead: self.overhead(seconds, &mut unknown),
            unknown,
        }
    }

    /// Compares slot and files where it tells something: before the base is exact, and after a loss.
    pub(super) fn learn(&mut self, before: Losses) {
        let now = self.last.losses();
        let lru = now.lru_is_missable && now.lruvec_misses > before.lruvec_misses;
        let has_lost = lru || now.state_misses > before.state_misses;
        if now.is_deaf && self.subject.memory_not_counted.is_none() {
            self.base.deafen();
            self.below.deafen();
        }
        if self.readings > 1 && self.subject.memory_not_counted.is_none() {
            if has_lost {
                self.base.lose(lru);
                self.below.lose(lru);
            } else if now.is_untold {
                self.base.doubt();
                self.below.doubt();
            }
        }
        if self.subject.memory_not_counted.is_none()
            && self.base.bound() != Some(0)
            && let Some(evidence) = memory::evidence(&self.last)
        {
            self.base.learn(evidence);
        }
        self.keep_best();
    }

    pub(super) fn keep_best(&mut self) {
        let Some(kernel) = &self.last.kernel else {
            return;
        };
        let peak = kernel.slot.peak;
        let stands = |(known, base): &(PeakReading, Base)| {
            peak.level <= known.level && base.pages().is_some() && base.rebased() != self.base.rebased()
        };
        if !self.best.as_ref().is_some_and(stands) {
            self.best = Some((peak, self.base));
        }
    }

    fn keep_maxima(&mut self) {
        let last = &self.last;
        if let Some(KernelReading { histograms, slot, .. }) = &last.kernel {
            if !last.processes.is_empty() {
                self.witnesses.scanned(Scan {
                    level: slot.level,
                    processes: last.processes.clone(),
                });
            }
            let series = self
                .series
                .get_or_insert_with(|| Series::new(histograms.bucket_ns, slot.read_ns));
            series.add(&histograms.timeline, self.begin.ns());
            series.is_read(slot.read_ns, slot.last_change_ns);
        }
        self.rss_peak = self.rss_peak.max(memory::rss_sum(&last.processes));
        self.hugetlb_peak = self.hugetlb_peak.max(memory::hugetlb(&last.processes));
        self.working_set_peak = self.working_set_peak.max(last.memory.working_set());
        if last.memory.needed() > self.highest.memory.needed() {
            self.highest = last.files_alone();
        }
    }
}
