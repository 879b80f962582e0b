//! Measures one target: tracks it, takes readings, hears notices.

use std::time::Duration;

use swbpf_common::slot::{FILE, FILE_MAPPED, KERNEL, PAGE_TABLES, PARTS, SHMEM, SWAP, THP};

use super::{calibrate::Calibrator, scan::Scanner};
use crate::{
    cli::ForcedSource,
    error::Error,
    fold::{Fold, KernelReading, Kill, Reading, Scan, Subject},
    job::cgroup::{Cgroup, Controller, Hierarchies, Version},
    kernel::{
        layout::Hierarchy,
        support::{Facts, Plan, plan},
    },
    probe::{Histograms, Notice, Probe, Room, SlotId, SlotReading, Start, What, monotonic_ns},
    sampled::cgroupfs::{CpuFiles, LimitLevel, MemoryFiles, effective_limit, limit_hit, limit_levels},
    snapshot::{Exit, Kind, Probes, Program, Snapshot, Target, Task},
};

/// One target, and the steps and tasks of a job that are told on their own at one time.
const ROOM: Room = Room {
    targets: 1,
    below: 512,
};
/// Time after the begin of a flush in which it may still be under way.
const FLUSH_NS: u64 = 50_000_000;
/// A slot that is read within this is read at once.
const AT_ONCE_NS: u64 = 500_000;
/// Waits for kernel memory to come to rest, where events were lost and nothing could be compared since.
const SETTLE_TRIES: usize = 20;
/// Time between two of them.
const SETTLE: Duration = Duration::from_millis(5);
/// Tries to read a slot at once.
const READ_TRIES: usize = 5;

/// A measurement under way.
pub struct Meter {
    cgroup: Cgroup,
    counting: Option<Counting>,
    fold: Fold,
    limits: Vec<LimitLevel>,
    scanner: Scanner,
    calibrator: Calibrator,
}

/// The kernel programs on the target.
struct Counting {
    probe: Probe,
    slot: SlotId,
}

impl Meter {
    /// Begins to measure `cgroup`. `from_birth`: nothing has been in it yet.
    pub fn begin(
        hierarchies: &Hierarchies,
        cgroup: Cgroup,
        target: Target,
        from_birth: bool,
        force: Option<ForcedSource>,
    ) -> Result<Self, Error> {
        let mut facts = Facts::gather();
        let (counting, probes, batch_bound_pages) =
            match count(&mut facts, hierarchies, &cgroup, from_birth, force) {
                Ok((counting, plan)) => (Some(counting), kernel_probes(&plan), plan.batch_bound_pages),
                Err(error) if force == Some(ForcedSource::Kernel) => return Err(error),
                Err(error) => (None, sampled_probes(&facts, force, &error), 0),
            };
        let subject = Subject {
            target,
            from_start: from_birth,
            probes,
            cpus: facts.cpus,
            batch_bound_pages,
            memory_not_counted: cgroup
                .dir(Controller::Memory)
                .is_none()
                .then(|| "the target has no cgroup of its own in a hierarchy that counts memory".to_owned()),
        };
        let mut scanner = Scanner::default();
        let mut calibrator = Calibrator::default();
        if let Some(counting) = &counting {
            calibrator.begin(&counting.probe);
        }
        let limits = limit_levels(&cgroup);
        let first = reading(&cgroup, counting.as_ref(), &mut scanner, &limits)?;
        let fold = Fold::new(subject, first);
        Ok(Self {
            cgroup,
            counting,
            fold,
            limits,
            scanner,
            calibrator,
        })
    }

    /// The target.
    pub fn cgroup(&self) -> &Cgroup {
        &self.cgroup
    }

    /// Whether a process was there when they were last looked at.
    pub fn is_populated(&self) -> bool {
        self.scanner.is_populated()
    }

    /// The programs, where they are used.
    pub fn probe(&self) -> Option<&Probe> {
        self.counting.as_ref().map(|counting| &counting.probe)
    }

    /// Takes a reading, as a sampler of one look a second does too.
    pub fn look(&mut self) -> Result<(), Error> {
        let reading = self.reading()?;
        self.fold.look(reading);
        if let Some(counting) = &self.counting {
            self.calibrator.begin(&counting.probe);
        }
        Ok(())
    }

