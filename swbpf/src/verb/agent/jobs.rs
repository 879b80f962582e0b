//! The jobs of this node: each with its measurement and its record.

use std::{
    cell::{Ref, RefCell},
    collections::BTreeMap,
    iter,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use super::{
    birth::{Born, Nests},
    note, run_dir,
    state::{Left, States},
};
use crate::{
    cli::{self, ForcedSource},
    error::Error,
    fold::SlurmJob,
    job::{
        cgroup::{Controller, Hierarchies},
        id::JobId,
        slurm::{JobFacts, Slurm, Unknown},
    },
    kernel::{
        ladder::Rung,
        layout::Hierarchy,
        support::{Facts, plan},
    },
    probe::{Notice, Pinned, Pins, Probe, Room, SlotId, Top, What},
    record::{Dir, Writer},
    sampled::cgroupfs::MemoryFiles,
    snapshot::{Kind, Probes},
    verb::{
        calibrate::Calibrator,
        count::{Counting, kernel_probes, start},
        facts,
        meter::{Meter, Method, SETTLE_TRIES},
        pace::{News, Pace},
    },
};

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

/// What Slurm said of the job of a cgroup.
pub struct Said {
    cgroup_id: u64,
    answer: Result<Vec<JobFacts>, Unknown>,
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
    jobs: BTreeMap<SlotId, Job>,
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
        let own = hierarchies.cgroup_of_pid(std::process::id()).ok();
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
            jobs: BTreeMap::new(),
            calibrator: Calibrator::default(),
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

    /// Takes up what is counted already, then what is there and is not.
    fn take_up(&mut self, is_taken_over: bool) -> Result<(), Error> {
        let mut left = self.states.all()?;
        let tops = self.probe().tops()?;
        for top in tops {
            let taken = match left.remove(&top.cgroup_id) {
                Some(Ok(left)) if is_taken_over => self.resume(top.slot, left),
                Some(Err(error)) => Err(error),
                _ => Ok(false),
            };
            let is_taken = taken.unwrap_or_else(|error| {
                note(&format!("a job is measured anew: {error}"));
                false
            });
            if !is_taken {
                self.born(&top)?;
            }
        }
        for cgroup_id in left.into_keys() {
            self.states.forget(cgroup_id);
        }
        let known: Vec<u64> = self.jobs.values().map(|job| job.cgroup_id).collect();
        for dir in self.nests.existing(&self.hierarchies)? {
            if let Some(born) = self.nests.identify(&self.hierarchies, &dir, false)
                && !known.contains(&born.chosen.cgroup.id())
            {
                self.attach(born)?;
            }
        }
        Ok(())
    }

    /// Goes on with a job where an agent before this one was.
    fn resume(&mut self, slot: SlotId, left: Left) -> Result<bool, Error> {
        if left.saved.slot != Some(slot) {
            return Ok(false);
        }
        let cgroup_id = left.saved.cgroup.id();
        let record = left.record.map(|name| Writer::resume(&self.records, &name));
        let counting = self.counting(slot);
        let mut job = Job {
            meter: Meter::resume(left.saved, counting)?,
            name: left.job,
            cgroup_id,
            record: record.transpose()?,
            pace: Pace::begin(Instant::now()),
            news: News::default(),
            has_news: true,
            is_failing: false,
            to_settle: 0,
        };
        job.meter.look()?;
        self.jobs.insert(slot, job);
        Ok(true)
    }

    /// Counts for a job that was there before.
    fn attach(&mut self, born: Born) -> Result<(), Error> {
        let cgroup = &born.chosen.cgroup;
        let start = start(&MemoryFiles::read(cgroup));
        let levels = crate::verb::rows::Follower::new(&born.chosen).levels();
        let tracked = self.probe.borrow_mut().track(cgroup.id(), start, levels);
        match tracked {
            Ok(slot) => self.add(slot, born, None),
            Err(error @ Error::TableFull { .. }) => {
                note(&format!("job {} is not measured: {error}", born.name));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// A target has a slot that is not measured yet.
    fn born(&mut self, top: &Top) -> Result<(), Error> {
        if !self.probe().is_tracked(top.cgroup_id, top.slot) {
            // Its end has been recorded since.
            return Ok(());
        }
        let is_born = top.born_ns.is_some();
        let there = self
            .nests
            .find(top.cgroup_id)
            .and_then(|dir| self.nests.identify(&self.hierarchies, &dir, is_born))
            .filter(|born| born.chosen.cgroup.id() == top.cgroup_id);
        let found = there.or_else(|| {
            let gone = self.nests.removed(&self.hierarchies, top);
            gone.filter(|_| is_born)
        });
        match found {
            Some(born) => self.add(top.slot, born, top.born_ns),
            // It is no job: its slot is for others.
            None => self.probe.borrow_mut().untrack(top.cgroup_id, top.slot),
        }
    }

    fn add(&mut self, slot: SlotId, born: Born, born_ns: Option<u64>) -> Result<(), Error> {
        let Born {
            chosen,
            name,
            uid,
            id,
        } = born;
        let cgroup_id = chosen.cgroup.id();
        let method = Method {
            counting: Some(self.counting(slot)),
            probes: self.probes.clone(),
            batch_bound_pages: self.batch_bound_pages,
            cpus: self.cpus,
            from_birth: chosen.from_birth,
            born_ns,
            is_shared: true,
        };
        let meter = Meter::beside_others(chosen, method)?;
        let record = Writer::begin(&self.records, &name, uid.filter(|uid| *uid != 0));
        let is_failing = record.is_err();
        if let Err(error) = &record {
            note(&format!("job {name} has no record: {error}"));
        }
        let job = Job {
            meter,
            name,
            cgroup_id,
            record: record.ok(),
            pace: Pace::begin(Instant::now()),
            news: News::default(),
            has_news: false,
            is_failing,
            to_settle: 0,
        };
        let job = self.jobs.entry(slot).insert_entry(job).into_mut();
        write(job, &self.records, &self.states, Kind::Progress);
        if let Some(id) = id {
            self.ask(cgroup_id, id);
        }
        Ok(())
    }

    fn counting(&self, slot: SlotId) -> Counting {
        Counting {
            probe: Rc::clone(&self.probe),
            slot,
        }
    }

    /// Asks Slurm for a job, which may take long.
    fn ask(&self, cgroup_id: u64, id: JobId) {
        let answers = self.answers.0.clone();
        tokio::spawn(async move {
            let answer = Slurm::default().facts(&id).await;
            // The agent ends.
            let _ = answers.send(Said { cgroup_id, answer }).await;
        });
    }

    /// The next answer of Slurm.
    pub async fn said(&mut self) -> Option<Said> {
        self.answers.1.recv().await
    }

    /// Takes an answer of Slurm.
    pub fn learn(&mut self, said: Said) {
        let Some(job) = self.jobs.values_mut().find(|job| job.cgroup_id == said.cgroup_id) else {
            return;
        };
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let (known, why) = match &said.answer {
            Ok(all) => {
                let known = all.iter().find(|facts| facts.job_id.to_string() == job.name);
                (known, "Slurm does not know this job, or no more".to_owned())
            }
            Err(unknown) => (None, unknown.to_string()),
        };
        job.meter.tell_job(SlurmJob {
            job_id: Some(known.map_or(job.name.clone(), |facts| facts.shown_id().to_string())),
            facts: known.map(|facts| facts::told(facts, None, &host)),
            why_no_facts: Some(why),
            started: known.and_then(|facts| facts.start),
        });
        job.has_news = true;
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
            if !self.jobs.contains_key(&top) && notices.iter().any(|notice| notice.what == What::Born) {
                let top = self.probe().top(top)?;
                self.born(&top)?;
            }
            if let Some(job) = self.jobs.get_mut(&top) {
                job.has_news |= notices.iter().any(is_news);
                let is_emptied = |notice: &Notice| notice.what == What::Emptied && notice.slot == top;
                if notices.iter().any(is_emptied) {
                    job.to_settle = SETTLE_TRIES;
                }
                job.meter.heed(notices)?;
            }
        }
        Ok(())
    }

    /// Whether jobs have just emptied and their numbers have no bound yet: their cgroups, and so the files that would tell, go
    /// within milliseconds.
    pub fn is_settling(&self) -> bool {
        self.jobs.values().any(|job| job.to_settle > 0)
    }

    /// Compares their slots with the files.
    pub fn settle(&mut self) -> Result<(), Error> {
        for job in self.jobs.values_mut().filter(|job| job.to_settle > 0) {
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
            for job in self.jobs.values_mut() {
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
        for (slot, job) in &mut self.jobs {
            if job.meter.is_removed()? {
                ended.push(*slot);
            } else if job.pace.is_due(now) || job.has_news {
                job.meter.look()?;
                write(job, &self.records, &self.states, Kind::Progress);
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
        let Some(mut job) = self.jobs.remove(&slot) else {
            return Ok(());
        };
        job.meter.finish()?;
        write(&mut job, &self.records, &self.states, Kind::Summary);
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
            if !self.jobs.contains_key(&top.slot) {
                self.born(&top)?;
            }
        }
        Ok(())
    }

    /// Leaves all to the next agent.
    pub fn leave(&mut self) {
        for job in self.jobs.values_mut() {
            write(job, &self.records, &self.states, Kind::Progress);
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
fn write(job: &mut Job, records: &Dir, states: &States, kind: Kind) {
    let snapshot = job.meter.snapshot(kind, None);
    job.has_news = false;
    job.news.are_in(&snapshot);
    let written = match &mut job.record {
        Some(record) => record.append(records, &snapshot),
        None => Ok(()),
    };
    let record = job.record.as_ref().map(Writer::name);
    let kept = job
        .meter
        .save()
        .and_then(|saved| states.keep(job.cgroup_id, &job.name, record, &saved));
    let failure = written.err().or(kept.err());
    if let Some(error) = failure.as_ref().filter(|_| !job.is_failing) {
        note(&format!(
            "job {}: {error}; it is tried again with each line",
            job.name
        ));
    }
    job.is_failing = failure.is_some();
}
