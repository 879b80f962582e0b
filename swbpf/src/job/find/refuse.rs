//! One line for each job that is not here, with what to do next.

use super::{Candidate, Elsewhere, Found, Here, WhyUnknown};
use crate::error::Error;
use crate::job::id::JobId;
use crate::job::slurm::JobFacts;

/// Most nodes and jobs that are told on one line.
const MOST: usize = 8;

impl Found {
    /// The job, or why `id` has none here that could be measured.
    pub fn or_refuse(self, id: &JobId) -> Result<Here, Error> {
        let id = id.to_string();
        Err(match self {
            Self::Here(here) => return Ok(*here),
            Self::Several(candidates) => several(&id, &candidates),
            Self::NoStep { steps } => {
                let steps: Vec<_> = steps.iter().map(ToString::to_string).collect();
                Error::NoSuchJob {
                    id,
                    why: format!("the job has no such step here; it has {}", list(&steps)),
                }
            }
            Self::Elsewhere(jobs) => elsewhere(id, &jobs),
            Self::Pending(facts) => Error::JobPending {
                why: reason(&facts),
                id,
            },
            Self::Ended { state, end, .. } => Error::JobEnded {
                id,
                how: match end {
                    Some(end) => format!("{}, {end:.0}", plain(&state)),
                    None => plain(&state),
                },
                has_record: false,
            },
            Self::Unknown(why) => Error::NoSuchJob {
                id,
                why: unknown(&why),
            },
            Self::NotYours { user } => Error::JobNotYours {
                id,
                user: user.map_or_else(|| "another user".to_owned(), |user| plain(&user)),
            },
        })
    }
}

/// What to type instead: ids, or a node where one job is on several of this host.
fn several(id: &str, candidates: &[Candidate]) -> Error {
    let is_one = candidates.windows(2).all(|pair| pair[0].id == pair[1].id);
    let listed = |candidate: &Candidate| match &candidate.node {
        Some(node) => format!("{} --node {}", candidate.id, plain(node)),
        None => candidate.id.to_string(),
    };
    Error::JobSeveral {
        what: if is_one {
            format!("job {id} is on several nodes of this host")
        } else {
            format!("{id} means several jobs here")
        },
        candidates: candidates.iter().map(listed).collect(),
    }
}

/// Slurm's word for why a job waits.
fn reason(facts: &JobFacts) -> String {
    facts
        .reason
        .as_deref()
        .map_or_else(|| "Slurm gives no reason".to_owned(), plain)
}

fn elsewhere(id: String, jobs: &[Elsewhere]) -> Error {
    let node = |job: &Elsewhere| job.nodes.first().map(|node| plain(node)).unwrap_or_default();
    let nodes: Vec<_> = match jobs {
        [job] => job.nodes.iter().map(|node| plain(node)).collect(),
        // One of each is enough to go there.
        jobs => jobs
            .iter()
            .map(|job| format!("{} ({})", node(job), job.shown))
            .collect(),
    };
    let command = jobs.first().map_or_else(String::new, |job| {
        format!(
            "srun --overlap --jobid={raw} -w {node} sw-bpf attach {raw}",
            raw = job.raw,
            node = node(job)
        )
    });
    Error::JobElsewhere {
        id,
        nodes: list(&nodes),
        command,
    }
}

fn unknown(why: &WhyUnknown) -> String {
    match why {
        WhyUnknown::NoSuchJob => "Slurm does not know it, or no more; `squeue --me` lists yours, and \
            `sacct -j` those that have ended"
            .to_owned(),
        WhyUnknown::NotAsked(unknown) => {
            format!("no cgroup here is known to be its, and Slurm could not be asked: {unknown}")
        }
        WhyUnknown::NotOnNode { nodes } => {
            let nodes: Vec<_> = nodes.iter().map(|node| plain(node)).collect();
            format!("it has no such node: `--node` names one of {}", list(&nodes))
        }
        WhyUnknown::NoCgroup => {
            "Slurm says that it runs here, but it has no cgroup: try again if it is about to \
            start; else Slurm does not use cgroups (ProctrackType), and `--pid` takes one of its processes"
                .to_owned()
        }
        WhyUnknown::NoState => {
            "Slurm's answer does not say in which state it is; look at `scontrol show job`".to_owned()
        }
    }
}

/// The first of `items`, and how many more there are.
fn list(items: &[String]) -> String {
    match items.len().saturating_sub(MOST) {
        0 if items.is_empty() => "none".to_owned(),
        0 => items.join(", "),
        more => format!("{} and {more} more", items[..MOST].join(", ")),
    }
}

/// A word of Slurm's, in which nothing stands that a terminal would obey.
pub(super) fn plain(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || " _-.+:,/()%@=".contains(c);
    word.chars()
        .take(100)
        .map(|c| if is_plain(c) { c } else { '?' })
        .collect()
}
