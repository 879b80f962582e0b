//! The Slurm job of the target, and why what is not known of it is not.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Clock, Fold, Unknown};
use crate::{job::cgroup::slurm::Role, snapshot::Job};

/// What is known of the job that the target is or belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlurmJob {
    /// Its id as it is shown.
    pub job_id: Option<String>,
    /// What Slurm says of it.
    pub facts: Option<Job>,
    /// Why Slurm says nothing.
    pub why_no_facts: Option<String>,
    /// When it started.
    pub started: Option<Timestamp>,
}

const NO_JOB: &str = "the target belongs to no Slurm job";
const NOT_SAID: &str = "the job has none, or this version of Slurm does not say it";

impl Fold {
    /// Seconds since the target began, where that is known.
    pub(super) fn elapsed(&self, begin: Clock, until_ns: u64) -> Option<f64> {
        let started = self
            .subject
            .slurm
            .started
            .map(|started| begin.seconds_since(started, until_ns));
        started
            .filter(|seconds| *seconds >= 0.0)
            .or_else(|| self.subject.from_start.then(|| begin.seconds_to(until_ns)))
    }

    /// The reason of each number of the job that is not known.
    pub(super) fn note_job(&self, unknown: &mut Unknown) {
        let slurm = &self.subject.slurm;
        if slurm.job_id.is_none() {
            unknown.insert("job_id".to_owned(), NO_JOB.to_owned());
        }
        if self.subject.role.and_then(Role::step).is_none() {
            unknown.insert(
                "step_id".to_owned(),
                "the target is not one step of a job".to_owned(),
            );
        }
        match &slurm.facts {
            None => {
                let why = slurm.why_no_facts.as_deref().unwrap_or(NO_JOB);
                let why = if slurm.job_id.is_none() { NO_JOB } else { why };
                unknown.insert("job".to_owned(), why.to_owned());
            }
            // A structure of plain values cannot fail to become one.
            Some(job) => note_nulls("job", &serde_json::to_value(job).unwrap_or_default(), unknown),
        }
    }
}

/// The same reason for each `null` in `value`, under its dotted key; `[]` stands for the elements of a list.
fn note_nulls(key: &str, value: &Value, unknown: &mut Unknown) {
    match value {
        Value::Null => drop(unknown.insert(key.to_owned(), NOT_SAID.to_owned())),
        Value::Object(members) => {
            for (name, value) in members {
                note_nulls(&format!("{key}.{name}"), value, unknown);
            }
        }
        Value::Array(elements) => {
            for value in elements {
                note_nulls(&format!("{key}[]"), value, unknown);
            }
        }
        _ => {}
    }
}
