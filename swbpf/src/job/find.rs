//! From the id of a job to its cgroup on this host, or to what is known of it instead.
//!
//! Never a guess: several jobs that an id means are listed, and what Slurm could not be asked is said to be unknown.

mod anywhere;
mod caller;
mod pending;
mod refuse;
#[cfg(test)]
mod tests;

use std::path::Path;

use jiff::Timestamp;

use super::cgroup::slurm::{JobDirName, JobPlace};
use super::cgroup::{CgroupError, Hierarchies};
use super::id::{JobId, JobRef, StepName};
use super::slurm::{JobFacts, Phase, Unknown};
pub use anywhere::running;
pub use caller::Caller;
pub use pending::explain;

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The job.
    pub id: &'a JobId,
    /// Slurm's name of the node, where several of them share the host.
    pub wanted_node: Option<&'a str>,
    /// What Slurm said of the job: [`Slurm::facts`](super::slurm::Slurm::facts).
    pub asked: Result<&'a [JobFacts], &'a Unknown>,
    /// Who asks.
    pub caller: &'a Caller,
}

/// What was found.
#[derive(Debug, Clone)]
pub enum Found {
    /// One job, which has a cgroup here.
    Here(Box<Here>),
    /// Several that the id means.
    Several(Vec<Candidate>),
    /// One job, which has no such step here.
    NoStep {
        /// The steps that it has.
        steps: Vec<StepName>,
    },
    /// It runs on other nodes.
    Elsewhere(Vec<Elsewhere>),
    /// It has not started.
    Pending(Box<JobFacts>),
    /// It has ended.
    Ended {
        /// In which state, as `COMPLETED`.
        state: String,
        /// When.
        end: Option<Timestamp>,
        /// What Slurm still knows of it.
        facts: Box<JobFacts>,
    },
    /// Nothing is known of it.
    Unknown(WhyUnknown),
    /// It is another user's.
    NotYours {
        /// Name of that user, or the number.
        user: Option<String>,
    },
}

/// A job on this host.
#[derive(Debug, Clone)]
pub struct Here {
    /// Its cgroup.
    pub place: JobPlace,
    /// The step that was named, which is there.
    pub step: Option<StepName>,
    /// Its id as Slurm shows it.
    pub shown: JobRef,
    /// What Slurm knows of it, where it could be asked.
    pub facts: Option<JobFacts>,
}

/// One of several jobs that an id means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The id that means this one alone, if `node` does not have to be named too.
    pub id: JobId,
    /// Slurm's name of the node, where the same job is on several of this host.
    pub node: Option<String>,
}

/// A job that runs on other nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// Its id as Slurm shows it.
    pub shown: JobRef,
    /// The raw id.
    pub raw: u32,
    /// The nodes.
    pub nodes: Vec<String>,
}

/// Why nothing is known of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyUnknown {
    /// Slurm does not know it, or no more, and no cgroup here is its.
    NoSuchJob,
    /// Slurm could not be asked, and no cgroup here is its.
    NotAsked(Unknown),
    /// It runs, and not on the node that was named.
    NotOnNode {
        /// The nodes that it has.
        nodes: Vec<String>,
    },
    /// It runs here, says Slurm, and has no cgroup: it is about to start, or Slurm does not use cgroups.
    NoCgroup,
    /// Slurm's answer does not say in which state it is.
    NoState,
}

/// Looks for a job on this host.
pub fn find(hierarchies: &Hierarchies, question: &Question<'_>) -> Result<Found, CgroupError> {
    among(&hierarchies.slurm_jobs()?, question, Path::new("/proc"))
}

/// A job of this host that the id means.
struct Match<'a> {
    place: &'a JobPlace,
    shown: JobRef,
    facts: Option<&'a JobFacts>,
}

impl Match<'_> {
    fn uid(&self) -> Option<u32> {
        self.place.uid.or_else(|| self.facts.and_then(|facts| facts.uid))
    }

    /// Whether the directory is all that is left of it.
    fn is_left_over(&self) -> bool {
        let may_be = matches!(
            self.facts.and_then(JobFacts::phase),
            Some(Phase::Ended | Phase::Pending)
        );
        may_be
            && self
                .place
                .cgroup
                .is_populated()
                .is_ok_and(|is_populated| !is_populated)
    }
}

