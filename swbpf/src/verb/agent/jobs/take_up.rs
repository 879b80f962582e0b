//! Jobs as they come: left by an agent before, there before, or born.

use std::{collections::BTreeSet, time::Instant};

use super::{Failing, Job, Jobs, Lines};
use crate::{
    error::Error,
    probe::{SlotId, Top},
    sampled::cgroupfs::MemoryFiles,
    verb::{
        agent::{
            birth::Born,
            note,
            state::{self, Known, Left},
        },
        count::start,
        meter::{Meter, Method, Saved, from_reason},
        pace::{News, Pace},
        rows::Follower,
        target::Chosen,
    },
};

impl Jobs {
    /// Takes up what is counted already, then what is there and is not.
    pub(super) fn take_up(&mut self, is_taken_over: bool) -> Result<(), Error> {
        let mut left = self.states.all()?;
        let tops = self.probe().tops()?;
        let (mut taken_over, mut ended) = (0, 0);
        for top in tops {
            let taken = match left.remove(&top.cgroup_id) {
                Some(Ok(Left {
                    lines,
                    what: Known::Running(saved),
                })) if is_taken_over => self.resume(top.slot, top.cgroup_id, lines, *saved),
                Some(Ok(Left {
                    lines,
                    what: Known::Ended(summary),
                })) => {
                    // Its slot was not given back.
                    self.unwritten.wait(top.cgroup_id, Lines::resume(lines), summary);
                    self.probe
                        .borrow_mut()
                        .untrack(top.cgroup_id, top.slot)
                        .map(|()| true)
                }
                Some(Err(error)) => Err(error),
                _ => Ok(false),
            };
            let is_taken = taken.unwrap_or_else(|error| {
                note(&format!("a job is measured anew: {error}"));
                false
            });
            if let Some(job) = self.by_slot.get(&top.slot) {
                taken_over += 1;
                ended += usize::from(job.meter.is_told_removed());
            }
            if !is_taken {
                // One that cannot be measured yet is tried again at the next look.
                let _ = self.born(&top);
            }
        }
        for (cgroup_id, left) in left {
            match left {
                Ok(Left {
                    lines,
                    what: Known::Ended(summary),
                }) => {
                    let lines = Lines::resume(lines);
                    self.unwritten.wait(cgroup_id, lines, summary);
                }
                _ => self.states.forget(cgroup_id),
            }
        }
        let all = self.by_slot.values();
        let all: Vec<_> = all.map(|job| (job.lines.job.clone(), job.cgroup_id)).collect();
        for (name, cgroup_id) in all {
            self.give_way_to(&name, cgroup_id);
        }
        if is_taken_over {
            note(&taking_over(taken_over, ended));
        }
        self.take_existing()
    }

    /// Takes up what was there before it was watched for.
    pub(super) fn take_existing(&mut self) -> Result<(), Error> {
        // What was born meanwhile has a slot, and is heard of.
        let known: BTreeSet<u64> = self.probe().used_targets().map(|(_, id)| id).collect();
        for dir in self.nests.existing(&self.hierarchies)? {
            if let Some(born) = self.nests.identify(&self.hierarchies, &dir, false)
                && !known.contains(&born.chosen.cgroup.id())
            {
                let name = born.name.clone();
                if let Err(error) = self.attach(born) {
                    note(&format!("job {name} is not measured: {error}"));
                }
            }
        }
        Ok(())
    }

    /// Goes on with a job where an agent before this one was.
    fn resume(
        &mut self,
        slot: SlotId,
        cgroup_id: u64,
        lines: state::Lines,
        saved: Saved,
    ) -> Result<bool, Error> {
        if saved.slot != Some(slot) {
            return Ok(false);
        }
        let counting = self.counting(slot);
        let meter = Meter::resume(saved, counting)?;
        let is_untold = meter.fold().slurm().facts.is_none();
        let id = lines.job.parse().ok().filter(|_| is_untold);
        let asking = id.map(|id| self.slurm.ask(cgroup_id, id));
        let mut job = Job {
            meter,
            cgroup_id,
            lines: Lines::resume(lines),
            pace: Pace::begin(Instant::now()),
            news: News::default(),
            has_news: true,
            reading: Failing::default(),
            to_settle: 0,
            asking,
            followers: Vec::new(),
            highs: None,
        };
        job.meter.look()?;
        job.highs = self.windows.highs(job.meter.fold().last().kernel.as_ref(), false);
        self.by_slot.insert(slot, job);
        Ok(true)
    }

