//! The whole of a measurement, reading by reading.

use super::{
    Clock, KernelReading, Reading, Scan, Unknown,
    base::Base,
    cpu, levels,
    looks::Looks,
    memory::{self, Parts, page_bytes, to_bytes},
    overhead::Calibration,
    peak::{self, Witnesses},
    reading::Kill,
};
use crate::{
    probe::Losses,
    sampled::procfs::Process,
    snapshot::{
        Coverage, Exit, Kind, Loss, Memory, OomKill, Probes, SCHEMA_VERSION, Snapshot, Source, Target,
        TargetKind, Task,
    },
};

/// Seconds between two looks.
const LOOK_SECONDS: f64 = 1.0;

/// What is measured, and how; it does not change meanwhile.
#[derive(Debug, Clone)]
pub struct Subject {
    /// What is measured.
    pub target: Target,
    /// Whether it was tracked from its birth.
    pub from_start: bool,
    /// How the numbers are obtained.
    pub probes: Probes,
    /// Number of CPUs that are on.
    pub cpus: usize,
    /// How far a peak can be below the truth because of what the CPUs keep to themselves, in pages.
    pub batch_bound_pages: u64,
    /// Why memory cannot be counted event by event, where it cannot.
    pub memory_not_counted: Option<String>,
}

/// A measurement under way.
#[derive(Debug)]
pub struct Fold {
    subject: Subject,
    begin: Clock,
    base: Base,
    first: Reading,
    previous: Reading,
    last: Reading,
    /// The reading with the highest needed memory by the files.
    highest: Reading,
    readings: u64,
    looks: u64,
    each_second: Looks,
    each_30_s: Looks,
    rss_peak: Option<u64>,
    hugetlb_peak: Option<u64>,
    working_set_peak: Option<u64>,
    cores_peak: Option<f64>,
    witnesses: Witnesses,
    kills: Vec<Kill>,
    calibration: Calibration,
}

impl Fold {
    /// Begins at `begin` with the reading taken then.
    pub fn new(subject: Subject, begin: Clock, first: Reading) -> Self {
        let base = if subject.from_start {
            Base::from_birth(subject.cpus)
        } else {
            Base::unknown(subject.cpus)
        };
        let mut fold = Self {
            subject,
            begin,
            base,
            previous: first.clone(),
            last: first.clone(),
            highest: first.clone(),
            first,
            readings: 1,
            looks: 0,
            each_second: Looks::every(1),
            each_30_s: Looks::every(30),
            rss_peak: None,
            hugetlb_peak: None,
            working_set_peak: None,
            cores_peak: None,
            witnesses: Witnesses::default(),
            kills: Vec::new(),
            calibration: Calibration::default(),
        };
        fold.learn(Losses::default());
        fold.keep_maxima();
        fold
    }

    /// Takes a reading.
    pub fn add(&mut self, reading: Reading) {
        let losses = self.losses();
        self.previous = std::mem::replace(&mut self.last, reading);
        self.readings += 1;
        self.learn(losses);
        self.keep_maxima();
    }

    /// Takes a reading that a sampler of one look a second takes too.
    pub fn look(&mut self, reading: Reading) {
        self.add(reading);
        self.looks += 1;
        let pages = match &self.last.kernel {
            Some(kernel) => Some(kernel.slot.level),
            None => self
                .last
                .memory
                .needed()
                .map(|bytes| (bytes / page_bytes()) as i64),
        };
        if let Some(pages) = pages {
            self.each_second.look(self.looks, pages);
            self.each_30_s.look(self.looks, pages);
        }
        let window_ns = self.last.ns.saturating_sub(self.previous.ns);
        if let Some(busy) = cpu::busy_ns(&self.previous, &self.last).filter(|_| window_ns > 0) {
            let cores = busy as f64 / window_ns as f64;
            self.cores_peak = Some(self.cores_peak.map_or(cores, |peak| peak.max(cores)));
        }
    }

    /// A new peak was told.
    pub fn raised(&mut self, level: i64, by: Task) {
        self.witnesses.raised(level, by);
    }

    /// The processes were looked at near a peak.
    pub fn scanned(&mut self, scan: Scan) {
        self.rss_peak = self.rss_peak.max(rss_sum(&scan.processes));
        self.witnesses.scanned(scan);
    }

    /// A process was killed for want of memory.
    pub fn killed(&mut self, kill: Kill) {
        self.kills.push(kill);
    }

    /// The programs were timed for a while.
    pub fn calibrated(&mut self, window: Calibration) {
        self.calibration.add(window);
    }