/// Looks for a job among `places`. `proc` is `/proc`.
fn among(places: &[JobPlace], question: &Question<'_>, proc: &Path) -> Result<Found, CgroupError> {
    let meant: Vec<Match> = places
        .iter()
        .filter_map(|place| question.matched(place, proc))
        .filter(|found| !found.is_left_over())
        .collect();
    let is_any = !meant.is_empty();
    let others = meant.iter().find(|found| !question.may_see(found.uid()));
    let user = others.and_then(|found| user_of(found.facts, found.uid()));
    let mut meant: Vec<Match> = meant
        .into_iter()
        .filter(|found| question.may_see(found.uid()))
        .collect();
    if is_any && meant.is_empty() {
        return Ok(Found::NotYours { user });
    }
    if let Some(node) = question.wanted_node {
        meant.retain(|found| found.place.node.as_deref().is_none_or(|own| own == node));
    }
    if meant.len() > 1
        && let Some(own) = question.own_part(&meant)
    {
        meant = vec![meant.swap_remove(own)];
    }
    match meant.pop() {
        None => Ok(question.absent(places)),
        Some(one) if meant.is_empty() => here(&one, question.id.step),
        Some(last) => {
            meant.push(last);
            meant.sort_by_key(|found| order(&found.shown));
            Ok(Found::Several(candidates(&meant, question.id.step)))
        }
    }
}

fn here(found: &Match<'_>, step: Option<StepName>) -> Result<Found, CgroupError> {
    if let Some(step) = step {
        let steps = found.place.steps()?;
        if !steps.contains(&step) {
            return Ok(Found::NoStep { steps });
        }
    }
    Ok(Found::Here(Box::new(Here {
        place: found.place.clone(),
        step,
        shown: found.shown.clone(),
        facts: found.facts.cloned(),
    })))
}

