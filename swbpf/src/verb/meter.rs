//! Measures one target: tracks it, takes readings, hears notices.

use std::{cell::Ref, iter, time::Duration};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    calibrate::Calibrator,
    count::{self, Counted, Counting},
    ending::Ending,
    reading::{glance, reading},
    rows::Follower,
    scan::Scanner,
    target::Chosen,
};
use crate::{
    cli::ForcedSource,
    error::Error,
    fold::{BelowReading, Calibration, Fold, Kill, Reading, Scan, SlurmJob, Subject, is_hit},
    job::cgroup::{Cgroup, Controller, Hierarchies, slurm::Role},
    kernel::{ladder::Rung, support::Facts},
    probe::{Below, Ended, Notice, Probe, SlotId, What, monotonic_ns},
    sampled::cgroupfs::{LimitLevel, limit_levels},
    snapshot::{Exit, Kind, LimitOf, OwnProcesses, Probes, Snapshot, Task},
};

/// Reading the cgroups below the target on notices may take one part in this many of the time: a job can make very many.
const ROWS_SHARE: u64 = 10;
/// The same of glimpses at memory.
const GLIMPSE_SHARE: u64 = 50;
/// Waits for kernel memory to come to rest, where events were lost and nothing could be compared since.
pub const SETTLE_TRIES: usize = 20;
/// Time between two of them.
pub const SETTLE: Duration = Duration::from_millis(5);

/// A measurement under way.
pub struct Meter {
    cgroup: Cgroup,
    counting: Option<Counting>,
    fold: Fold,
    limits: Vec<LimitLevel>,
    scanner: Scanner,
    calibrator: Calibrator,
    /// Whether the programs count for other targets too, and are timed by whoever shares them.
    is_shared: bool,
    /// Whether sw-bpf is not a part of what it measures.
    is_outside: bool,
    follower: Follower,
    ending: Ending,
    /// Whether the kernel tells that the last process has left.
    hears_end: bool,
    was_populated: bool,
    /// When the cgroups below the target may be read again on a notice.
    next_rows_ns: u64,
    /// When memory may be glimpsed at again.
    next_glimpse_ns: u64,
}

impl Meter {
    /// Begins to measure what was chosen.
    pub fn begin(
        hierarchies: &Hierarchies,
        chosen: Chosen,
        force: Option<ForcedSource>,
    ) -> Result<Self, Error> {
        let follower = Follower::new(&chosen);
        let method = Method::find(hierarchies, &chosen, follower.levels(), force)?;
        Self::by(chosen, follower, method)
    }

    /// Begins to measure with programs that count for others too.
    pub fn beside_others(chosen: Chosen, method: Method) -> Result<Self, Error> {
        let follower = Follower::new(&chosen);
        Self::by(chosen, follower, method)
    }

    /// Goes on where another process was.
    pub fn resume(saved: Saved, counting: Counting) -> Result<Self, Error> {
        let Saved {
            cgroup,
            fold,
            follower,
            hears_end,
            ..
        } = saved;
        let limits = limit_levels(&cgroup);
        let mut meter = Self {
            cgroup,
            counting: Some(counting),
            fold,
            limits,
            scanner: Scanner::default(),
            calibrator: Calibrator::default(),
            is_shared: true,
            is_outside: true,
            follower,
            ending: Ending::default(),
            hears_end,
            was_populated: false,
            next_rows_ns: 0,
            next_glimpse_ns: 0,
        };
        let reading = meter.reading()?;
        meter.fold.add(reading);
        meter.read_below()?;
        Ok(meter)
    }

    /// What another process needs to go on.
    pub fn save(&self) -> Result<Box<RawValue>, Error> {
        let slot = self.counting.as_ref().map(|counting| counting.slot);
        let saving = Saving {
            slot,
            cgroup: &self.cgroup,
            fold: &self.fold,
            follower: &self.follower,
            hears_end: self.hears_end,
        };
        Ok(serde_json::value::to_raw_value(&saving).context("save a measurement")?)
    }

