//! What clients are told of the jobs.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    oneshot,
};

use super::{Job, Jobs, metrics::take};
use crate::{
    fold::Reading,
    job::id::{JobId, JobRef},
    probe::{SlotId, monotonic_ns},
    record::{Ids, Match},
    snapshot::{Kind, Snapshot},
    verb::agent::server::Peer,
    wire::{Reason, Refusal, Target},
};

/// A reading that is no older answers too: so a client cannot have the agent read without end.
const FRESH_NS: u64 = 20_000_000;
/// Clients that follow one job.
const MOST_FOLLOWERS: usize = 64;

/// A snapshot, as it is written.
pub type Line = Arc<RawValue>;

/// A question of a client.
pub struct Question {
    /// Who asks.
    pub peer: Peer,
    /// What.
    pub wanted: Wanted,
}

/// What is wanted of a job.
pub enum Wanted {
    /// The begin of a window.
    Mark(Target, oneshot::Sender<Result<Marked, Refusal>>),
    /// All that is known, over the window since then, else over the last second or two.
    Once(Target, Option<Marked>, oneshot::Sender<Result<Line, Refusal>>),
    /// All that is known, over the time since the begin.
    Whole(Target, oneshot::Sender<Result<Line, Refusal>>),
    /// Names of the files of the records that are being written.
    Running(oneshot::Sender<Result<BTreeSet<String>, Refusal>>),
    /// All that is known at each look from now on; of one that is not taken in time the next has all.
    Follow(Target, mpsc::Sender<Line>, oneshot::Sender<Result<(), Refusal>>),
}

/// Where a window begins.
pub struct Marked {
    cgroup_id: u64,
    reading: Box<Reading>,
}

impl Jobs {
    /// Answers.
    pub fn answer(&mut self, question: Question) {
        let Question { peer, wanted } = question;
        // Who has gone needs no answer.
        match wanted {
            Wanted::Mark(target, reply) => {
                let _ = reply.send(self.mark(&peer, &target));
            }
            Wanted::Once(target, from, reply) => {
                let _ = reply.send(self.once(&peer, &target, from));
            }
            Wanted::Whole(target, reply) => {
                let whole = self.refreshed(&peer, &target);
                let _ = reply.send(whole.and_then(|job| line(&job.meter.snapshot(Kind::Summary, None))));
            }
            Wanted::Running(reply) => {
                let jobs = self.by_slot.values();
                let running = jobs.filter_map(|job| job.lines.left().record).collect();
                let _ = reply.send(Ok(running));
            }
            Wanted::Follow(target, lines, reply) => {
                let _ = reply.send(self.follow(&peer, &target, lines));
            }
        }
    }

    fn mark(&mut self, peer: &Peer, target: &Target) -> Result<Marked, Refusal> {
        let job = self.refreshed(peer, target)?;
        Ok(Marked {
            cgroup_id: job.cgroup_id,
            reading: Box::new(job.meter.fold().last().clone()),
        })
    }

    fn once(&mut self, peer: &Peer, target: &Target, from: Option<Marked>) -> Result<Line, Refusal> {
        let job = self.refreshed(peer, target)?;
        let fold = job.meter.fold();
        let from = from.filter(|from| from.cgroup_id == job.cgroup_id);
        let from = from.map_or_else(|| fold.previous().clone(), |from| *from.reading);
        line(&fold.snapshot_from(&from, Kind::Once, None))
    }

    fn follow(&mut self, peer: &Peer, target: &Target, lines: mpsc::Sender<Line>) -> Result<(), Refusal> {
        let slot = self.find(peer, target)?;
        let job = self.by_slot.get_mut(&slot).ok_or_else(absent)?;
        job.followers.retain(|follower| !follower.is_closed());
        if job.followers.len() >= MOST_FOLLOWERS {
            return Err(Refusal::new(
                Reason::Busy,
                format!("{MOST_FOLLOWERS} clients follow this job: end one of them"),
            ));
        }
        job.followers.push(lines);
        Ok(())
    }

    /// The job, read within the last moments.
    fn refreshed(&mut self, peer: &Peer, target: &Target) -> Result<&Job, Refusal> {
        let slot = self.find(peer, target)?;
        let job = self.by_slot.get_mut(&slot).ok_or_else(absent)?;
        if monotonic_ns().saturating_sub(job.meter.fold().last().ns) > FRESH_NS {
            let looked = self.probe.borrow().look();
            let read = looked.and_then(|()| job.meter.refresh());
            read.map_err(|error| Refusal::new(Reason::Failed, error.to_string()))?;
            take(job);
        }
        Ok(job)
    }

    /// The one job that is meant, of those that the client may see.
    fn find(&self, peer: &Peer, target: &Target) -> Result<SlotId, Refusal> {
        let asked = match target {
            Target::CgroupId(_) => None,
            Target::Job(id) => Some(id.parse::<JobId>().map_err(|error| {
                Refusal::new(
                    Reason::Malformed,
                    format!("the request is not understood: {error}"),
                )
            })?),
        };
        let (mut found, mut parts) = (Vec::new(), Vec::new());
        for (slot, job) in &self.by_slot {
            if !peer.may_see(job.lines.reader()) {
                continue;
            }
            let match_ = match (target, &asked) {
                (Target::CgroupId(id), _) if job.cgroup_id == *id => Match::Is,
                (_, Some(id)) if id.step.is_none() => job.matches(&id.job),
                _ => Match::None,
            };
            match match_ {
                Match::Is => found.push(*slot),
                Match::IsPart => parts.push(*slot),
                Match::None => {}
            }
        }
        let mut found = if found.is_empty() { parts } else { found };
        if found.len() > 1 {
            // Runs before it have ended, and are still to be looked at.
            found.retain(|slot| { self.by_slot.get(slot) }.is_some_and(|job| !job.meter.is_told_removed()));
        }
        match found[..] {
            [slot] => Ok(slot),
            [] => Err(absent()),
            [..] => Err(Refusal::new(
                Reason::Several,
                "several jobs are meant: name one by its raw id, as `squeue --Format JobArrayID,JobID` lists them",
            )),
        }
    }
}

impl Job {
    /// Whether `id` means it: by the id of its cgroup, or by what Slurm says of it.
    fn matches(&self, id: &JobRef) -> Match {
        if self.lines.job.parse::<JobId>().is_ok_and(|own| own.job == *id) {
            return Match::Is;
        }
        let facts = self.meter.fold().slurm().facts.as_ref();
        facts.map_or(Match::None, |facts| Ids::of(facts).matches(id))
    }

    /// Tells those that follow it what is known by now.
    pub(super) fn tell_followers(&mut self, snapshot: &Snapshot) {
        self.followers.retain(|follower| !follower.is_closed());
        if self.followers.is_empty() {
            return;
        }
        if let Ok(line) = line(snapshot) {
            for follower in &self.followers {
                match follower.try_send(Arc::clone(&line)) {
                    // One that is slow has the next line; after the summary there is none.
                    Err(TrySendError::Full(line)) if snapshot.kind == Kind::Summary => {
                        let follower = follower.clone();
                        tokio::task::spawn_local(async move { follower.send(line).await });
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The answer where there is no such job, and where there is one that the client may not see.
fn absent() -> Refusal {
    Refusal::new(
        Reason::Absent,
        "no such job of yours is recorded here now: `sw-bpf list` has those that are",
    )
}

fn line(snapshot: &Snapshot) -> Result<Line, Refusal> {
    let line = to_raw_value(snapshot);
    line.map(Line::from)
        .map_err(|error| Refusal::new(Reason::Failed, error.to_string()))
}
