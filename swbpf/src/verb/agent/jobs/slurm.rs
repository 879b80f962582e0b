//! What Slurm says of the jobs, while they run and for some minutes after their end.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinHandle,
    time::sleep,
};

use super::{Jobs, Lines};
use crate::{
    fold::{Fold, SlurmJob},
    job::{
        cgroup::{Cgroup, Hierarchies},
        id::JobId,
        slurm::{JobFacts, Phase, Slurm, Unknown},
    },
    snapshot::Kind,
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
/// Jobs that have ended and are still asked for, some 100 kB each.
const MOST_LATE: usize = 64;

/// What Slurm said of the job of a cgroup.
pub struct Said {
    cgroup_id: u64,
    answer: Result<Vec<JobFacts>, Unknown>,
    /// Whether it is not asked again.
    is_last: bool,
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
                let is_last = answer.is_ok() || tried + 1 == TRIES;
                let said = Said {
                    cgroup_id,
                    answer,
                    is_last,
                };
                // Where it cannot be told, the agent ends.
                if sender.send(said).await.is_err() || is_last {
                    return;
                }
                sleep(AGAIN * 2_u32.pow(tried)).await;
            }
        }))
    }
}

/// Jobs that have ended before Slurm said anything of them, oldest first.
#[derive(Default)]
pub struct Late(VecDeque<Ended>);

struct Ended {
    cgroup_id: u64,
    /// The name of its record.
    job: String,
    /// Whose job it was, by the kernel's word.
    uid: Option<u32>,
    /// When it had ended.
    end: Timestamp,
    fold: Fold,
    /// Where its summary went, once it is written.
    lines: Option<Lines>,
    _asking: Asking,
}

impl Late {
    /// The summary of a job is written: its record is kept at hand where it is one of these, whatever its name becomes.
    pub fn is_written(&mut self, cgroup_id: u64, lines: Lines) {
        if let Some(ended) = self.0.iter_mut().find(|ended| ended.cgroup_id == cgroup_id) {
            ended.lines = Some(lines);
        }
    }

    /// What was written of them is elsewhere, or gone.
    pub fn begin_anew(&mut self) {
        let lines = self.0.iter_mut().filter_map(|ended| ended.lines.as_mut());
        lines.for_each(Lines::begin_anew);
    }

    /// A run of a job has begun in this cgroup.
    pub fn give_way_to(&mut self, job: &str, cgroup_id: u64) {
        let before = { self.0.iter_mut() }.filter(|ended| ended.cgroup_id < cgroup_id);
        let lines = before.filter_map(|ended| ended.lines.as_mut());
        lines.for_each(|lines| lines.give_way_to(job));
    }

    fn take(&mut self, cgroup_id: u64) -> Option<Ended> {
        let at = self.0.iter().position(|ended| ended.cgroup_id == cgroup_id)?;
        self.0.remove(at)
    }
}

impl Said {
    /// The same without what it says of a run that began after this moment, or has not begun: a requeued job has the words of its
    /// next run.
    fn until(&self, end: Timestamp) -> Self {
        let is_later = |facts: &JobFacts| {
            facts.phase() == Some(Phase::Pending) || facts.start.is_some_and(|start| start > end)
        };
        let of_it = |all: &Vec<JobFacts>| all.iter().filter(|facts| !is_later(facts)).cloned().collect();
        Self {
            cgroup_id: self.cgroup_id,
            answer: self.answer.as_ref().map(of_it).map_err(Clone::clone),
            is_last: self.is_last,
        }
    }

    /// What it says of the job whose record has this name, of this user by the kernel's word, and whose job it is.
    fn of(&self, job: &str, uid: Option<u32>) -> (SlurmJob, Option<u32>) {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let (known, why) = match &self.answer {
            Ok(all) => {
                let is_it = |facts: &&JobFacts| facts.job_id.to_string() == job && facts.can_be_of(uid);
                (all.iter().find(is_it), facts::why_none(all, uid))
            }
            Err(unknown) => (None, unknown.to_string()),
        };
        let slurm = SlurmJob {
            job_id: Some(known.map_or(job.to_owned(), |facts| facts.shown_id().to_string())),
            facts: known.map(|facts| facts::told(facts, None, &host)),
            why_no_facts: Some(why),
            started: known.and_then(|facts| facts.start),
        };
        (slurm, known.and_then(|facts| facts.uid))
    }
}

impl Jobs {
    /// The next answer of Slurm.
    pub async fn said(&mut self) -> Option<Said> {
        self.slurm.answers.recv().await
    }

