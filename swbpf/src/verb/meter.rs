//! Measures one target: tracks it, takes readings, hears notices.

mod fresh;
mod glance;
mod hear;
mod method;
mod saved;

use std::{cell::Ref, time::Duration};

use swbpf_common::slot::Slot;

use super::{
    calibrate::Calibrator, count::Counting, ending::Ending, reading::reading, rows::Follower, scan::Scanner,
    target::Chosen,
};
use method::subject;
pub use method::{Method, from_reason};
pub use saved::Saved;

use crate::{
    cli::ForcedSource,
    error::Error,
    fold::{BelowReading, Calibration, Fold, Reading, Scan, SlurmJob},
    job::cgroup::{Cgroup, Controller, Hierarchies},
    kernel::ladder::Rung,
    probe::{Below, Ended, Probe, monotonic_ns},
    sampled::cgroupfs::{LimitLevel, limit_levels},
    snapshot::{Exit, Kind, OwnProcesses, Snapshot},
};

/// Reading the cgroups below targets on notices may take one part in this many of the time: a job can make very many.
const ROWS_SHARE: u64 = 10;
/// The same of glimpses at memory.
const GLIMPSE_SHARE: u64 = 50;
/// Waits for kernel memory to come to rest, where events were lost and nothing could be compared since.
pub const SETTLE_TRIES: usize = 20;
/// Time between two of them.
pub const SETTLE: Duration = Duration::from_millis(5);

/// Who the programs count for, and where sw-bpf is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// For this target alone, from outside of it.
    Outside,
    /// The same, from within.
    Inside,
    /// For other targets too: whoever shares the programs times and tries them.
    BesideOthers,
}

/// A measurement under way.
pub struct Meter {
    cgroup: Cgroup,
    counting: Option<Counting>,
    fold: Fold,
    limits: Vec<LimitLevel>,
    scanner: Scanner,
    calibrator: Calibrator,
    place: Place,
    /// Cgroups below the target that were read for the last time and have their slots still.
    gone: Vec<Below>,
    follower: Follower,
    ending: Ending,
    /// Whether the kernel tells that the last process has left.
    hears_end: bool,
    was_populated: bool,
    /// When the cgroups below the target may be read again on a notice.
    next_rows_ns: u64,
    /// When memory may be glimpsed at again.
    next_glimpse_ns: u64,
    /// The slot as it was last seen, where nothing of it can be elsewhere.
    seen: Option<Box<Slot>>,
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
        let place = match subject.target.own_processes {
            _ if is_shared => Place::BesideOthers,
            OwnProcesses::Elsewhere => Place::Outside,
            _ => Place::Inside,
        };
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
        let saved = Saved {
            slot: counting.as_ref().map(|counting| counting.slot),
            cgroup,
            fold,
            follower,
            hears_end,
        };
        let mut meter = Self {
            scanner,
            calibrator,
            ..Self::of(saved, counting, limits, place)
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
        if let Some(counting) = self
            .counting
            .as_ref()
            .filter(|_| self.place != Place::BesideOthers)
        {
            self.calibrator.begin(&counting.probe.borrow());
        }
        Ok(())
    }

    /// Tries whether the programs hear, which functions can cease to let them. Where sw-bpf is inside of the target, that would
    /// move what it counts.
    fn try_hearing(&self) -> Result<(), Error> {
        if let Some(counting) = self.counting.as_ref().filter(|_| self.place == Place::Outside) {
            let mut probe = counting.probe.borrow_mut();
            if probe.rung() != Rung::Tracepoint {
                probe.hears()?;
            }
        }
        Ok(())
    }

    /// Takes a reading besides the looks, after the CPUs were looked at.
    pub fn refresh(&mut self) -> Result<(), Error> {
        let reading = self.reading()?;
        self.fold.add(reading);
        self.read_below()
    }

    /// What is known by now.
    pub fn fold(&self) -> &Fold {
        &self.fold
    }

    /// The same, when it is over.
    pub fn into_fold(self) -> Fold {
        self.fold
    }

    /// Whether the target was removed.
    pub fn is_removed(&self) -> Result<bool, Error> {
        Ok(matches!(self.ended()?, Some(Ended::Removed(_))) || !self.cgroup.exists())
    }

    /// Whether the programs know that it has ended, and how.
    fn ended(&self) -> Result<Option<Ended>, Error> {
        match &self.counting {
            Some(counting) => counting.probe.borrow().ended(counting.slot),
            None => Ok(None),
        }
    }

    /// The same, as far as its slot tells.
    pub fn is_told_removed(&self) -> bool {
        let told = |counting: &Counting| counting.probe.borrow().is_gone(counting.slot);
        self.counting.as_ref().is_some_and(told)
    }

    /// What Slurm says of the job has come to be known; whether that is another thing than before.
    pub fn tell_job(&mut self, slurm: SlurmJob) -> bool {
        self.fold.tell_job(slurm)
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
        // Else they are not of this target alone.
        if self.place != Place::BesideOthers {
            self.hear()?;
        }
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

    /// Reads the cgroups below the target, and forgets those that are gone.
    fn read_below(&mut self) -> Result<(), Error> {
        let (readings, gone) = self.rows()?;
        self.fold.below(readings, true);
        self.forget(gone)
    }

    /// Gives the slots of those back that are gone; where another process may have to go on, only once they are kept.
    fn forget(&mut self, gone: Vec<Below>) -> Result<(), Error> {
        self.gone = gone;
        match self.place {
            Place::BesideOthers => Ok(()),
            Place::Outside | Place::Inside => self.release_gone(),
        }
    }

    /// Whether slots wait to be given back until what they told is kept.
    pub fn has_gone(&self) -> bool {
        !self.gone.is_empty()
    }

    /// Gives them back.
    pub fn release_gone(&mut self) -> Result<(), Error> {
        let gone = std::mem::take(&mut self.gone);
        match &self.counting {
            Some(counting) => self.follower.release(&gone, counting),
            None => Ok(()),
        }
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
        let targets = self.probe().map_or(1, |probe| probe.targets());
        self.next_rows_ns = end_ns + (end_ns - begin_ns) * ROWS_SHARE * targets;
        rows
    }

    fn reading(&mut self) -> Result<Reading, Error> {
        let targets = self.probe().map_or(1, |probe| probe.targets());
        self.scanner.share_with(targets);
        // Slurm sets it when the cgroup is there, and whoever may can change it at any time.
        if self.cgroup.exists() {
            self.limits = limit_levels(&self.cgroup);
        }
        let reading = reading(
            &self.cgroup,
            self.counting.as_ref(),
            &mut self.scanner,
            &self.limits,
        )?;
        Ok(match self.ended()? {
            Some(Ended::Removed(ns)) => reading.at_removal(ns, self.fold.last().ns),
            _ => reading,
        })
    }
}
