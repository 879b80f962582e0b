//! The jobs of this node: each with its measurement and its record.

mod answers;
mod files;
mod lines;
mod metrics;
mod slurm;
mod take_up;

use std::{
    cell::{Ref, RefCell},
    collections::BTreeMap,
    iter,
    path::Path,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use super::{
    birth::Nests,
    metrics::{Highs, Windows},
    note,
    state::{Leaving, States},
};
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
    record::Dir,
    snapshot::{HeldBy, Kind, Probes},
    verb::{
        calibrate::Calibrator,
        count::{Counting, kernel_probes},
        meter::{Meter, SETTLE_TRIES},
        pace::{News, Pace},
    },
};
pub use answers::{Line, Question, Wanted};
use lines::{Failing, Lines, Unwritten};
use slurm::{Asked, Asking};

/// Jobs that are counted at one time, and their steps and tasks.
const ROOM: Room = Room {
    targets: 1024,
    below: 16_384,
};

/// A job under way.
struct Job {
    meter: Meter,
    cgroup_id: u64,
    lines: Lines,
    pace: Pace,
    news: News,
    /// Whether the record is to have a line at the next look.
    has_news: bool,
    /// Whether it could not be read: it is tried again at the next look.
    reading: Failing,
    /// Comparisons with the files that are left to be made since the last process has left.
    to_settle: usize,
    /// What Slurm is asked of it.
    _asking: Option<Asking>,
    /// Clients that have a line at each look.
    followers: Vec<mpsc::Sender<Line>>,
    /// Its maxima since its readers last had them.
    highs: Option<Highs>,
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
    unwritten: Unwritten,
    /// Whether a job could not be begun to be measured.
    beginning: Failing,
    calibrator: Calibrator,
    slurm: Asked,
    /// Targets born without a slot, as last told.
    without_slot: u64,
    /// The windows of those who read metrics.
    pub windows: Windows,
    /// Whether jobs have come or gone since that was last cleared.
    pub have_changed: bool,
}