    /// Counts for a job that was there before.
    fn attach(&mut self, born: Born) -> Result<(), Error> {
        let cgroup = &born.chosen.cgroup;
        let start = start(&MemoryFiles::read(cgroup));
        let levels = Follower::new(&born.chosen).levels();
        let tracked = self.probe.borrow_mut().track(cgroup.id(), start, levels);
        self.add(tracked?, born, None)
    }

    /// Why a target is measured from now on.
    fn why_from_then(&self, chosen: &Chosen) -> String {
        match &self.why_anew {
            Some(why) if !chosen.from_birth => format!("counting began anew, since {why}"),
            _ => from_reason(chosen.from_birth).to_owned(),
        }
    }

    /// The name of the record of a job, where no other that runs has it: two nodes may share this host, and two watched cgroups
    /// have children of one name.
    fn free_name(&self, name: String) -> String {
        let running = { self.by_slot.values() }.filter(|job| !job.meter.is_told_removed());
        let taken: BTreeSet<&str> = running.map(|job| job.lines.job.as_str()).collect();
        let is_taken = |name: &str| taken.contains(name);
        if !is_taken(&name) {
            return name;
        }
        let base = if name.starts_with("cgroup-") {
            name
        } else {
            format!("cgroup-job_{name}")
        };
        let mut names = (2_u64..).map(|number| format!("{base}-{number}"));
        names.find(|name| !is_taken(name)).unwrap_or(base)
    }

    /// A run of a job has begun: those before it, which have ended, are earlier ones from then on. The kernel gives ids in their order.
    fn give_way_to(&mut self, name: &str, cgroup_id: u64) {
        let earlier = { self.by_slot.values_mut() }.filter(|job| job.cgroup_id < cgroup_id);
        earlier.for_each(|job| job.lines.give_way_to(name));
        self.unwritten.give_way_to(name, cgroup_id);
        self.late.give_way_to(name, cgroup_id);
    }

    /// A target has a slot that is not measured yet.
    pub(super) fn born(&mut self, top: &Top) -> Result<(), Error> {
        if !self.probe().is_tracked(top.cgroup_id, top.slot) {
            // Its end has been recorded since.
            return Ok(());
        }
        let is_born = top.born_ns.is_some();
        if is_born && !self.nests.is_known(top.above_id) {
            self.find_nests()?;
        }
        let there = self
            .nests
            .find(top)
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
        let name = self.free_name(name);
        self.give_way_to(&name, cgroup_id);
        let method = Method {
            counting: Some(self.counting(slot)),
            probes: self.probes.clone(),
            batch_bound_pages: self.batch_bound_pages,
            cpus: self.cpus,
            from_birth: chosen.from_birth,
            from_reason: self.why_from_then(&chosen),
            born_ns,
            is_shared: true,
        };
        let meter = Meter::beside_others(chosen, method)?;
        let highs = self.windows.highs(meter.fold().last().kernel.as_ref(), true);
        let job = Job {
            meter,
            cgroup_id,
            lines: Lines::of(name, uid),
            pace: Pace::begin(Instant::now()),
            news: News::default(),
            has_news: false,
            reading: Failing::default(),
            to_settle: 0,
            asking: id.map(|id| self.slurm.ask(cgroup_id, id)),
            followers: Vec::new(),
            highs,
        };
        self.have_changed = true;
        let job = self.by_slot.entry(slot).insert_entry(job).into_mut();
        job.write(&self.records, &self.states);
        Ok(())
    }
}

/// What came of the jobs of the agent before.
fn taking_over(jobs: usize, ended: usize) -> String {
    let jobs = match jobs {
        1 => "1 job".to_owned(),
        jobs => format!("{jobs} jobs"),
    };
    let ended = match ended {
        0 => String::new(),
        ended => format!(", {ended} ended meanwhile"),
    };
    format!("took over {jobs} from the agent before{ended}")
}
