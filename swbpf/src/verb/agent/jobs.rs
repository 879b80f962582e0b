//! The jobs of this node: each with its measurement and its record.

mod slurm;
mod take_up;

use std::{
    cell::{Ref, RefCell},
    collections::BTreeMap,
    iter,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use super::{birth::Nests, note, run_dir, state::States};
use crate::{
    cli::{self, ForcedSource},
    error::Error,
    job::cgroup::{Controller, Hierarchies},
    kernel::{
        ladder::Rung,
        layout::Hierarchy,
        support::{Facts, plan},
    },
    probe::{Notice, Pinned, Pins, Probe, Room, SlotId, What},
    record::{Dir, Writer},
    snapshot::{Kind, Probes},
    verb::{
        calibrate::Calibrator,
        count::{Counting, kernel_probes},
        meter::{Meter, SETTLE_TRIES},
        pace::{News, Pace},
    },
};
pub use slurm::Said;

/// Jobs that are counted at one time, and their steps and tasks.
const ROOM: Room = Room {
    targets: 1024,
    below: 16_384,
};
/// Answers of Slurm that wait to be taken.
const ANSWERS: usize = 64;

/// A job under way.
struct Job {
    meter: Meter,
    name: String,
    cgroup_id: u64,
    record: Option<Writer>,
    pace: Pace,
    news: News,
    /// Whether the record is to have a line at the next look.
    has_news: bool,
    /// Whether the last line could not be written: it is told once.
    is_failing: bool,
    /// Comparisons with the files that are left to be made since the last process has left.
    to_settle: usize,
}

/// All of them.
pub struct Jobs {
    hierarchies: Hierarchies,
    probe: Rc<RefCell<Probe>>,
    probes: Probes,
    batch_bound_pages: u64,
    cpus: usize,
    nests: Nests,
    records: Dir,
    states: States,
    by_slot: BTreeMap<SlotId, Job>,
    calibrator: Calibrator,
    answers: (mpsc::Sender<Said>, mpsc::Receiver<Said>),
    /// Targets born without a slot, as last told.
    without_slot: u64,
}

impl Jobs {
    /// Takes over what an agent before this one left, or begins anew.
    pub fn begin(
        hierarchies: Hierarchies,
        asked: &cli::Agent,
        force: Option<ForcedSource>,
        calibrator: Calibrator,
    ) -> Result<Self, Error> {
        let run_dir = run_dir(&asked.socket);
        let states = States::open(run_dir.join("jobs"))?;
        let records = Dir::open(&asked.records)?;
        let mut nests = Nests::of(&hierarchies, &asked.watch)?;
        let mut facts = Facts::gather();
        let version = hierarchies
            .version_of(Controller::Memory)
            .ok_or(Error::NoController { controller: "memory" })?;
        let mut plan = plan(&mut facts, Hierarchy::Of(Controller::Memory), version)?;
        if let Some(rung) = force.and_then(Rung::asked) {
            plan = plan.on(rung)?;
        }
        let own = hierarchies.own_cgroup().ok();
        let own = own.as_ref().and_then(|own| own.nearest_dir(Controller::Memory));
        let pins = Pins {
            dir: asked.pin_dir.clone(),
            loaded: run_dir.join("loaded.json"),
        };
        let pinned = Probe::pinned(&pins, &plan, ROOM, own.map(|dir| dir.path.as_path()))?;
        let Pinned {
            mut probe,
            why_anew,
            is_taken_over,
        } = pinned;
        if let Some(why) = why_anew {
            note(&format!("counting begins anew, since {why}"));
        }
        for (id, watch) in nests.new_ones(&hierarchies)? {
            probe.watch(id, watch)?;
        }
        let probes = kernel_probes(&plan, &probe);
        let mut jobs = Self {
            probes,
            batch_bound_pages: plan.batch_bound_pages,
            cpus: facts.cpus,
            probe: Rc::new(RefCell::new(probe)),
            hierarchies,
            nests,
            records,
            states,
            by_slot: BTreeMap::new(),
            calibrator,
            answers: mpsc::channel(ANSWERS),
            without_slot: 0,
        };
        jobs.take_up(is_taken_over)?;
        Ok(jobs)
    }

    /// The programs.
    pub fn probe(&self) -> Ref<'_, Probe> {
        self.probe.borrow()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.by_slot.len()
    }

    fn counting(&self, slot: SlotId) -> Counting {
        Counting {
            probe: Rc::clone(&self.probe),
            slot,
        }
    }

    /// Takes the notices that wait.
    pub fn hear(&mut self) -> Result<(), Error> {
        let mut probe = self.probe.borrow_mut();
        let notices: Vec<Notice> = iter::from_fn(|| probe.next_notice()).collect();
        let mut by_top: BTreeMap<SlotId, Vec<Notice>> = BTreeMap::new();
        for notice in notices {
            if let Some(top) = probe.top_of(notice.slot)? {
                by_top.entry(top).or_default().push(notice);
            }
        }
        drop(probe);
        for (top, notices) in by_top {
            if !self.by_slot.contains_key(&top) && notices.iter().any(|notice| notice.what == What::Born) {
                let top = self.probe().top(top)?;
                self.born(&top)?;
            }
            if let Some(job) = self.by_slot.get_mut(&top) {
                job.has_news |= notices.iter().any(is_news);
                let is_emptied = |notice: &Notice| notice.what == What::Emptied && notice.slot == top;
                if notices.iter().any(is_emptied) {
                    job.to_settle = SETTLE_TRIES;
                }
                let has_kill = notices.iter().any(|notice| notice.what == What::Victim);
                job.meter.heed(notices)?;
                // What the kernel holds no more.
                if has_kill || job.meter.has_gone() {
                    let kept = keep(job, &self.states);
                    tell(job, kept);
                }
            }
        }
        Ok(())
    }

    /// Whether jobs have just emptied and their numbers have no bound yet: their cgroups, and so the files that would tell, go
    /// within milliseconds.
    pub fn is_settling(&self) -> bool {
        self.by_slot.values().any(|job| job.to_settle > 0)
    }

    /// Compares their slots with the files.
    pub fn settle(&mut self) -> Result<(), Error> {
        for job in self.by_slot.values_mut().filter(|job| job.to_settle > 0) {
            if job.meter.is_settled()? {
                job.to_settle = 0;
            } else {
                job.meter.settle()?;
                job.to_settle -= 1;
            }
        }
        Ok(())
    }

    /// Time until the programs have been timed; `None` while they are not.
    pub fn timed(&self) -> Option<Duration> {
        self.calibrator.left()
    }

    /// The programs have been timed.
    pub fn end_timing(&mut self) {
        if let Some(window) = self.calibrator.end(&self.probe.borrow()) {
            for job in self.by_slot.values_mut() {
                job.meter.calibrated(window);
            }
        }
    }

    /// Looks at all jobs, and ends those that have ended.
    pub fn look(&mut self) -> Result<(), Error> {
        for (id, watch) in self.nests.new_ones(&self.hierarchies)? {
            self.probe.borrow_mut().watch(id, watch)?;
        }
        self.probe.borrow().look()?;
        self.calibrator.begin(&self.probe.borrow());
        if self.probe().rung() != Rung::Tracepoint {
            self.probe.borrow_mut().hears()?;
        }
        let now = Instant::now();
        let mut ended = Vec::new();
        for (slot, job) in &mut self.by_slot {
            if job.meter.is_removed()? {
                ended.push(*slot);
            } else if job.pace.is_due(now) || job.has_news {
                job.meter.look()?;
                write(job, &self.states, Kind::Progress);
            } else {
                job.meter.glance()?;
            }
        }
        for slot in ended {
            self.end(slot)?;
        }
        self.take_missed()?;
        Ok(())
    }

    fn end(&mut self, slot: SlotId) -> Result<(), Error> {
        let Some(mut job) = self.by_slot.remove(&slot) else {
            return Ok(());
        };
        job.meter.finish()?;
        write(&mut job, &self.states, Kind::Summary);
        self.states.forget(job.cgroup_id);
        self.probe.borrow_mut().untrack(job.cgroup_id, slot)
    }

    /// Jobs whose birth was not told: the notice found no room.
    fn take_missed(&mut self) -> Result<(), Error> {
        let losses = self.probe().losses()?;
        if losses.without_target > self.without_slot {
            note(&format!(
                "{} jobs are not measured: more than {} at one time",
                losses.without_target, ROOM.targets
            ));
        }
        self.without_slot = losses.without_target;
        let tops = self.probe().tops()?;
        for top in tops {
            if !self.by_slot.contains_key(&top.slot) {
                self.born(&top)?;
            }
        }
        Ok(())
    }

    /// Leaves all to the next agent.
    pub fn leave(&mut self) {
        for job in self.by_slot.values_mut() {
            write(job, &self.states, Kind::Progress);
        }
    }
}