    /// All that is known now. Rates are those since the last reading but one, or since the begin.
    pub fn snapshot(&self, kind: Kind, exit: Option<Exit>) -> Snapshot {
        let mut unknown = Unknown::new();
        let from = if kind == Kind::Progress {
            &self.previous
        } else {
            &self.first
        };
        let last = &self.last;
        let seconds = self.begin.seconds_to(last.ns);
        let cpu = cpu::told(from, last, self.cores_peak, &mut unknown);
        let memory = self.memory(&mut unknown);
        self.note_absent(exit, &mut unknown);
        Snapshot {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            kind,
            timestamp: self.begin.rfc3339(last.ns),
            hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            job_id: None,
            step_id: None,
            target: self.subject.target.clone(),
            source: if last.kernel.is_some() {
                Source::Kernel
            } else {
                Source::Sampled
            },
            window_seconds: (i128::from(last.ns) - i128::from(from.ns)) as f64 / 1e9,
            elapsed_seconds: self.subject.from_start.then_some(seconds),
            coverage: Coverage {
                from: self.begin.rfc3339(self.begin.ns()),
                to: self.begin.rfc3339(last.ns),
                seconds,
                from_start: self.subject.from_start,
            },
            memory,
            cpu,
            processes: cpu::processes(
                last,
                self.subject.target.kind == TargetKind::Command,
                &mut unknown,
            ),
            oom_kills: self.oom_kills(),
            gpus: None,
            exit,
            probes: self.subject.probes.clone(),
            loss: self.loss(),
            overhead: self.overhead(seconds, &mut unknown),
            unknown,
        }
    }

    fn losses(&self) -> Losses {
        self.last
            .kernel
            .as_ref()
            .map(|kernel| kernel.losses)
            .unwrap_or_default()
    }

    /// Compares slot and files where it tells something: before the base is exact, and after a loss.
    fn learn(&mut self, before: Losses) {
        let now = self.losses();
        if self.readings > 1 && now.lruvec_misses > before.lruvec_misses {
            self.base.lose_lru();
        }
        if self.readings > 1 && now.state_misses > before.state_misses {
            self.base.lose_kernel();
        }
        if self.base.bound() != Some(0)
            && let Some(evidence) = memory::evidence(&self.last)
        {
            self.base.learn(evidence);
        }
    }

    fn keep_maxima(&mut self) {
        let last = &self.last;
        self.rss_peak = self.rss_peak.max(rss_sum(&last.processes));
        self.hugetlb_peak = self.hugetlb_peak.max(hugetlb(last));
        self.working_set_peak = self.working_set_peak.max(last.memory.working_set());
        if last.memory.needed() > self.highest.memory.needed() {
            self.highest = last.clone();
        }
    }

    /// What the kernel programs hold of memory, where they can count it.
    fn counted(&self) -> Option<&KernelReading> {
        self.last
            .kernel
            .as_ref()
            .filter(|_| self.subject.memory_not_counted.is_none())
    }

    fn memory(&self, unknown: &mut Unknown) -> Memory {
        let files = &self.last.memory;
        memory::note_unknown(files, unknown);
        let counted = self.counted();
        let now =
            counted.and_then(|kernel| Parts::counted(kernel.slot.level, &kernel.slot.parts, &self.base));
        let needed = counted.map_or(files.needed(), |_| now.map(|parts| parts.needed));
        let needed_peak = match counted {
            Some(kernel) => Parts::counted(kernel.slot.peak.level, &kernel.slot.peak.parts, &self.base)
                .map(|peak| peak.needed),
            None => self.highest.memory.needed(),
        };
        let source = match (counted, needed) {
            (Some(_), _) => Source::Kernel,
            (None, Some(_)) => Source::Sampled,
            (None, None) => Source::Unavailable,
        };
        let levels = counted.and_then(|kernel| self.levels(kernel));
        let limit_bytes = self.last.limit.as_ref().map(|limit| limit.bytes);
        let percent_of_limit = |bytes: Option<u64>| {
            bytes
                .zip(limit_bytes)
                .map(|(bytes, limit)| bytes as f64 / limit as f64 * 100.0)
        };
        let inflation = |bytes: Option<u64>| {
            bytes
                .zip(needed_peak.filter(|peak| *peak > 0))
                .map(|(bytes, peak)| bytes as f64 / peak as f64)
        };
        let base_pages = self
            .base
            .lru()
            .zip(self.base.kernel())
            .map_or(0, |(lru, kernel)| lru + kernel);
        let looked = |looks: &Looks| {
            looks.told(needed_peak, |pages| {
                to_bytes(pages + counted.map_or(0, |_| base_pages))
            })
        };
        let told = Memory {
            source,
            needed_bytes: needed,
            needed_peak_bytes: needed_peak,
            needed_peak_samples: (source == Source::Sampled).then_some(self.readings),
            error_bound_bytes: counted
                .and_then(|_| self.base.bound())
                .map(|pages| (pages + self.subject.batch_bound_pages) * page_bytes()),
            anon_bytes: counted.map_or(files.anon_bytes, |_| now.map(|parts| parts.anon)),
            shmem_bytes: counted.map_or(files.shmem_bytes, |_| now.map(|parts| parts.shmem)),
            kernel_bytes: counted.map_or(files.kernel_bytes, |_| now.map(|parts| parts.kernel)),
            file_bytes: counted.map_or(files.file(), |_| now.map(|parts| parts.file)),
            swap_bytes: counted.map_or(files.swap_bytes, |_| now.map(|parts| parts.swap)),
            hugetlb_bytes: hugetlb(&self.last),
            hugetlb_peak_bytes: self.hugetlb_peak,
            peak: match counted {
                Some(kernel) => peak::counted(kernel, &self.base, &self.witnesses, self.begin),
                None => peak::sampled(&self.highest, self.begin, LOOK_SECONDS),
            },
            high: levels
                .as_deref()
                .zip(needed_peak)
                .and_then(|(levels, peak)| levels::high(levels, peak)),
            levels,
            current_bytes: files.current_bytes,
            peak_bytes: files.peak_bytes,
            limit_bytes,
            usage_percent: percent_of_limit(files.current_bytes),
            working_set_bytes: files.working_set(),
            cache_bytes: files.cache_bytes,
            peak_working_set_bytes: self.working_set_peak,
            working_set_percent: percent_of_limit(files.working_set()),
            rss_sum_bytes: rss_sum(&self.last.processes),
            rss_sum_peak_bytes: self.rss_peak,
            rss_inflation: inflation(self.rss_peak),
            cache_inflation: inflation(files.peak_bytes),
            sampled_1s: looked(&self.each_second),
            sampled_30s: looked(&self.each_30_s),
        };
        self.note_memory(&told, unknown);
        told
    }