    /// Takes the last reading.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.hear()?;
        self.end_calibration();
        self.scanner.renew();
        let reading = self.reading()?;
        self.fold.add(reading);
        // The kernel goes on to free the memory of ended processes for some milliseconds.
        for _ in 0..SETTLE_TRIES {
            if self.fold.is_bounded() {
                break;
            }
            std::thread::sleep(SETTLE);
            let reading = self.reading()?;
            self.fold.settle(&reading);
        }
        Ok(())
    }

    /// All that is known now.
    pub fn snapshot(&self, kind: Kind, exit: Option<Exit>) -> Snapshot {
        self.fold.snapshot(kind, exit)
    }

    /// The calibration window under way.
    pub fn calibrator(&self) -> &Calibrator {
        &self.calibrator
    }

    /// Ends the calibration window under way.
    pub fn end_calibration(&mut self) {
        if let Some(counting) = &self.counting
            && let Some(window) = self.calibrator.end(&counting.probe)
        {
            self.fold.calibrated(window);
        }
    }

    /// Takes the notices that wait. Whether the target itself is gone.
    pub fn hear(&mut self) -> Result<bool, Error> {
        let mut is_gone = false;
        let mut has_moved = false;
        while let Some(notice) = self
            .counting
            .as_mut()
            .and_then(|counting| counting.probe.next_notice())
        {
            match notice.what {
                What::Peak => self.new_peak(notice)?,
                What::Victim => self.kill(notice),
                What::Moved => has_moved = true,
                What::Gone => is_gone |= notice.cgroup_id == self.cgroup.id(),
                What::Born => {}
            }
        }
        if let Some(counting) = self.counting.as_ref().filter(|_| has_moved) {
            counting.probe.look()?;
        }
        Ok(is_gone)
    }

    fn new_peak(&mut self, notice: Notice) -> Result<(), Error> {
        let (pid, comm) = notice.by;
        self.fold.raised(notice.level, Task { pid, comm });
        if let Some(counting) = &self.counting
            && let Some(processes) = self.scanner.fresh(&self.cgroup)
        {
            let processes = processes.to_vec();
            let level = counting.probe.peek(counting.slot)?.level;
            self.fold.scanned(Scan { level, processes });
        }
        Ok(())
    }

    fn kill(&mut self, notice: Notice) {
        let limits = limit_levels(&self.cgroup);
        let limit = limit_hit(&self.limits, &limits).cloned();
        self.limits = limits;
        self.fold.killed(Kill { notice, limit });
    }

    fn reading(&mut self) -> Result<Reading, Error> {
        reading(
            &self.cgroup,
            self.counting.as_ref(),
            &mut self.scanner,
            &self.limits,
        )
    }
}

/// Loads the programs and tracks the cgroup.
fn count(
    facts: &mut Facts,
    hierarchies: &Hierarchies,
    cgroup: &Cgroup,
    from_birth: bool,
    force: Option<ForcedSource>,
) -> Result<(Counting, Plan), Error> {
    if force == Some(ForcedSource::Sampled) {
        return Err(Error::Other(anyhow::anyhow!("sampling was asked for")));
    }
    let (hierarchy, controller) = hierarchy_of(cgroup);
    let mut plan = plan(facts, hierarchy, cgroup.version())?;
    let own = hierarchies.cgroup_of_pid(std::process::id()).ok();
    let own = own.as_ref().and_then(|own| own.nearest_dir(controller));
    let mut probe = Probe::load(&plan, ROOM, own.map(|dir| dir.path.as_path()))?;
    // Megabytes that would count, and fall away, where the target is the caller's own cgroup.
    plan.btf = Vec::new();
    let start = if from_birth {
        Start::default()
    } else {
        start(&MemoryFiles::read(cgroup))
    };
    let slot = probe.track(cgroup.id(), start, 0)?;
    Ok((Counting { probe, slot }, plan))
}

/// The hierarchy of the target's directory, and a controller that has it.
fn hierarchy_of(cgroup: &Cgroup) -> (Hierarchy, Controller) {
    let names = |controller: &Controller| {
        cgroup
            .dir(*controller)
            .is_some_and(|dir| dir.path == cgroup.path())
    };
    let controller = Controller::ALL
        .into_iter()
        .find(names)
        .unwrap_or(Controller::Memory);
    let has_no_state = cgroup.version() == Version::V2 && controller != Controller::Memory;
    (
        if has_no_state {
            Hierarchy::Unified
        } else {
            Hierarchy::Of(controller)
        },
        controller,
    )
}

