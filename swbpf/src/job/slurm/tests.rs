//! Answers of real versions of Slurm, of hostile users, and of programs that do not behave.

use super::{JobFacts, text};
use crate::job::id::{JobId, JobRef};

/// A stored answer.
macro_rules! stored {
    ($name:literal) => {
        include_bytes!(concat!("../../../../tests/fixtures/slurm/", $name))
    };
}

mod answers;
mod hostile;
pub(super) mod programs;

/// The only job of an answer.
fn one(answer: &[u8]) -> JobFacts {
    let mut jobs = text::jobs(answer);
    assert_eq!(jobs.len(), 1);
    jobs.remove(0)
}

/// The job of an id.
fn job(id: &str) -> JobRef {
    id.parse::<JobId>().expect(id).job
}

/// Its state, as Slurm writes it.
fn word(facts: &JobFacts) -> String {
    facts.state.as_ref().expect("a state").to_string()
}