    fn levels(&self, kernel: &KernelReading) -> Option<Vec<crate::snapshot::Level>> {
        let base = self.base.lru()? + self.base.kernel()?;
        Some(levels::levels(&kernel.histograms.levels_ns, |pages| {
            to_bytes(pages + base)
        }))
    }

    /// The reason of each number of memory that is not known.
    fn note_memory(&self, memory: &Memory, unknown: &mut Unknown) {
        let not_counted = match &self.subject.memory_not_counted {
            Some(reason) => reason.clone(),
            None if self.last.kernel.is_none() => "only the kernel programs count every change".to_owned(),
            None => "memory changed at every comparison with the kernel's files: measure longer".to_owned(),
        };
        let none_near = "no such moment within the coverage".to_owned();
        let mut because = |key: &str, is_known: bool, reason: &str| {
            if !is_known {
                unknown
                    .entry(format!("memory.{key}"))
                    .or_insert_with(|| reason.to_owned());
            }
        };
        because("needed_bytes", memory.needed_bytes.is_some(), &not_counted);
        because(
            "needed_peak_bytes",
            memory.needed_peak_bytes.is_some(),
            &not_counted,
        );
        because(
            "needed_peak_samples",
            memory.needed_peak_samples.is_some(),
            "not sampled",
        );
        because(
            "error_bound_bytes",
            memory.error_bound_bytes.is_some(),
            &not_counted,
        );
        because("levels", memory.levels.is_some(), &not_counted);
        because(
            "high",
            memory.high.is_some(),
            if memory.levels.is_some() {
                &none_near
            } else {
                &not_counted
            },
        );
        because("peak", memory.peak.is_some(), &not_counted);
        for (key, value) in [
            ("anon_bytes", memory.anon_bytes),
            ("shmem_bytes", memory.shmem_bytes),
            ("kernel_bytes", memory.kernel_bytes),
            ("file_bytes", memory.file_bytes),
            ("swap_bytes", memory.swap_bytes),
        ] {
            because(
                key,
                value.is_some(),
                self.last.memory.unknown.get(key).unwrap_or(&not_counted),
            );
        }
        because("limit_bytes", memory.limit_bytes.is_some(), "no limit is set");
        for (key, value) in [
            ("usage_percent", memory.usage_percent),
            ("working_set_percent", memory.working_set_percent),
        ] {
            because(key, value.is_some(), "no limit is set");
        }
        for (key, value) in [
            ("rss_inflation", memory.rss_inflation),
            ("cache_inflation", memory.cache_inflation),
        ] {
            because(key, value.is_some(), "one of the two numbers is not known");
        }
        for (key, value) in [
            ("rss_sum_bytes", memory.rss_sum_bytes),
            ("rss_sum_peak_bytes", memory.rss_sum_peak_bytes),
            ("hugetlb_bytes", memory.hugetlb_bytes),
            ("hugetlb_peak_bytes", memory.hugetlb_peak_bytes),
            ("peak_working_set_bytes", memory.peak_working_set_bytes),
            ("working_set_bytes", memory.working_set_bytes),
        ] {
            because(key, value.is_some(), "no process was alive when it was looked at");
        }
        for (key, looks) in [
            ("sampled_1s", &memory.sampled_1s),
            ("sampled_30s", &memory.sampled_30s),
        ] {
            because(
                &format!("{key}.peak_bytes"),
                looks.peak_bytes.is_some(),
                "it never looked",
            );
            because(
                &format!("{key}.missed_percent"),
                looks.missed_percent.is_some(),
                "it never looked",
            );
        }
    }

