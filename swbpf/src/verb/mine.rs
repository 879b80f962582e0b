//! The job that is meant where none is named.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
};

use crate::{
    error::Error,
    job::{
        cgroup::{
            Hierarchies,
            slurm::{JobDirName, JobPlace},
        },
        id::{JobId, JobRef},
        slurm::{Running, Slurm},
    },
    out::escape,
};

/// Columns of a job's name in a list.
const NAME: usize = 40;

/// The job that this process was started in, by `SLURM_JOB_ID`.
pub fn own_job() -> Option<JobId> {
    env::var("SLURM_JOB_ID").ok()?.parse().ok()
}

/// The job that this process was started in, else the only one of its user that has a cgroup here.
pub async fn job(hierarchies: &Hierarchies, node: Option<&str>) -> Result<JobId, Error> {
    if let Some(id) = own_job() {
        return Ok(id);
    }
    let user = User::current();
    let mut places = hierarchies.slurm_jobs()?;
    places.retain(|place| node.is_none_or(|node| place.node.as_deref().is_none_or(|own| own == node)));
    let (untold, told): (Vec<&JobPlace>, Vec<&JobPlace>) =
        places.iter().partition(|place| place.uid.is_none());
    let mut own = told;
    own.retain(|place| place.uid == Some(user.uid));
    // On version 2 only a process of the job tells whose it is, and Slurm has its own there before the first one.
    let running = running(&untold, user.uid).await;
    let is_own = |place: &&JobPlace| running.iter().any(|job| place.name == JobDirName::Id(job.raw));
    own.extend(untold.into_iter().filter(is_own));
    // Who may look at all of them, and has none.
    let all: Vec<&JobPlace> = if own.is_empty() && user.sees_all {
        places.iter().collect()
    } else {
        own
    };
    match all[..] {
        [] => Err(Error::NoSuchJob {
            id: "of yours".to_owned(),
            why: "SLURM_JOB_ID is not set, and no job of yours runs on this host; name one as `squeue --me` lists them, or see \
                  `sw-bpf --help`"
                .to_owned(),
        }),
        [one] => Ok(id_of(one)),
        ref several => Err(Error::JobSeveral {
            what: "several jobs of yours run here".to_owned(),
            candidates: listed(several, user.uid).await,
        }),
    }
}

/// Who asks. Through sudo, that is who called it.
struct User {
    uid: u32,
    sees_all: bool,
}

impl User {
    fn current() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let caller = env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
        Self {
            uid: caller.filter(|_| uid == 0).unwrap_or(uid),
            sees_all: uid == 0,
        }
    }
}

fn id_of(place: &JobPlace) -> JobId {
    JobId {
        job: match place.name {
            JobDirName::Id(id) => JobRef::Raw(id),
            JobDirName::Sluid(sluid) => JobRef::Sluid(sluid),
        },
        step: None,
    }
}

/// What runs of the user on the nodes of these places, where Slurm can be asked.
async fn running(places: &[&JobPlace], uid: u32) -> Vec<Running> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let short = host.split('.').next().unwrap_or(&host);
    let nodes: BTreeSet<&str> = places
        .iter()
        .map(|place| place.node.as_deref().unwrap_or(short))
        .collect();
    let mut found = Vec::new();
    for node in nodes {
        found.extend(Slurm::default().running_here(uid, node).await.unwrap_or_default());
    }
    found
}

/// One line each: its id as Slurm shows it, and its name, where Slurm can be asked.
async fn listed(places: &[&JobPlace], uid: u32) -> Vec<String> {
    let running = running(places, uid).await;
    let names: BTreeMap<u32, (String, &str)> = running
        .iter()
        .map(|job| (job.raw, (job.id.to_string(), job.name.as_str())))
        .collect();
    let line = |place: &&JobPlace| {
        let known = match place.name {
            JobDirName::Id(id) => names.get(&id),
            JobDirName::Sluid(_) => None,
        };
        let is_twice = places.iter().filter(|other| other.name == place.name).count() > 1;
        let node = place.node.as_ref().filter(|_| is_twice);
        let node = node.map_or(String::new(), |node| {
            format!(" on node {}", escape::head(node, NAME))
        });
        match known {
            Some((shown, name)) => format!("{shown}{node} {}", escape::head(name, NAME)),
            None => format!("{}{node}", id_of(place)),
        }
    };
    places.iter().map(line).collect()
}
