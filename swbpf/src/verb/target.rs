//! What is to be measured.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep};

use super::{facts, mine, outside::left_from};
use crate::{
    cli,
    error::Error,
    fold::SlurmJob,
    job::{
        cgroup::{
            Cgroup, Controller, Hierarchies,
            slurm::{JobPlace, Role, role},
        },
        find::{self, Caller, Found, Question, WhyUnknown},
        id::JobId,
        slurm::Slurm,
    },
    out,
    snapshot::{OwnProcesses, Target, TargetKind},
};

/// A job that was handed in this long ago is new: Slurm starts it within that time, or has a reason not to.
const NEW: SignedDuration = SignedDuration::from_secs(10);
/// How long the start of such a job is waited for.
const STARTS_WITHIN: Duration = Duration::from_secs(5);
/// Time between two looks for it.
const PAUSE: Duration = Duration::from_millis(200);

/// A target that was found.
pub struct Chosen {
    /// Its cgroup.
    pub cgroup: Cgroup,
    /// How it is told.
    pub told: Target,
    /// The Slurm job that it is, or is a part of.
    pub job: Option<OfJob>,
    /// How that job is told.
    pub slurm: SlurmJob,
    /// Whether nothing has been in it yet.
    pub from_birth: bool,
    /// A process of sw-bpf that is in it and does nothing there.
    pub stand_in: Option<u32>,
}

/// A Slurm job, and where in it the target is.
pub struct OfJob {
    /// The job.
    pub place: JobPlace,
    /// Path of the target below the directory of the job.
    pub below: PathBuf,
}

impl Chosen {
    /// What the target is to its job.
    pub fn role(&self) -> Option<Role> {
        let job = self.job.as_ref()?;
        Some(role(job.place.cgroup.version(), &job.below))
    }
}

/// Finds what was named. A job that has not started is explained on standard output where there is room for it.
pub async fn choose(hierarchies: &Hierarchies, named: &cli::Target, room: Room) -> Result<Chosen, Error> {
    match named {
        cli::Target::Job { id, node } => job(hierarchies, id, node.as_deref(), room).await,
        cli::Target::Mine { node } => {
            let id = mine::job(hierarchies, node.as_deref()).await?;
            job(hierarchies, &id, node.as_deref(), room).await
        }
        cli::Target::Own => {
            if let Some(id) = mine::own_job() {
                return job(hierarchies, &id, None, room).await;
            }
            own(hierarchies)
        }
        cli::Target::Cgroup(path) => {
            let cgroup = hierarchies.cgroup_at(path)?;
            Ok(chosen(hierarchies, cgroup, TargetKind::Cgroup, None))
        }
        cli::Target::Pid(pid) if *pid == std::process::id() => own(hierarchies),
        cli::Target::Pid(pid) => {
            let cgroup = hierarchies.cgroup_of_pid(*pid)?;
            Ok(chosen(hierarchies, cgroup, TargetKind::Pid, Some(*pid)))
        }
    }
}

/// Whether standard output may have more than the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It is read by a person.
    ForWords,
    /// It is read by a program.
    ForTheAnswerAlone,
}

/// The cgroup of this process, or the one that it was in before it left.
fn own(hierarchies: &Hierarchies) -> Result<Chosen, Error> {
    let cgroup = match left_from() {
        Some(path) => hierarchies.cgroup_at(&path)?,
        None => hierarchies.own_cgroup()?,
    };
    let pid = std::process::id();
    Ok(chosen(hierarchies, cgroup, TargetKind::Pid, Some(pid)))
}

fn chosen(hierarchies: &Hierarchies, cgroup: Cgroup, kind: TargetKind, pid: Option<u32>) -> Chosen {
    let job = job_of(hierarchies, &cgroup);
    let name = job.as_ref().map(|job| job.place.name.to_string());
    Chosen {
        told: told(&cgroup, kind, pid, None),
        slurm: SlurmJob {
            job_id: name,
            facts: None,
            why_no_facts: Some("Slurm was not asked, since the target was not named by a job".to_owned()),
            started: None,
        },
        job,
        from_birth: false,
        stand_in: None,
        cgroup,
    }
}

