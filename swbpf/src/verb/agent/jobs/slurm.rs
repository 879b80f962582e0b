//! What Slurm says of the jobs.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinHandle,
    time::sleep,
};

use super::Jobs;
use crate::{
    fold::SlurmJob,
    job::{
        id::JobId,
        slurm::{JobFacts, Slurm, Unknown},
    },
    verb::facts,
};

/// Questions that are asked at one time: each is a process, and Slurm's controller has others to serve.
const AT_ONCE: usize = 4;
/// How long an answer is waited for: longer than Slurm's programs themselves wait for its controller (`MessageTimeout`, 10 s
/// unless it is set), so that a busy one is heard.
const PATIENCE: Duration = Duration::from_secs(15);
/// Time until a question that had no answer is asked again, twice as long with each.
const AGAIN: Duration = Duration::from_secs(15);
/// How often it is asked in all.
const TRIES: u32 = 6;

/// What Slurm said of the job of a cgroup.
pub struct Said {
    cgroup_id: u64,
    answer: Result<Vec<JobFacts>, Unknown>,
}

/// Slurm, as it is asked.
pub struct Asked {
    turns: Arc<Semaphore>,
    sender: mpsc::Sender<Said>,
    answers: mpsc::Receiver<Said>,
}

/// A question under way, which ends with this value.
pub struct Asking(JoinHandle<()>);

impl Default for Asked {
    fn default() -> Self {
        let (sender, answers) = mpsc::channel(AT_ONCE);
        Self {
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            sender,
            answers,
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Asked {
    /// Asks for a job until there is an answer, which may take long.
    pub fn ask(&self, cgroup_id: u64, id: JobId) -> Asking {
        let (turns, sender) = (Arc::clone(&self.turns), self.sender.clone());
        Asking(tokio::spawn(async move {
            for tried in 0..TRIES {
                let Ok(turn) = turns.acquire().await else {
                    return;
                };
                let answer = Slurm::default().with_limit(PATIENCE).facts(&id).await;
                drop(turn);
                let is_known = answer.is_ok();
                // The agent ends.
                let is_told = sender.send(Said { cgroup_id, answer }).await.is_ok();
                if is_known || !is_told {
                    return;
                }
                sleep(AGAIN * 2_u32.pow(tried)).await;
            }
        }))
    }
}

impl Jobs {
    /// The next answer of Slurm.
    pub async fn said(&mut self) -> Option<Said> {
        self.slurm.answers.recv().await
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
        let is_new = job.meter.tell_job(SlurmJob {
            job_id: Some(known.map_or(job.lines.job.clone(), |facts| facts.shown_id().to_string())),
            facts: known.map(|facts| facts::told(facts, None, &host)),
            why_no_facts: Some(why),
            started: known.and_then(|facts| facts.start),
        });
        job.has_news |= is_new;
    }
}
