//! Names of steps and tasks, in ids and in cgroups.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::number;

/// Slurm's `SLURM_MAX_NORMAL_STEP_ID`.
const MAX_STEP: u32 = 0xffff_fff0;

/// A step across components has one below `MAX_HET_JOB_COMPONENTS` in each.
const COMPONENTS: std::ops::Range<u32> = 0..128;

/// A step of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StepName {
    /// The batch script.
    Batch,
    /// What comes from outside, such as ssh, with `PrologFlags=Contain`.
    Extern,
    /// The shell of `salloc`, with `use_interactive_step`.
    Interactive,
    /// The nth `srun`.
    Number {
        /// Its number, from 0.
        id: u32,
        /// The component, of a step that runs in several.
        component: Option<u32>,
    },
}

impl StepName {
    /// Step `id` of one job.
    pub fn number(id: u32) -> Self {
        Self::Number { id, component: None }
    }

    /// The step whose cgroup has this name, as `step_batch` and `step_0`.
    pub fn from_dir(name: &str) -> Option<Self> {
        name.strip_prefix("step_")?.parse().ok()
    }
}

impl FromStr for StepName {
    /// What is wrong.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "batch" => Ok(Self::Batch),
            "extern" => Ok(Self::Extern),
            "interactive" => Ok(Self::Interactive),
            _ => numbered(text).ok_or("the step is neither a number nor batch, extern or interactive"),
        }
    }
}

fn numbered(text: &str) -> Option<StepName> {
    let (id, component) = match text.split_once('+') {
        Some((id, component)) => {
            let component = number(component).filter(|component| COMPONENTS.contains(component))?;
            (id, Some(component))
        }
        None => (text, None),
    };
    let id = number(id).filter(|&id| id <= MAX_STEP)?;
    Some(StepName::Number { id, component })
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Batch => f.write_str("batch"),
            Self::Extern => f.write_str("extern"),
            Self::Interactive => f.write_str("interactive"),
            Self::Number { id, component } => {
                write!(f, "{id}")?;
                component.map_or(Ok(()), |component| write!(f, "+{component}"))
            }
        }
    }
}

/// A task of a step, by the name of its cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaskName {
    /// The nth task of the step on this node, from 0.
    Number(u32),
    /// What has not been given to a task; on version 2 tasks start there, and some stay.
    Special,
}

impl TaskName {
    /// The task whose cgroup has this name, as `task_0` and `task_special`.
    pub fn from_dir(name: &str) -> Option<Self> {
        match name.strip_prefix("task_")? {
            "special" => Some(Self::Special),
            task => number(task).map(Self::Number),
        }
    }
}