fn candidates(meant: &[Match<'_>], step: Option<StepName>) -> Vec<Candidate> {
    meant
        .iter()
        .map(|found| {
            let is_twice = meant.iter().filter(|other| other.shown == found.shown).count() > 1;
            Candidate {
                id: JobId {
                    job: found.shown.clone(),
                    step,
                },
                node: found.place.node.clone().filter(|_| is_twice),
            }
        })
        .collect()
}

/// By task or component, as they are counted.
fn order(job: &JobRef) -> (u32, u32) {
    match job {
        JobRef::Raw(id) => (*id, 0),
        JobRef::ArrayTask { array, task } => (*array, *task),
        JobRef::ArrayTasks { array, .. } => (*array, u32::MAX),
        JobRef::Component { leader, offset } => (*leader, *offset),
        JobRef::Sluid(_) => (u32::MAX, u32::MAX),
    }
}

fn user_of(facts: Option<&JobFacts>, uid: Option<u32>) -> Option<String> {
    facts
        .and_then(|facts| facts.user.clone())
        .or_else(|| uid.map(|uid| format!("uid {uid}")))
}

impl<'a> Question<'a> {
    fn facts(&self) -> &'a [JobFacts] {
        self.asked.unwrap_or_default()
    }

    /// Those that can be of the job of `place`.
    fn facts_of(&self, place: &JobPlace) -> impl Iterator<Item = &'a JobFacts> {
        let uid = place.uid;
        self.facts().iter().filter(move |facts| facts.can_be_of(uid))
    }

    /// Whether the caller may look at a job of user `uid`.
    fn may_see(&self, uid: Option<u32>) -> bool {
        self.caller.uid == 0 || uid == Some(self.caller.uid)
    }

    /// The job of `place`, if the id means it: by what Slurm says, by the name of the directory, or else by what its
    /// processes say.
    fn matched(&self, place: &'a JobPlace, proc: &Path) -> Option<Match<'a>> {
        let name = place.name;
        let same = |facts: &&JobFacts| match name {
            JobDirName::Id(id) => facts.job_id == id,
            JobDirName::Sluid(sluid) => facts.sluid == Some(sluid),
        };
        if let Some(facts) = self.facts_of(place).find(same) {
            let shown = facts.shown_id();
            // Several tasks that wait are in one record, which is also that of the last of them when it runs.
            let shown = match shown {
                JobRef::ArrayTasks { .. } => JobRef::Raw(facts.job_id),
                other => other,
            };
            return Some(Match {
                place,
                shown,
                facts: Some(facts),
            });
        }
        let by_name = match (&self.id.job, name) {
            (JobRef::Raw(id), JobDirName::Id(own)) => *id == own,
            (JobRef::Sluid(id), JobDirName::Sluid(own)) => *id == own,
            _ => false,
        };
        // What Slurm knows is enough for directories named by the raw id.
        if !by_name && self.asked.is_ok() && matches!(name, JobDirName::Id(_)) {
            return None;
        }
        self.matched_by_processes(place, by_name, proc)
    }

    fn matched_by_processes(&self, place: &'a JobPlace, by_name: bool, proc: &Path) -> Option<Match<'a>> {
        let told = place.told_ids(proc);
        let shown = match (told.array, told.component, place.name) {
            (Some((array, task)), _, _) => JobRef::ArrayTask { array, task },
            (None, Some((leader, offset)), _) => JobRef::Component { leader, offset },
            (None, None, JobDirName::Id(id)) => JobRef::Raw(id),
            (None, None, JobDirName::Sluid(sluid)) => told.raw.map_or(JobRef::Sluid(sluid), JobRef::Raw),
        };
        let by_told = match &self.id.job {
            JobRef::Raw(id) => [
                told.raw,
                told.array.map(|(array, _)| array),
                told.component.map(|(leader, _)| leader),
            ]
            .contains(&Some(*id)),
            JobRef::ArrayTask { array, task } => told.array == Some((*array, *task)),
            JobRef::ArrayTasks { array, tasks } => told
                .array
                .is_some_and(|(own, task)| own == *array && tasks.contains(task)),
            JobRef::Component { leader, offset } => told.component == Some((*leader, *offset)),
            JobRef::Sluid(sluid) => told.sluid == Some(*sluid),
        };
        let facts = { self.facts_of(place) }.find(|facts| told.raw == Some(facts.job_id));
        (by_name || by_told).then_some(Match { place, shown, facts })
    }

    /// Which of them the caller is in, where they are one job on several nodes of this host.
    fn own_part(&self, meant: &[Match<'_>]) -> Option<usize> {
        let own = self.caller.job?;
        if meant.iter().any(|found| found.place.name != own) {
            return None;
        }
        let node = self.caller.node.as_deref()?;
        meant
            .iter()
            .position(|found| found.place.node.as_deref() == Some(node))
    }

    /// What is known of a job that has no cgroup here.
    fn absent(&self, places: &[JobPlace]) -> Found {
        let facts = match self.asked {
            Ok(facts) => facts,
            Err(unknown) => return Found::Unknown(WhyUnknown::NotAsked(unknown.clone())),
        };
        if facts.is_empty() {
            return Found::Unknown(WhyUnknown::NoSuchJob);
        }
        // Slurm shows jobs of others to everyone, unless it is told not to.
        if let Some(other) = facts
            .iter()
            .find(|facts| facts.uid.is_some() && !self.may_see(facts.uid))
        {
            return Found::NotYours {
                user: user_of(Some(other), other.uid),
            };
        }
        let of = |phase| facts.iter().filter(move |facts| facts.phase() == Some(phase));
        let running: Vec<_> = of(Phase::Running).collect();
        if !running.is_empty() {
            return self.running_without_cgroup(&running, places);
        }
        if let Some(pending) = of(Phase::Pending).next() {
            return Found::Pending(Box::new(pending.clone()));
        }
        match of(Phase::Ended).max_by_key(|facts| facts.end) {
            Some(ended) => Found::Ended {
                state: ended.state.as_ref().map(ToString::to_string).unwrap_or_default(),
                end: ended.end,
                facts: Box::new(ended.clone()),
            },
            None => Found::Unknown(WhyUnknown::NoState),
        }
    }

    fn running_without_cgroup(&self, running: &[&JobFacts], places: &[JobPlace]) -> Found {
        let is_here = |node: &String| {
            let own = [&self.caller.node, &self.caller.host];
            own.iter().any(|own| own.as_ref() == Some(node))
                || places.iter().any(|place| place.node.as_ref() == Some(node))
                || self.wanted_node == Some(node)
        };
        let elsewhere: Vec<_> = running
            .iter()
            .map(|facts| Elsewhere {
                shown: facts.shown_id(),
                raw: facts.job_id,
                nodes: facts.nodes.clone().unwrap_or_default(),
            })
            .filter(|job| !job.nodes.is_empty() && !job.nodes.iter().any(is_here))
            .collect();
        if !elsewhere.is_empty() {
            return Found::Elsewhere(elsewhere);
        }
        let nodes: Vec<String> = running
            .iter()
            .filter_map(|facts| facts.nodes.clone())
            .flatten()
            .collect();
        let is_named = |wanted| nodes.is_empty() || nodes.iter().any(|node| node == wanted);
        Found::Unknown(match self.wanted_node {
            Some(wanted) if !is_named(wanted) => WhyUnknown::NotOnNode { nodes },
            _ => WhyUnknown::NoCgroup,
        })
    }
}