/// A job by its id.
async fn job(hierarchies: &Hierarchies, id: &JobId, node: Option<&str>, room: Room) -> Result<Chosen, Error> {
    let slurm = Slurm::default();
    let left = left_from();
    let until = Instant::now() + STARTS_WITHIN;
    let (asked, found) = loop {
        let asked = slurm.facts(id).await;
        let question = Question {
            id,
            wanted_node: node,
            asked: asked.as_ref().map(Vec::as_slice),
            caller: &Caller::current(hierarchies, left.as_deref()),
        };
        let found = find::find(hierarchies, &question)?;
        if !is_about_to_start(&found) || Instant::now() >= until {
            break (asked, found);
        }
        sleep(PAUSE).await;
    };
    explain_pending(&slurm, &found, room).await?;
    let here = found.or_refuse(id)?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (cgroup, below) = match here.step {
        Some(step) => {
            let path = here.place.step_path(step);
            let below = path
                .strip_prefix(here.place.cgroup.path())
                .unwrap_or(&path)
                .to_owned();
            (hierarchies.cgroup_at(&path)?, below)
        }
        None => (here.place.cgroup.clone(), PathBuf::new()),
    };
    Ok(Chosen {
        told: told(&cgroup, TargetKind::Job, None, None),
        slurm: SlurmJob {
            job_id: Some(here.shown.to_string()),
            facts: here
                .facts
                .as_ref()
                .map(|facts| facts::told(facts, here.place.node.as_deref(), &host)),
            why_no_facts: Some(match &asked {
                Ok(all) => facts::why_none(all, here.place.uid),
                Err(unknown) => unknown.to_string(),
            }),
            started: here.facts.as_ref().and_then(|facts| facts.start),
        },
        job: Some(OfJob {
            place: here.place,
            below,
        }),
        from_birth: false,
        stand_in: None,
        cgroup,
    })
}

/// Whether a job has just been handed in and waits for no reason that Slurm knows, or has been started and has no cgroup yet:
/// `sw-bpf` is often typed right behind `sbatch`.
fn is_about_to_start(found: &Found) -> bool {
    match found {
        Found::Pending(facts) => {
            let age = facts
                .submitted
                .map(|submitted| Timestamp::now().duration_since(submitted));
            facts.reason.is_none() && age.is_some_and(|age| age < NEW)
        }
        Found::Unknown(why) => *why == WhyUnknown::NoCgroup,
        _ => false,
    }
}

/// Says on standard output why a job waits that has not started, where there is room for it.
pub async fn explain_pending(slurm: &Slurm, found: &Found, room: Room) -> Result<(), Error> {
    if let Found::Pending(facts) = found
        && room == Room::ForWords
    {
        let cap = match facts.partition.as_deref() {
            Some(partition) => slurm.partition_limit(partition).await.ok(),
            None => None,
        };
        let _ = out::tell(&find::explain(facts, cap, Timestamp::now()))?;
    }
    Ok(())
}

/// The job that a cgroup belongs to.
fn job_of(hierarchies: &Hierarchies, cgroup: &Cgroup) -> Option<OfJob> {
    let (place, below) = hierarchies.slurm_job_at(cgroup.path()).ok()??;
    Some(OfJob { place, below })
}

/// A target as it is told.
pub fn told(cgroup: &Cgroup, kind: TargetKind, pid: Option<u32>, command: Option<Vec<String>>) -> Target {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Target {
        kind,
        cgroup: text(cgroup.path()),
        cgroup_id: cgroup.id(),
        cgroup_version: cgroup.dir(Controller::Memory).map(|dir| dir.version.number()),
        pid,
        own_processes: OwnProcesses::Elsewhere,
        command,
    }
}