    /// Takes an answer of Slurm.
    pub fn learn(&mut self, said: &Said) {
        let mut running = self.by_slot.values_mut();
        let Some(job) = running.find(|job| job.cgroup_id == said.cgroup_id) else {
            self.learn_late(said);
            return;
        };
        if job.lines.uid().is_none()
            && let Some(uid) = uid_now(&self.hierarchies, job.meter.cgroup())
        {
            job.lines.are_of(uid);
        }
        let (slurm, uid) = said.of(&job.lines.job, job.lines.uid());
        if let Some(uid) = uid {
            job.lines.let_read(uid);
        }
        if said.answer.is_ok() {
            job.asking = None;
        }
        let is_new = job.meter.tell_job(slurm);
        job.has_news |= is_new;
    }

    /// Goes on to ask for a job that has ended: Slurm knows it for `MinJobAge`, 300 s where that is not set.
    pub(super) fn ask_late(&mut self, cgroup_id: u64, lines: &Lines, fold: Fold) {
        let Ok(id) = lines.job.parse() else {
            return;
        };
        self.late.0.push_back(Ended {
            cgroup_id,
            job: lines.job.clone(),
            uid: lines.uid(),
            end: Timestamp::now(),
            fold,
            lines: None,
            _asking: self.slurm.ask(cgroup_id, id),
        });
        if self.late.0.len() > MOST_LATE {
            self.late.0.pop_front();
        }
    }

    /// Takes an answer for a job that has ended: with Slurm's words, its summary is the last line of its record once more.
    fn learn_late(&mut self, said: &Said) {
        if !said.is_last {
            return;
        }
        let Some(mut ended) = self.late.take(said.cgroup_id) else {
            return;
        };
        let (slurm, uid) = said.until(ended.end).of(&ended.job, ended.uid);
        if slurm.facts.is_none() {
            return;
        }
        let waiting = || self.unwritten.take(ended.cgroup_id);
        let Some(mut lines) = ended.lines.or_else(waiting) else {
            return;
        };
        if let Some(uid) = uid {
            lines.let_read(uid);
        }
        ended.fold.tell_job(slurm);
        let summary = ended.fold.snapshot(Kind::Summary, None);
        self.unwritten.add(ended.cgroup_id, lines, &summary, &self.states);
        self.write_summaries();
    }

    /// Writes the summaries that can be written.
    pub(super) fn write_summaries(&mut self) {
        for (cgroup_id, lines) in self.unwritten.write(&self.records, &self.states) {
            self.late.is_written(cgroup_id, lines);
        }
    }
}

/// Whose job it is by the processes that it has now: on version 2 nothing else tells it, and one of root's may be anyone's.
fn uid_now(hierarchies: &Hierarchies, cgroup: &Cgroup) -> Option<u32> {
    let (place, _) = hierarchies.slurm_job_at(cgroup.path()).ok()??;
    place.uid.filter(|uid| *uid != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::slurm::State;

    #[test]
    fn words_of_another_users_job_are_not_taken() {
        let facts = JobFacts {
            job_id: 7,
            uid: Some(1002),
            user: Some("bob".to_owned()),
            ..JobFacts::default()
        };
        let said = Said {
            cgroup_id: 1,
            answer: Ok(vec![facts]),
            is_last: true,
        };
        for uid in [Some(1001), Some(0)] {
            let (slurm, told) = said.of("7", uid);
            assert_eq!((slurm.facts, slurm.started, told), (None, None, None));
            let why = slurm.why_no_facts.expect("a reason");
            assert!(why.contains("a job of uid 1002"), "{why}");
        }
        for uid in [Some(1002), None] {
            let (slurm, told) = said.of("7", uid);
            let user = slurm.facts.and_then(|facts| facts.user);
            assert_eq!((user.as_deref(), told), (Some("bob"), Some(1002)));
        }
    }

    #[test]
    fn words_of_a_later_run_are_not_taken() {
        let end: Timestamp = "2026-12-01T03:52:12Z".parse().expect("a moment");
        let facts = |start: &str, state: &str| JobFacts {
            job_id: 7,
            start: start.parse().ok(),
            state: State::of([state.to_owned()]),
            ..JobFacts::default()
        };
        for (start, state, is_of_it) in [
            ("2026-12-01T03:52:09Z", "COMPLETED", true),
            ("2026-12-01T03:52:12Z", "RUNNING", true),
            ("", "COMPLETED", true),
            ("2026-12-01T03:52:15Z", "RUNNING", false),
            ("", "PENDING", false),
        ] {
            let said = Said {
                cgroup_id: 1,
                answer: Ok(vec![facts(start, state)]),
                is_last: true,
            };
            let (slurm, _) = said.until(end).of("7", None);
            assert_eq!(slurm.facts.is_some(), is_of_it, "{start} {state}");
        }
    }
}