/// What a record must have soon.
fn is_news(notice: &Notice) -> bool {
    matches!(
        notice.what,
        What::Peak | What::Victim | What::Gone | What::Emptied
    )
}

/// Adds a line to the record of a job, and keeps what the next agent needs.
fn write(job: &mut Job, states: &States, kind: Kind) {
    let snapshot = job.meter.snapshot(kind, None);
    job.has_news = false;
    job.news.are_in(&snapshot);
    let written = match &mut job.record {
        Some(record) => record.append(&snapshot),
        None => Ok(()),
    };
    let kept = keep(job, states);
    tell(job, written.and(kept));
}

/// Keeps what the next agent needs, and then gives the slots back of what it holds.
fn keep(job: &mut Job, states: &States) -> Result<(), Error> {
    let saved = job.meter.save()?;
    let record = job.record.as_ref().map(Writer::name);
    states.keep(job.cgroup_id, &job.name, record, &saved)?;
    job.meter.release_gone()
}

/// Tells a failure to write, once until it is over.
fn tell(job: &mut Job, written: Result<(), Error>) {
    let was_failing = std::mem::replace(&mut job.is_failing, written.is_err());
    if let Some(error) = written.err().filter(|_| !was_failing) {
        note(&format!(
            "job {}: {error}; it is tried again with each line",
            job.name
        ));
    }
}