/// What the files tell of a cgroup that existed before, as pages. What they do not tell counts from 0.
fn start(files: &MemoryFiles) -> Start {
    let page = rustix::param::page_size() as u64;
    let pages = |bytes: Option<u64>| bytes.unwrap_or(0) / page;
    let mut parts = [0; PARTS];
    parts[SHMEM] = pages(files.shmem_bytes);
    parts[KERNEL] = pages(files.kernel_bytes);
    parts[FILE] = pages(files.cache_bytes);
    parts[FILE_MAPPED] = pages(files.file_mapped_bytes);
    parts[THP] = pages(files.thp_bytes);
    parts[PAGE_TABLES] = pages(files.page_tables_bytes);
    parts[SWAP] = pages(files.swap_bytes);
    Start {
        anon: pages(files.anon_bytes),
        parts,
    }
}

fn reading(
    cgroup: &Cgroup,
    counting: Option<&Counting>,
    scanner: &mut Scanner,
    limits: &[LimitLevel],
) -> Result<Reading, Error> {
    let before = counting
        .map(|counting| counting.probe.peek(counting.slot))
        .transpose()?;
    let files_ns = monotonic_ns();
    let memory = MemoryFiles::read(cgroup);
    let kernel = counting
        .map(|Counting { probe, slot }| {
            let after = probe.peek(*slot)?;
            let flushed_ns = probe.flushed_ns()?;
            let (state, histograms) = at_once(probe, *slot)?;
            Ok::<_, Error>(KernelReading {
                after_files: before
                    .and_then(|before| after.spread_since(&before, files_ns))
                    .map(|spread| (after, spread)),
                is_flushed: flushed_ns
                    .is_some_and(|flushed| flushed > state.last_change_ns && flushed + FLUSH_NS < files_ns),
                histograms,
                losses: probe.losses()?,
                slot: state,
            })
        })
        .transpose()?;
    Ok(Reading {
        ns: kernel
            .as_ref()
            .map_or_else(monotonic_ns, |kernel| kernel.slot.read_ns),
        kernel,
        memory,
        cpu: CpuFiles::read(cgroup),
        limit: effective_limit(cgroup, limits),
        processes: scanner.processes(cgroup).to_vec(),
        own_cpu_ns: own_cpu_ns(),
    })
}

/// A slot and its histograms at one moment, so that their times sum to the same span: where the reader was held up, as
/// on a host with more to do than CPUs, it reads again, and takes the quickest of all.
fn at_once(probe: &Probe, slot: SlotId) -> Result<(SlotReading, Histograms), Error> {
    let read = || {
        let begin_ns = monotonic_ns();
        let read = (probe.read(slot)?, probe.histograms(slot)?);
        Ok::<_, Error>((monotonic_ns() - begin_ns, read))
    };
    let mut quickest = read()?;
    for _ in 1..READ_TRIES {
        if quickest.0 < AT_ONCE_NS {
            break;
        }
        let again = read()?;
        if again.0 < quickest.0 {
            quickest = again;
        }
    }
    Ok(quickest.1)
}

fn own_cpu_ns() -> u64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64
}

fn kernel_probes(plan: &Plan) -> Probes {
    Probes {
        rung: "btf_tracepoint".to_owned(),
        reason: None,
        kernel: plan.release.clone(),
        programs: plan
            .programs
            .iter()
            .map(|program| Program {
                name: program.name.to_owned(),
                hook: format!("tp_btf/{}", program.hook),
                attached: program.absent.is_none(),
                reason: program.absent.clone(),
            })
            .collect(),
    }
}

fn sampled_probes(facts: &Facts, force: Option<ForcedSource>, error: &Error) -> Probes {
    let reason = match force {
        Some(ForcedSource::Sampled) => "sampling was asked for".to_owned(),
        _ => error.to_string(),
    };
    Probes {
        rung: "none".to_owned(),
        reason: Some(reason),
        kernel: facts.release.clone(),
        programs: Vec::new(),
    }
}
