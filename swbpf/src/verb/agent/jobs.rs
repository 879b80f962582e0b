//! The jobs of this node: each with its measurement and its record.

mod answers;
mod files;
mod lines;
mod look;
mod metrics;
mod slurm;
mod take_up;
mod turns;

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
    allowance::Allowance,
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
    probe::{Home, Notice, Pinned, Pins, Probe, Room, SlotId, What, left_beside},
    snapshot::{HeldBy, Kind, Probes},
    verb::{
        calibrate::Calibrator,
        count::{Counting, kernel_probes},
        meter::{Meter, SETTLE_TRIES},
        pace::{News, Pace},
        reading::own_cpu_ns,
    },
};
pub use answers::{Line, Question, Wanted};
use files::Place;
use lines::{Failing, Lines, Unwritten};
use look::spent_since;
use slurm::{Asked, Asking, Late};
use turns::Turns;

/// Jobs that are counted at one time, and their steps and tasks.
const ROOM: Room = Room {
    targets: 1024,
    below: 16_384,
};
/// Notices that are taken at once.
const MAX_HEARD: usize = 4096;
/// Taking notices may take one part in this many of the time.
const HEARING_SHARE: u32 = 20;

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
    /// What Slurm is asked of it, until it has answered.
    asking: Option<Asking>,
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
    /// The directory of the pins is held as long as this is there.
    home: Home,
    /// Whether they are not whole.
    pins: Failing,
    nests: Nests,
    records: Place,
    states: States,
    by_slot: BTreeMap<SlotId, Job>,
    unwritten: Unwritten,
    /// Whether a job could not be begun to be measured.
    beginning: Failing,
    calibrator: Calibrator,
    slurm: Asked,
    late: Late,
    /// Why counting began anew with this agent, where another had counted.
    why_anew: Option<String>,
    /// Targets born without a slot, as last told.
    without_slot: u64,
    /// The windows of those who read metrics.
    pub windows: Windows,
    /// Whether jobs have come or gone since that was last cleared.
    pub have_changed: bool,
    turns: Turns,
    hearing: Allowance,
    looks: u64,
    /// Whether nests have come that the kernel did not know.
    has_new_nests: bool,
}

/// Tells of programs that nobody reads, which an agent with another directory left.
fn tell_left(pin_dir: &Path) {
    for left in left_beside(pin_dir) {
        note(&format!(
            "{0} has the programs of an agent that does not run: they cost each event, for nobody; `rm -r {0}` ends them",
            left.display()
        ));
    }
}

impl Jobs {
    /// Takes over what an agent before this one left, or begins anew.
    pub fn begin(
        hierarchies: Hierarchies,
        mut nests: Nests,
        asked: &cli::Agent,
        run_dir: &Path,
        force: Option<ForcedSource>,
        calibrator: Calibrator,
    ) -> Result<Self, Error> {
        let records = Place::open(&asked.records)?;
        let states = States::open(run_dir.join("left"))?.apart_from(&asked.records)?;
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
            home,
            why_anew,
            is_taken_over,
        } = pinned;
        if let Some(why) = &why_anew {
            note(&format!("counting begins anew, since {why}"));
        }
        tell_left(&asked.pin_dir);
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
            home,
            pins: Failing::default(),
            nests,
            records,
            states,
            by_slot: BTreeMap::new(),
            unwritten: Unwritten::default(),
            beginning: Failing::default(),
            calibrator,
            slurm: Asked::default(),
            late: Late::default(),
            why_anew,
            without_slot: 0,
            windows: Windows::new(metrics::readers(asked)),
            have_changed: false,
            turns: Turns::begin(),
            hearing: Allowance::new(HEARING_SHARE, Instant::now()),
            looks: 0,
            has_new_nests: false,
        };
        jobs.take_up(is_taken_over)?;
        jobs.why_anew = None;
        Ok(jobs)
    }

    /// The programs.
    pub fn probe(&self) -> Ref<'_, Probe> {
        self.probe.borrow()
    }

    /// Where they are watched for.
    pub fn watched(&self) -> String {
        self.nests.told(&self.hierarchies)
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
        let begin_ns = own_cpu_ns();
        let heard = self.hear_all();
        self.probe().end_round();
        self.hearing.spend(spent_since(begin_ns));
        heard
    }

    /// Whether notices may be taken before the next look: a job can cause very many.
    pub fn may_hear(&self) -> bool {
        self.hearing.has_left()
    }

    fn hear_all(&mut self) -> Result<(), Error> {
        let mut probe = self.probe.borrow_mut();
        let notices: Vec<Notice> = iter::from_fn(|| probe.next_notice()).take(MAX_HEARD).collect();
        let is_of_rows = |notice: &Notice| matches!(notice.what, What::Born | What::Gone | What::Victim);
        if notices.iter().any(is_of_rows) {
            probe.begin_round()?;
        }
        let mut by_top: BTreeMap<SlotId, Vec<Notice>> = BTreeMap::new();
        for notice in notices {
            if let Some(top) = probe.top_of(notice.slot) {
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
        if job.asking.is_some() {
            self.ask_late(cgroup_id, &job.lines, job.meter.into_fold());
        }
        self.unwritten.add(cgroup_id, job.lines, &summary, &self.states);
        self.write_summaries();
        self.probe.borrow_mut().untrack(cgroup_id, slot)
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
        metrics::take(self);
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

    /// Adds a line to its record, and keeps what the next agent needs.
    fn write(&mut self, records: &Place, states: &States) {
        let snapshot = self.meter.snapshot(Kind::Progress, None);
        self.has_news = false;
        self.pace.has_line(Instant::now());
        self.news.are_in(&snapshot);
        let written = match records.dir() {
            Some(records) => self.lines.append(records, &snapshot),
            None => Ok(()),
        };
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
