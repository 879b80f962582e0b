//! What a record is asked for by.

use std::{fmt, str::FromStr};

use super::{IdError, JobId};

/// What begins the name of a record of what is no job.
const CGROUP: &str = "cgroup-";

/// What there can be a record of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// A job of Slurm, or a step of it.
    Job(JobId),
    /// Another cgroup, by the name of its record: `cgroup-NAME`.
    Cgroup(String),
}

impl Recorded {
    /// As it is typed.
    pub fn id(&self) -> String {
        match self {
            Self::Job(id) => id.to_string(),
            Self::Cgroup(name) => name.clone(),
        }
    }
}

impl FromStr for Recorded {
    type Err = IdError;

    fn from_str(typed: &str) -> Result<Self, IdError> {
        let is_plain = |name: &str| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        };
        if typed.strip_prefix(CGROUP).is_some_and(is_plain) {
            return Ok(Self::Cgroup(typed.to_owned()));
        }
        typed.parse().map(Self::Job)
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(id) => write!(f, "job {id}"),
            Self::Cgroup(name) => f.write_str(name),
        }
    }
}
