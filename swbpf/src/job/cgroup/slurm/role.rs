//! What a cgroup below a job is.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::job::cgroup::Version;
use crate::job::id::{StepName, TaskName};

/// What a cgroup is within a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// The job itself.
    Job,
    /// A step.
    Step(StepName),
    /// A task of a step.
    Task {
        /// The step.
        step: StepName,
        /// The task.
        task: u32,
    },
    /// On version 2, where Slurm's own process of the step is.
    Slurmstepd {
        /// The step.
        step: StepName,
    },
    /// On version 2, all processes of the step but Slurm's own.
    User {
        /// The step.
        step: StepName,
    },
    /// On version 2, processes of the step that are in no task of their own.
    Special {
        /// The step.
        step: StepName,
    },
    /// Made by whoever runs the job, or by a step that this version of sw-bpf does not know.
    Nested {
        /// The step that it is in.
        step: Option<StepName>,
        /// The task that it is in.
        task: Option<u32>,
    },
    /// Beside the steps, and none of them.
    Other,
}

impl Role {
    /// The step that it belongs to.
    pub fn step(self) -> Option<StepName> {
        match self {
            Self::Step(step)
            | Self::Task { step, .. }
            | Self::Slurmstepd { step }
            | Self::User { step }
            | Self::Special { step } => Some(step),
            Self::Nested { step, .. } => step,
            Self::Job | Self::Other => None,
        }
    }

    /// The task that it belongs to.
    pub fn task(self) -> Option<u32> {
        match self {
            Self::Task { task, .. } => Some(task),
            Self::Nested { task, .. } => task,
            _ => None,
        }
    }
}

/// Role of the cgroup at `below`, a path relative to the directory of its job.
pub fn role(version: Version, below: &Path) -> Role {
    let names: Vec<&str> = below
        .iter()
        .map(|name| name.to_str().unwrap_or_default())
        .collect();
    let Some((first, behind)) = names.split_first() else {
        return Role::Job;
    };
    match StepName::from_dir(first) {
        Some(step) => in_step(version, step, behind),
        None if behind.is_empty() => Role::Other,
        None => Role::Nested {
            step: None,
            task: None,
        },
    }
}

fn in_step(version: Version, step: StepName, names: &[&str]) -> Role {
    match (version, names) {
        (_, []) => Role::Step(step),
        (Version::V2, ["slurm"]) => Role::Slurmstepd { step },
        (Version::V2, ["user"]) => Role::User { step },
        (Version::V1, names) | (Version::V2, ["user", names @ ..]) => in_tasks(step, names),
        (Version::V2, _) => Role::Nested {
            step: Some(step),
            task: None,
        },
    }
}

/// `names` is not empty.
fn in_tasks(step: StepName, names: &[&str]) -> Role {
    let task = names.first().and_then(|name| TaskName::from_dir(name));
    match (task, names) {
        (Some(TaskName::Number(task)), [_]) => Role::Task { step, task },
        (Some(TaskName::Special), [_]) => Role::Special { step },
        (task, _) => Role::Nested {
            step: Some(step),
            task: match task {
                Some(TaskName::Number(task)) => Some(task),
                Some(TaskName::Special) | None => None,
            },
        },
    }
}
