//! Ids of jobs and steps, as Slurm writes them and as they are typed.
//!
//! Three numbers name a job of an array: the id of the array, the task within it, and the raw id that the cgroup has.
//! A component of a heterogeneous job likewise has the leader's id, an offset and a raw id. Newer versions of Slurm
//! add an id that is never used again, the SLUID.

mod recorded;
mod sluid;
mod step;
mod tasks;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::str::FromStr;

pub use recorded::Recorded;
pub use sluid::Sluid;
pub use step::{StepName, TaskName};
pub use tasks::TaskSet;

/// Slurm's `NO_VAL`: ids of jobs are below it.
const NO_VAL: u32 = 0xffff_fffe;

/// Largest task of an array: `MaxArraySize` can be set to one more.
const MAX_TASK: u32 = 4_000_000;

/// Largest offset of a component: `MAX_HET_JOB_COMPONENTS`.
const MAX_OFFSET: u32 = 128;

/// Longest id that is read: a list of tasks is the only long part.
const MAX_CHARS: usize = 4096;

/// What names a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum JobRef {
    /// `123`: one job, or an array or a heterogeneous job as a whole.
    Raw(u32),
    /// `123_4`: a task of an array.
    ArrayTask {
        /// Id of the array.
        array: u32,
        /// The task.
        task: u32,
    },
    /// `123_[1-9%2]`: some tasks of an array.
    ArrayTasks {
        /// Id of the array.
        array: u32,
        /// The tasks.
        tasks: TaskSet,
    },
    /// `123+1`: a component of a heterogeneous job.
    Component {
        /// Id of the first component.
        leader: u32,
        /// Which component, from 0.
        offset: u32,
    },
    /// `s` and 13 characters.
    Sluid(Sluid),
}

/// A job, or one step of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobId {
    /// The job.
    pub job: JobRef,
    /// The step, where one is named: `.0`, `.batch`, `.extern`, `.interactive`.
    pub step: Option<StepName>,
}

impl JobId {
    /// The job of this raw id, without a step.
    pub fn raw(id: u32) -> Self {
        Self {
            job: JobRef::Raw(id),
            step: None,
        }
    }
}

/// Why a text is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{typed:?} is not the id of a job: {why}; ids are 123, 123_4, 123_[1-9], 123+1 or an SLUID of s and 13 \
     characters, each with .0, .batch, .extern or .interactive behind it to name a step"
)]
pub struct IdError {
    /// The beginning of what was typed.
    typed: String,
    why: &'static str,
}

impl IdError {
    fn new(typed: &str, why: &'static str) -> Self {
        Self {
            typed: typed.chars().take(40).collect(),
            why,
        }
    }
}

impl FromStr for JobId {
    type Err = IdError;

    fn from_str(typed: &str) -> Result<Self, IdError> {
        let wrong = |why| IdError::new(typed, why);
        if typed.len() > MAX_CHARS {
            return Err(wrong("it is too long"));
        }
        let (job, step) = match typed.split_once('.') {
            Some((job, step)) => (job, Some(step)),
            None => (typed, None),
        };
        let step = step
            .map(|step| step.parse::<StepName>().map_err(wrong))
            .transpose()?;
        let job = job.parse::<JobRef>().map_err(wrong)?;
        Ok(Self { job, step })
    }
}

impl FromStr for JobRef {
    /// What is wrong, for [`IdError`].
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text.starts_with(['s', 'S']) {
            return text.parse().map(Self::Sluid);
        }
        if let Some((array, tasks)) = text.split_once('_') {
            let array = job_number(array)?;
            if let Some(tasks) = tasks.strip_prefix('[') {
                let tasks = tasks.strip_suffix(']').ok_or("a bracket is not closed")?;
                let tasks = tasks.parse()?;
                return Ok(Self::ArrayTasks { array, tasks });
            }
            let task = number(tasks)
                .filter(|&task| task <= MAX_TASK)
                .ok_or("the task is no number from 0 to 4000000")?;
            return Ok(Self::ArrayTask { array, task });
        }
        if let Some((leader, offset)) = text.split_once('+') {
            let leader = job_number(leader)?;
            let offset = number(offset)
                .filter(|&offset| offset <= MAX_OFFSET)
                .ok_or("the component is no number from 0 to 128")?;
            return Ok(Self::Component { leader, offset });
        }
        job_number(text).map(Self::Raw)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.job.fmt(f)?;
        match &self.step {
            Some(step) => write!(f, ".{step}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw(id) => write!(f, "{id}"),
            Self::ArrayTask { array, task } => write!(f, "{array}_{task}"),
            Self::ArrayTasks { array, tasks } => write!(f, "{array}_[{tasks}]"),
            Self::Component { leader, offset } => write!(f, "{leader}+{offset}"),
            Self::Sluid(sluid) => sluid.fmt(f),
        }
    }
}

/// The raw id of a job.
fn job_number(text: &str) -> Result<u32, &'static str> {
    number(text)
        .and_then(checked_job)
        .ok_or("a job is a number from 1 to 4294967293")
}

/// `id` where a job can have it.
pub(super) fn checked_job(id: u32) -> Option<u32> {
    (1..NO_VAL).contains(&id).then_some(id)
}

/// A number as Slurm writes it: digits, and no 0 before others.
pub(super) fn number(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok())?
}
