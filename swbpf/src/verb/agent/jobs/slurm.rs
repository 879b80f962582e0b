//! What Slurm says of the jobs.

use super::Jobs;
use crate::{
    fold::SlurmJob,
    job::{
        id::JobId,
        slurm::{JobFacts, Slurm, Unknown},
    },
    verb::facts,
};

/// What Slurm said of the job of a cgroup.
pub struct Said {
    cgroup_id: u64,
    answer: Result<Vec<JobFacts>, Unknown>,
}

impl Jobs {
    /// Asks Slurm for a job, which may take long.
    pub(super) fn ask(&self, cgroup_id: u64, id: JobId) {
        let answers = self.answers.0.clone();
        tokio::spawn(async move {
            let answer = Slurm::default().facts(&id).await;
            // The agent ends.
            let _ = answers.send(Said { cgroup_id, answer }).await;
        });
    }

    /// The next answer of Slurm.
    pub async fn said(&mut self) -> Option<Said> {
        self.answers.1.recv().await
    }

    /// Takes an answer of Slurm.
    pub fn learn(&mut self, said: &Said) {
        let Some(job) = self
            .by_slot
            .values_mut()
            .find(|job| job.cgroup_id == said.cgroup_id)
        else {
            return;
        };
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let (known, why) = match &said.answer {
            Ok(all) => {
                let known = all.iter().find(|facts| facts.job_id.to_string() == job.lines.job);
                (known, "Slurm does not know this job, or no more".to_owned())
            }
            Err(unknown) => (None, unknown.to_string()),
        };
        if let Some(uid) = known.and_then(|facts| facts.uid) {
            job.lines.let_read(uid);
        }
        job.meter.tell_job(SlurmJob {
            job_id: Some(known.map_or(job.lines.job.clone(), |facts| facts.shown_id().to_string())),
            facts: known.map(|facts| facts::told(facts, None, &host)),
            why_no_facts: Some(why),
            started: known.and_then(|facts| facts.start),
        });
        job.has_news = true;
    }
}
