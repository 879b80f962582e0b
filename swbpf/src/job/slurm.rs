//! What Slurm's own programs say of jobs: `scontrol` and `squeue`, asked once and never waited for longer than a limit.
//!
//! Names, comments and paths in their answers are written by whoever runs a job. What they say is kept apart from what
//! Slurm says wherever its format lets one tell; where it does not, the answer is that it is not known.

mod facts;
mod gather;
mod json;
mod nodelist;
mod queue;
mod run;
mod settings;
#[cfg(test)]
mod tests;
mod text;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use super::id::{JobId, JobRef};
pub use facts::{ArrayIds, Gres, HetIds, JobFacts, MemoryRequest, NodeShare, Phase, State, TimeLimit};
pub use gather::{Answer as NodeAnswer, OnEachNode};
pub use nodelist::{NodeListError, expand};
pub use queue::Running;
use run::Answer;
pub use settings::Settings;

/// What reads the answers of Slurm's programs, for the fuzz targets.
#[doc(hidden)]
pub mod parse {
    pub use super::{
        facts::family,
        gather::answers,
        json::jobs as json,
        queue::jobs as queue,
        settings::parse as settings,
        text::{jobs as text, partition_limit},
    };
}

/// How long Slurm's programs may take together for one question.
const LIMIT: Duration = Duration::from_secs(5);

/// Why something is not known of a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// The program is not there.
    #[error("{program} is not in PATH")]
    Absent {
        /// Its name.
        program: &'static str,
    },
    /// The program cannot be executed.
    #[error("{program} cannot be executed: {why}")]
    NotExecutable {
        /// Its name.
        program: &'static str,
        /// The kernel's answer.
        why: String,
    },
    /// The program was ended, since it had not answered in time.
    #[error("{program} did not answer within {} s", .limit.as_secs_f64())]
    TimedOut {
        /// Its name.
        program: &'static str,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The program ended with a failure.
    #[error("{program} failed: {told:?}")]
    Failed {
        /// Its name.
        program: &'static str,
        /// First line of what it said, or how it ended.
        told: String,
    },
    /// The answer is too long.
    #[error("{program} wrote more than {max} bytes")]
    TooLong {
        /// Its name.
        program: &'static str,
        /// How many are read.
        max: u64,
    },
    /// The answer is not understood, or cannot be trusted.
    #[error("the answer of {program} is not understood: {what}")]
    Odd {
        /// Its name.
        program: &'static str,
        /// What is odd about it.
        what: &'static str,
    },
}

/// Slurm's programs, as they are found in `PATH`.
#[derive(Debug, Clone)]
pub struct Slurm {
    dir: Option<PathBuf>,
    limit: Duration,
}

impl Default for Slurm {
    fn default() -> Self {
        Self {
            dir: None,
            limit: LIMIT,
        }
    }
}

impl Slurm {
    /// Those in the directory `dir` instead.
    #[must_use]
    pub fn in_dir(self, dir: PathBuf) -> Self {
        Self {
            dir: Some(dir),
            ..self
        }
    }

    /// With another limit of time for each question.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// What Slurm knows of a job: of each task, if it is an array, and of each component. None where Slurm does not
    /// know the job, or no more: it forgets one a few minutes (`MinJobAge`) after its end.
    ///
    /// By `scontrol show job -d`, as JSON where that version has it, in which nothing that a job is named by can be
    /// taken for something else. In the text of older versions it can: a line that stands twice is taken for neither,
    /// and an answer that holds other jobs is refused. What is left to forge is a single array or heterogeneous job of
    /// one's own.
    pub async fn facts(&self, id: &JobId) -> Result<Vec<JobFacts>, Unknown> {
        let until = Instant::now() + self.limit;
        let asked = match &id.job {
            JobRef::ArrayTasks { array, .. } => array.to_string(),
            job => job.to_string(),
        };
        let answer = self
            .run("scontrol", &["--json", "-d", "show", "job", &asked], until)
            .await;
        let jobs = match answer {
            Ok(answer) if answer.is_success() => json::jobs(&answer.stdout),
            Ok(_) | Err(Unknown::TooLong { .. }) => None,
            Err(unknown) => return Err(unknown),
        };
        match jobs {
            Some(jobs) if !jobs.is_empty() => facts::family(jobs, &id.job),
            // Without a job, JSON does not say whether there is none or whether the controller is down.
            _ => self.facts_by_text(&id.job, &asked, until).await,
        }
    }

    async fn facts_by_text(
        &self,
        job: &JobRef,
        asked: &str,
        until: Instant,
    ) -> Result<Vec<JobFacts>, Unknown> {
        let answer = self.run("scontrol", &["-d", "show", "job", asked], until).await?;
        if !answer.is_success() {
            return if answer.says_there_is_none() {
                Ok(Vec::new())
            } else {
                Err(answer.failure("scontrol"))
            };
        }
        facts::family(text::jobs(&answer.stdout), job)
    }

    /// The jobs of user `uid` that run on `node`, Slurm's name of it, by one call of `squeue`.
    pub async fn running_here(&self, uid: u32, node: &str) -> Result<Vec<Running>, Unknown> {
        if !nodelist::is_name(node) {
            return Err(Unknown::Odd {
                program: "squeue",
                what: "the node's name is none that Slurm gives",
            });
        }
        let user = format!("--user={uid}");
        let node = format!("--nodelist={node}");
        let format = format!("--format={}", queue::FORMAT);
        let args = ["--noheader", "--states=running", &user, &node, &format];
        let answer = self.run("squeue", &args, Instant::now() + self.limit).await?;
        if answer.is_success() {
            queue::jobs(&answer.stdout)
        } else {
            Err(answer.failure("squeue"))
        }
    }

    /// The longest time limit that a job may have in `partition`, by one call of `scontrol`.
    pub async fn partition_limit(&self, partition: &str) -> Result<TimeLimit, Unknown> {
        let odd = |what| Unknown::Odd {
            program: "scontrol",
            what,
        };
        if !nodelist::is_name(partition) {
            return Err(odd("the partition's name is not that of one partition"));
        }
        let args = ["-o", "show", "partition", partition];
        let answer = self.run("scontrol", &args, Instant::now() + self.limit).await?;
        if !answer.is_success() {
            return Err(answer.failure("scontrol"));
        }
        text::partition_limit(&answer.stdout, partition).ok_or_else(|| odd("the partition has no MaxTime"))
    }

    /// How Slurm is set up, by one call of `scontrol`.
    pub async fn settings(&self) -> Result<Settings, Unknown> {
        let answer = self
            .run("scontrol", &["show", "config"], Instant::now() + self.limit)
            .await?;
        if !answer.is_success() {
            return Err(answer.failure("scontrol"));
        }
        settings::parse(&answer.stdout).ok_or(Unknown::Odd {
            program: "scontrol",
            what: "it has no SLURM_VERSION",
        })
    }

    async fn run(&self, program: &'static str, args: &[&str], until: Instant) -> Result<Answer, Unknown> {
        run::run(program, &self.path(program), args, until, self.limit).await
    }

    fn path(&self, program: &str) -> PathBuf {
        match &self.dir {
            Some(dir) => dir.join(program),
            None => program.into(),
        }
    }
}
