//! The numbers that a job is found by.

use crate::{
    job::id::{JobRef, Sluid},
    snapshot::Job,
};

/// Whether a job is what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// It is the job.
    Is,
    /// It is of the array or the heterogeneous job that is named.
    IsPart,
    /// It is another.
    None,
}

/// All ids of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    job: u32,
    array_job: Option<u32>,
    array_task: Option<u32>,
    het_job: Option<u32>,
    het_offset: Option<u32>,
    sluid: Option<Sluid>,
}

impl Ids {
    /// Those that Slurm tells.
    pub fn of(job: &Job) -> Self {
        Self {
            job: job.job_id,
            array_job: job.array_job_id,
            array_task: job.array_task_id,
            het_job: job.het_job_id,
            het_offset: job.het_job_offset,
            sluid: job.sluid.as_deref().and_then(Sluid::from_canonical),
        }
    }

    /// Whether the job is what `wanted` names.
    pub fn matches(&self, wanted: &JobRef) -> Match {
        let component = self.het_job.zip(self.het_offset);
        let task = self.array_job.zip(self.array_task);
        let (is, is_part) = match wanted {
            JobRef::Raw(id) => (
                self.job == *id,
                [self.array_job, self.het_job].contains(&Some(*id)),
            ),
            JobRef::ArrayTask { array, task: wanted } => (task == Some((*array, *wanted)), false),
            JobRef::ArrayTasks { array, tasks } => (
                false,
                task.is_some_and(|(of, task)| of == *array && tasks.contains(task)),
            ),
            JobRef::Component { leader, offset } => (component == Some((*leader, *offset)), false),
            JobRef::Sluid(sluid) => (self.sluid == Some(*sluid), false),
        };
        match (is, is_part) {
            (true, _) => Match::Is,
            (false, true) => Match::IsPart,
            (false, false) => Match::None,
        }
    }
}