    /// The reason of each part of a snapshot that this target or this version does not have.
    fn note_absent(&self, exit: Option<Exit>, unknown: &mut Unknown) {
        let mut because = |key: &str, reason: &str| unknown.insert(key.to_owned(), reason.to_owned());
        because("job_id", "the target was not named by a job");
        because("step_id", "the target was not named by a job");
        because("gpus", "this version reads no graphics processors");
        if !self.subject.from_start {
            because("elapsed_seconds", "the target ran before it was measured");
        }
        match exit {
            None => {
                because("exit", "no command of sw-bpf's own has ended");
            }
            Some(Exit { code: None, .. }) => {
                because("exit.code", "a signal ended the command");
            }
            Some(Exit { signal: None, .. }) => {
                because("exit.signal", "the command exited by itself");
            }
            Some(_) => {}
        }
        let target = &self.subject.target;
        if target.pid.is_none() {
            because("target.pid", "the target was not named by a process");
        }
        if target.command.is_none() {
            because("target.command", "the target is not a command of sw-bpf's own");
        }
        if target.cgroup_version.is_none() {
            because("target.cgroup_version", "no hierarchy counts the target's memory");
        }
        if self.subject.probes.reason.is_none() {
            because("probes.reason", "the best source is used");
        }
    }

    fn oom_kills(&self) -> Vec<OomKill> {
        let bytes =
            |pages: i64| to_bytes(pages + self.base.lru().unwrap_or(0) + self.base.kernel().unwrap_or(0));
        let task = |(pid, comm): &(u32, String)| Task {
            pid: *pid,
            comm: comm.clone(),
        };
        self.kills
            .iter()
            .map(|Kill { notice, limit }| OomKill {
                at: self.begin.rfc3339(notice.ns),
                at_seconds: self.begin.seconds_to(notice.ns),
                victim: task(&notice.victim),
                trigger: task(&notice.by),
                needed_bytes: bytes(notice.level),
                needed_peak_bytes: bytes(notice.peak),
                limit_bytes: limit.as_ref().and_then(|limit| limit.limit_bytes),
                limit_cgroup: limit
                    .as_ref()
                    .map(|limit| limit.path.to_string_lossy().into_owned()),
            })
            .collect()
    }

    fn loss(&self) -> Loss {
        let first = self
            .first
            .kernel
            .as_ref()
            .map(|kernel| kernel.losses)
            .unwrap_or_default();
        let now = self.losses();
        let misses = |losses: Losses| losses.lruvec_misses + losses.state_misses + losses.other_misses;
        Loss {
            recursion_misses: misses(now).saturating_sub(misses(first)),
            notices_dropped: now.notices_dropped.saturating_sub(first.notices_dropped),
            collisions: now.collisions.saturating_sub(first.collisions),
            rebased: self.base.rebased(),
        }
    }

    fn overhead(&self, seconds: f64, unknown: &mut Unknown) -> crate::snapshot::Overhead {
        let own_ns = self.last.own_cpu_ns.saturating_sub(self.first.own_cpu_ns);
        let told = self.calibration.told(own_ns, seconds);
        for (key, value) in [
            ("agent_cpu_percent", told.agent_cpu_percent),
            ("ns_per_event", told.ns_per_event),
            ("programs_cpu_percent", told.programs_cpu_percent),
        ] {
            if value.is_none() {
                unknown.insert(
                    format!("overhead.{key}"),
                    "no event within a calibration window".to_owned(),
                );
            }
        }
        told
    }
}

/// Huge pages of all processes; `None` where there is none to read.
fn hugetlb(reading: &Reading) -> Option<u64> {
    let is_any = !reading.processes.is_empty();
    is_any
        .then(|| {
            reading
                .processes
                .iter()
                .map(|process| process.hugetlb_bytes)
                .sum()
        })
        .flatten()
}

/// Resident sets of all processes; `None` where there is none to read.
fn rss_sum(processes: &[Process]) -> Option<u64> {
    let is_any = !processes.is_empty();
    is_any.then(|| processes.iter().map(|process| process.rss_bytes).sum())
}