impl Jobs {
    /// Takes over what an agent before this one left, or begins anew.
    pub fn begin(
        hierarchies: Hierarchies,
        asked: &cli::Agent,
        run_dir: &Path,
        force: Option<ForcedSource>,
        calibrator: Calibrator,
    ) -> Result<Self, Error> {
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
        let probes = kernel_probes(&plan, &probe, HeldBy::Agent);
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
            unwritten: Unwritten::default(),
            beginning: Failing::default(),
            calibrator,
            slurm: Asked::default(),
            without_slot: 0,
            windows: Windows::new(metrics::readers(asked)),
            have_changed: false,
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
                // One that cannot be measured yet is tried again at the next look.
                let _ = self.born(&top);
            }
            if let Some(job) = self.by_slot.get_mut(&top) {
                job.has_news |= notices.iter().any(is_news);
                job.hear(top, notices, &self.states);
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
    pub fn settle(&mut self) {
        for job in self.by_slot.values_mut().filter(|job| job.to_settle > 0) {
            let settled = job.settle();
            job.to_settle = if settled.as_ref().is_ok_and(|settled| *settled) {
                0
            } else {
                job.to_settle - 1
            };
            job.read(settled.map(drop));
        }
    }

    /// Time until the programs have been timed; `None` while they are not.
    pub fn timed(&self) -> Option<Duration> {
        self.calibrator.left()
    }

    /// The programs have been timed.
    pub fn end_timing(&mut self) {
        if let Some(window) = self.calibrator.end(&self.probe.borrow()) {
            self.windows.timed.add(window);
            for job in self.by_slot.values_mut() {
                job.meter.calibrated(window);
            }
        }
    }

    /// Looks at all jobs, and ends those that have ended.
    pub fn look(&mut self) -> Result<(), Error> {
        let new = self.nests.new_ones(&self.hierarchies)?;
        for (id, watch) in &new {
            self.probe.borrow_mut().watch(*id, *watch)?;
        }
        if !new.is_empty() {
            self.take_existing()?;
        }
        self.probe.borrow().look()?;
        self.calibrator.begin(&self.probe.borrow());
        if self.probe().rung() != Rung::Tracepoint {
            self.probe.borrow_mut().hears()?;
        }
        let now = Instant::now();
        let mut ended = Vec::new();
        for (slot, job) in &mut self.by_slot {
            let has_ended = job.look(now, &self.records, &self.states);
            if matches!(has_ended, Ok(true)) {
                ended.push(*slot);
            }
            job.read(has_ended.map(drop));
        }
        for slot in ended {
            self.end(slot)?;
        }
        self.unwritten.write(&self.records, &self.states);
        self.take_missed()
    }

    /// Ends a job. Its slot is free for others only when what it told is kept.
    fn end(&mut self, slot: SlotId) -> Result<(), Error> {
        let Some(mut job) = self.by_slot.remove(&slot) else {
            return Ok(());
        };
        let finished = job.meter.finish();
        job.read(finished);
        let summary = job.meter.snapshot(Kind::Summary, None);
        job.tell_followers(&summary);
        self.keep_ended(&mut job, &summary);
        let cgroup_id = job.cgroup_id;
        self.unwritten.add(cgroup_id, job.lines, &summary, &self.states);
        self.unwritten.write(&self.records, &self.states);
        self.probe.borrow_mut().untrack(cgroup_id, slot)
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
        let mut begun = Ok(());
        let tops = self.probe().tops()?;
        for top in tops {
            if !self.by_slot.contains_key(&top.slot) {
                begun = begun.and(self.born(&top));
            }
        }
        if let Some(error) = self.beginning.new_one(begun) {
            note(&format!(
                "a job cannot be measured: {error}; it is tried again with each look, and counting goes on"
            ));
        }
        Ok(())
    }

    /// Leaves all to the next agent.
    pub fn leave(&mut self) {
        for job in self.by_slot.values_mut() {
            job.write(&self.records, &self.states);
        }
    }
}

impl Job {
    /// Takes its notices.
    fn hear(&mut self, slot: SlotId, notices: Vec<Notice>, states: &States) {
        self.has_news |= notices.iter().any(is_news);
        let is_emptied = |notice: &Notice| notice.what == What::Emptied && notice.slot == slot;
        if notices.iter().any(is_emptied) {
            self.to_settle = SETTLE_TRIES;
        }
        let has_kill = notices.iter().any(|notice| notice.what == What::Victim);
        let heard = self.meter.heed(notices);
        self.read(heard);
        // What the kernel holds no more.
        if has_kill || self.meter.has_gone() {
            let kept = self.keep(states);
            self.lines.tell(kept);
        }
    }

    /// Compares slot and files once more; whether there is nothing to be learned from that.
    fn settle(&mut self) -> Result<bool, Error> {
        let is_settled = self.meter.is_settled()?;
        if !is_settled {
            self.meter.settle()?;
        }
        Ok(is_settled)
    }

    /// Whether it has ended; else it is looked at.
    fn look(&mut self, now: Instant, records: &Dir, states: &States) -> Result<bool, Error> {
        if self.meter.is_removed()? {
            return Ok(true);
        }
        let has_line = self.pace.is_due(now) || self.has_news;
        if has_line || !self.followers.is_empty() {
            self.meter.look()?;
        } else {
            self.meter.glance()?;
        }
        metrics::take(self);
        if !self.followers.is_empty() {
            let snapshot = self.meter.snapshot(Kind::Progress, None);
            self.tell_followers(&snapshot);
        }
        if has_line {
            self.write(records, states);
        }
        Ok(false)
    }

    /// Adds a line to its record, and keeps what the next agent needs.
    fn write(&mut self, records: &Dir, states: &States) {
        let snapshot = self.meter.snapshot(Kind::Progress, None);
        self.has_news = false;
        self.news.are_in(&snapshot);
        let written = self.lines.append(records, &snapshot);
        let kept = self.keep(states);
        self.lines.tell(written.and(kept));
    }

    /// Keeps what the next agent needs, and then gives the slots back of what it holds.
    fn keep(&mut self, states: &States) -> Result<(), Error> {
        let saved = self.meter.save()?;
        states.keep(self.cgroup_id, &self.lines.left(), Leaving::Running(&saved))?;
        self.meter.release_gone()
    }

    /// Tells that it could not be read, once until it can.
    fn read(&mut self, done: Result<(), Error>) {
        if let Some(error) = self.reading.new_one(done) {
            note(&format!(
                "job {} cannot be read: {error}; it is tried again with each look, and counting goes on",
                self.lines.job
            ));
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