    fn by(chosen: Chosen, mut follower: Follower, mut method: Method) -> Result<Self, Error> {
        let hears_end = method.hears_end();
        let counting = method.counting.take();
        let cgroup = chosen.cgroup.clone();
        let mut scanner = Scanner::without(chosen.stand_in);
        let (is_shared, born_ns) = (method.is_shared, method.born_ns);
        let subject = subject(chosen, method, counting.is_some());
        if subject.target.own_processes == OwnProcesses::TakenOff {
            scanner.take_own_off();
        }
        let is_outside = subject.target.own_processes == OwnProcesses::Elsewhere;
        let mut calibrator = Calibrator::default();
        if let Some(counting) = &counting {
            if !is_shared {
                calibrator.begin(&counting.probe.borrow());
            }
            follower.enter_existing(&cgroup, counting)?;
        }
        let limits = limit_levels(&cgroup);
        let first = reading(&cgroup, counting.as_ref(), &mut scanner, &limits)?;
        let mut fold = match born_ns {
            Some(born_ns) => Fold::new(subject, first.at_birth(born_ns)),
            None => Fold::new(subject, first.clone()),
        };
        if born_ns.is_some() {
            fold.add(first);
        }
        let mut meter = Self {
            cgroup,
            counting,
            fold,
            limits,
            scanner,
            calibrator,
            is_shared,
            is_outside,
            follower,
            ending: Ending::default(),
            hears_end,
            was_populated: false,
            next_rows_ns: 0,
            next_glimpse_ns: 0,
        };
        meter.read_below()?;
        Ok(meter)
    }

    /// The target.
    pub fn cgroup(&self) -> &Cgroup {
        &self.cgroup
    }

    /// Time until the target counts as ended, after its last process has left or it was removed; `None` before that.
    pub fn left(&self) -> Option<Duration> {
        self.ending.left()
    }

    /// Whether the target has ended by now.
    pub fn has_ended(&mut self) -> Result<bool, Error> {
        if let Some(counting) = &self.counting {
            self.ending.see(counting.probe.borrow().ended(counting.slot)?);
        }
        let is_populated = self.scanner.is_populated();
        let has_emptied = self.was_populated && !is_populated && !self.hears_end;
        self.was_populated |= is_populated;
        let is_over = self.left().is_some_and(|left| left.is_zero());
        Ok(is_over || has_emptied || !self.cgroup.exists())
    }

