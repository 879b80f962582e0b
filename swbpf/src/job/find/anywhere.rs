//! A job that runs, on whichever nodes.

use super::{Candidate, Found, JobFacts, JobId, Phase, Question};

/// The one job that the id means and that has nodes, by Slurm's word alone; else what there is instead. Its cgroups are not
/// looked for, nor is a node that the question names.
pub fn running(question: &Question<'_>) -> Result<JobFacts, Found> {
    let running: Vec<_> = question
        .facts()
        .iter()
        .filter(|facts| facts.phase() == Some(Phase::Running))
        // Whose it is, Slurm may keep to itself: then it decides who may start a step in it.
        .filter(|facts| facts.uid.is_none() || question.may_see(facts.uid))
        .collect();
    match running[..] {
        [] => Err(question.absent(&[])),
        [one] => Ok(one.clone()),
        ref several => Err(Found::Several(
            several
                .iter()
                .map(|facts| Candidate {
                    id: JobId {
                        job: facts.shown_id(),
                        step: None,
                    },
                    node: None,
                })
                .collect(),
        )),
    }
}