    /// The programs, where they are used.
    pub fn probe(&self) -> Option<Ref<'_, Probe>> {
        self.counting.as_ref().map(|counting| counting.probe.borrow())
    }

    /// Takes a reading, as a sampler of one look a second does too.
    pub fn look(&mut self) -> Result<(), Error> {
        self.try_hearing()?;
        let reading = self.reading()?;
        self.fold.look(reading);
        self.read_below()?;
        if let Some(counting) = self.counting.as_ref().filter(|_| !self.is_shared) {
            self.calibrator.begin(&counting.probe.borrow());
        }
        Ok(())
    }

    /// Tries whether the programs hear, which functions can cease to let them. Where sw-bpf is inside of the target, that would
    /// move what it counts.
    fn try_hearing(&self) -> Result<(), Error> {
        if let Some(counting) = self
            .counting
            .as_ref()
            .filter(|_| !self.is_shared && self.is_outside)
        {
            let mut probe = counting.probe.borrow_mut();
            if probe.rung() != Rung::Tracepoint {
                probe.hears()?;
            }
        }
        Ok(())
    }

    /// The same, of what the programs hold alone, after the CPUs were looked at.
    pub fn glance(&mut self) -> Result<(), Error> {
        if let Some(counting) = &self.counting {
            let reading = glance(counting, self.fold.last())?;
            self.fold.look(reading);
        }
        Ok(())
    }

    /// Whether the target was removed.
    pub fn is_removed(&self) -> Result<bool, Error> {
        let ended = match &self.counting {
            Some(counting) => counting.probe.borrow().ended(counting.slot)?,
            None => None,
        };
        Ok(matches!(ended, Some(Ended::Removed(_))) || !self.cgroup.exists())
    }

    /// What Slurm says of the job has come to be known.
    pub fn tell_job(&mut self, slurm: SlurmJob) {
        self.fold.tell_job(slurm);
    }

    /// The programs were timed for a while, by whoever shares them.
    pub fn calibrated(&mut self, window: Calibration) {
        self.fold.calibrated(window);
    }

    /// Whether memory is known by what the files of its cgroup say now and then.
    pub fn is_sampled(&self) -> bool {
        self.counting.is_none() && self.cgroup.dir(Controller::Memory).is_some()
    }

    /// Reads memory alone, as often as it is cheap.
    pub fn glimpse(&mut self) {
        let begin_ns = monotonic_ns();
        if begin_ns >= self.next_glimpse_ns {
            let memory = self.scanner.memory(&self.cgroup);
            let end_ns = monotonic_ns();
            let processes = self.scanner.fresh(&self.cgroup).unwrap_or_default();
            self.fold.glimpse(memory, processes, end_ns);
            self.next_glimpse_ns = end_ns + (end_ns - begin_ns) * GLIMPSE_SHARE;
        }
    }

    /// Looks at the processes alone, where that is cheap.
    pub fn scan(&mut self) -> Result<(), Error> {
        if let Some(processes) = self.scanner.fresh(&self.cgroup) {
            let processes = processes.to_vec();
            let level = match &self.counting {
                Some(counting) => counting.probe.borrow().peek(counting.slot)?.level,
                None => 0,
            };
            self.fold.scanned(Scan { level, processes });
        }
        Ok(())
    }

    /// Takes the last reading.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.hear()?;
        self.end_calibration();
        self.try_hearing()?;
        self.scanner.renew();
        let reading = self.reading()?;
        self.fold.add(reading);
        self.read_below()?;
        // The kernel goes on to free the memory of ended processes for some milliseconds.
        for _ in 0..SETTLE_TRIES {
            if self.is_settled()? {
                break;
            }
            std::thread::sleep(SETTLE);
            self.settle()?;
        }
        Ok(())
    }

    /// Whether nothing more can be learned of how far the numbers are off.
    pub fn is_settled(&self) -> Result<bool, Error> {
        Ok(self.fold.is_bounded() || self.is_removed()?)
    }

    /// Compares slot and files once more, some time after the last process has left.
    pub fn settle(&mut self) -> Result<(), Error> {
        let reading = self.reading()?;
        if !reading.is_gone {
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
            && let Some(window) = self.calibrator.end(&counting.probe.borrow())
        {
            self.fold.calibrated(window);
        }
    }

    /// Takes the notices that wait.
    pub fn hear(&mut self) -> Result<(), Error> {
        let Some(counting) = &self.counting else {
            return Ok(());
        };
        let mut probe = counting.probe.borrow_mut();
        let notices: Vec<Notice> = iter::from_fn(|| probe.next_notice()).collect();
        drop(probe);
        self.heed(notices)
    }

    /// Takes notices of this target.
    pub fn heed(&mut self, notices: Vec<Notice>) -> Result<(), Error> {
        let (readings, gone) = if self.are_rows_due(&notices) {
            self.rows()?
        } else {
            Default::default()
        };
        // The files of the target are read once more before it is removed.
        let is_emptied =
            |notice: &Notice| notice.what == What::Emptied && notice.cgroup_id == self.cgroup.id();
        if notices.iter().any(is_emptied) {
            let reading = self.reading()?;
            self.fold.add(reading);
        }
        let is_end = |notice: &Notice| matches!(notice.what, What::Gone | What::Emptied | What::Populated);
        if let Some(counting) = self.counting.as_ref().filter(|_| notices.iter().any(is_end)) {
            self.ending.see(counting.probe.borrow().ended(counting.slot)?);
        }
        let has_moved = notices.iter().any(|notice| notice.what == What::Moved);
        for notice in notices {
            match notice.what {
                What::Peak if self.is_own(notice.slot) => self.new_peak(notice)?,
                What::Victim => self.kill(notice),
                What::Peak | What::Moved | What::Born | What::Gone | What::Emptied | What::Populated => {}
            }
        }
        self.fold.below(readings, false);
        if let Some(counting) = &self.counting {
            self.follower.release(&gone, counting)?;
            if has_moved {
                counting.probe.borrow().look()?;
            }
        }
        Ok(())
    }

    /// Whether a slot is that of the target.
    fn is_own(&self, slot: SlotId) -> bool {
        self.counting
            .as_ref()
            .is_some_and(|counting| counting.slot == slot)
    }

    /// Whether the cgroups below the target are to be read on these notices: a kill is told with what the victim's cgroup is,
    /// so that has to be known; else as often as it is cheap, since their slots keep what is not read now.
    fn are_rows_due(&self, notices: &[Notice]) -> bool {
        let is_unknown = |notice: &Notice| {
            notice.what == What::Victim && self.follower.role_of(notice.victim_slot).is_none()
        };
        let has_changed = |notice: &Notice| matches!(notice.what, What::Born | What::Gone);
        notices.iter().any(is_unknown)
            || (monotonic_ns() >= self.next_rows_ns && notices.iter().any(has_changed))
    }

    /// Reads the cgroups below the target, and forgets those that are gone.
    fn read_below(&mut self) -> Result<(), Error> {
        let (readings, gone) = self.rows()?;
        self.fold.below(readings, true);
        if let Some(counting) = &self.counting {
            self.follower.release(&gone, counting)?;
        }
        Ok(())
    }

    /// The cgroups below the target, and those of them that are gone: they have been read for the last time.
    fn rows(&mut self) -> Result<(Vec<BelowReading>, Vec<Below>), Error> {
        let begin_ns = monotonic_ns();
        let rows = match &self.counting {
            Some(counting) => self
                .follower
                .counted(&self.cgroup, counting, self.fold.rows(), &self.scanner),
            None => Ok((self.follower.sampled(&self.cgroup, &self.scanner), Vec::new())),
        };
        let end_ns = monotonic_ns();
        self.next_rows_ns = end_ns + (end_ns - begin_ns) * ROWS_SHARE;
        rows
    }

    fn new_peak(&mut self, notice: Notice) -> Result<(), Error> {
        let (pid, comm) = notice.by;
        self.fold.raised(notice.level, Task { pid, comm });
        self.scan()
    }

    fn kill(&mut self, notice: Notice) {
        let limit = notice.limit.filter(is_hit);
        let (limit_of, limit_dir) = limit.map_or((LimitOf::Unknown, None), |limit| {
            self.follower.whose(limit.cgroup_id, &self.cgroup)
        });
        self.fold.killed(Kill {
            victim: self.follower.role_of(notice.victim_slot),
            measured: self.follower.id_of(notice.slot),
            limit_of,
            limit_dir,
            notice,
        });
        self.limits = limit_levels(&self.cgroup);
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

/// A measurement as one process leaves it to the next.
#[derive(Debug, Deserialize)]
pub struct Saved {
    /// Its slot.
    pub slot: Option<SlotId>,
    /// The target.
    pub cgroup: Cgroup,
    fold: Fold,
    follower: Follower,
    hears_end: bool,
}

/// The same, as it is written.
#[derive(Serialize)]
struct Saving<'a> {
    slot: Option<SlotId>,
    cgroup: &'a Cgroup,
    fold: &'a Fold,
    follower: &'a Follower,
    hears_end: bool,
}

/// How a target is measured.
pub struct Method {
    /// The programs on it; `None`: its files.
    pub counting: Option<Counting>,
    /// How they are told.
    pub probes: Probes,
    /// How far a peak can be below the truth because of what the CPUs keep to themselves, in pages.
    pub batch_bound_pages: u64,
    /// Number of CPUs that are on.
    pub cpus: usize,
    /// Whether nothing had been in it yet.
    pub from_birth: bool,
    /// When it was born with a slot, on the monotonic clock: what has been counted since belongs to the measurement.
    pub born_ns: Option<u64>,
    /// Whether the programs count for other targets too.
    pub is_shared: bool,
}

impl Method {
    /// By the kernel programs, else by the files.
    fn find(
        hierarchies: &Hierarchies,
        chosen: &Chosen,
        levels: u32,
        force: Option<ForcedSource>,
    ) -> Result<Self, Error> {
        let mut facts = Facts::gather();
        let counted = count::count(&mut facts, hierarchies, chosen, levels, force);
        Ok(match counted {
            Ok(Counted {
                counting,
                plan,
                from_birth,
            }) => {
                let probes = count::kernel_probes(&plan, &counting.probe.borrow());
                Self {
                    counting: Some(counting),
                    probes,
                    batch_bound_pages: plan.batch_bound_pages,
                    cpus: facts.cpus,
                    from_birth,
                    born_ns: None,
                    is_shared: false,
                }
            }
            Err(error) if force.is_some_and(|force| force != ForcedSource::Sampled) => return Err(error),
            Err(error) => Self {
                counting: None,
                probes: count::sampled_probes(&facts, force, &error),
                batch_bound_pages: 0,
                cpus: facts.cpus,
                from_birth: chosen.from_birth,
                born_ns: None,
                is_shared: false,
            },
        })
    }

    /// Whether the kernel tells that the last process has left.
    fn hears_end(&self) -> bool {
        let programs = &self.probes.programs;
        programs
            .iter()
            .any(|program| program.attached && program.name == "cgroup_notify_populated")
    }
}

fn subject(chosen: Chosen, method: Method, is_counting: bool) -> Subject {
    let role = chosen.role();
    let memory_not_counted = chosen
        .cgroup
        .dir(Controller::Memory)
        .is_none()
        .then(|| why_not_counted(role).to_owned());
    let mut target = chosen.told;
    // What the programs count cannot be taken apart.
    let is_sampled = !is_counting || memory_not_counted.is_some();
    if target.own_processes == OwnProcesses::Counted && is_sampled {
        target.own_processes = OwnProcesses::TakenOff;
    }
    Subject {
        target,
        role,
        slurm: chosen.slurm,
        from_start: method.from_birth,
        probes: method.probes,
        cpus: method.cpus,
        batch_bound_pages: method.batch_bound_pages,
        memory_not_counted,
        is_one_of_many: method.is_shared,
    }
}

/// Why the memory of a target is not counted that has no cgroup for it.
fn why_not_counted(role: Option<Role>) -> &'static str {
    match role {
        Some(_) => {
            "Slurm gave the job no memory cgroup: set ConstrainRAMSpace=yes in cgroup.conf, or \
             JobAcctGatherType=jobacct_gather/cgroup in slurm.conf"
        }
        None => "the target has no cgroup of its own in a hierarchy that counts memory",
    }
}
