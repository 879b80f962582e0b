//! Records, as clients are told of them: read beside the loop, which goes on meanwhile.
//!
//! An answer is made in parts, between which the others who ask have theirs, and all of them together have a share of one CPU.

mod work;

use std::{
    cell::RefCell,
    collections::BTreeSet,
    path::PathBuf,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use tokio::{
    sync::{Mutex, OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::{sleep, timeout},
};

use super::{
    Peer,
    doors::{Place, ROOT, Stage},
};
use crate::{
    error::Error,
    record::{Filter, Index, View, Whose},
    snapshot::JobState,
    verb::agent::allowance::Debt,
    wire::{Reason, Refusal},
};
use work::{Listed, Shown, Work};

/// One part of an answer: so long others wait for it.
const PART: Duration = Duration::from_millis(20);
/// All answers together may take one part in this many of the time.
const SHARE: u32 = 5;
/// How long an answer may take, which its client waits for: less than `client::PATIENCE_OF_RECORDS`.
const PATIENCE: Duration = Duration::from_secs(100);
/// Users beside root whose answers are made, or taken by them, at one time, where all records are gone through: each holds what it has
/// found.
const AT_ONCE: usize = 8;
/// Memory for what records tell in short: of some 38,000.
const INDEX: usize = 32 << 20;

/// The directory of records.
pub struct Archive {
    dir: PathBuf,
    desk: Arc<Mutex<Desk>>,
    /// Users who are being told.
    told: RefCell<BTreeSet<u32>>,
    turns: Arc<Semaphore>,
    /// Held while the answer of a user is made that goes through all records: of many made at once, all would be late.
    making: Arc<Semaphore>,
}

/// What answers are made with, one part at a time.
struct Desk {
    index: Index,
    debt: Debt,
}

/// A user who is being told, as long as this value is there.
pub struct Telling<'a> {
    archive: Rc<Archive>,
    peer: &'a Peer,
    place: &'a Place,
    asked: Instant,
    /// Others may have it when this user has the answer.
    turn: Option<OwnedSemaphorePermit>,
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.archive.told.borrow_mut().remove(&self.peer.uid);
    }
}

impl Archive {
    /// Of this directory.
    pub fn new(dir: PathBuf) -> Self {
        let desk = Desk {
            index: Index::new(INDEX),
            debt: Debt::new(SHARE),
        };
        Self {
            dir,
            desk: Arc::new(Mutex::new(desk)),
            told: RefCell::default(),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            making: Arc::new(Semaphore::new(1)),
        }
    }

    /// Begins to tell a user, one answer at a time: it may be long, and reading it slow.
    pub fn tell<'a>(self: &Rc<Self>, peer: &'a Peer, place: &'a Place) -> Result<Telling<'a>, Refusal> {
        if !self.told.borrow_mut().insert(peer.uid) {
            return Err(Refusal::new(
                Reason::Busy,
                "another question of this user about records is being answered: wait for that",
            ));
        }
        place.is_at(Stage::Waiting);
        Ok(Telling {
            archive: Rc::clone(self),
            peer,
            place,
            asked: Instant::now(),
            turn: None,
        })
    }
}

impl Telling<'_> {
    /// What the record of a job says: the line of the answer.
    pub async fn show(&mut self, job: String, run: u32) -> Result<Vec<u8>, Refusal> {
        let wanted = job.parse().map_err(|error| {
            Refusal::new(
                Reason::Malformed,
                format!("the request is not understood: {error}"),
            )
        })?;
        let shown = Shown::new(self.archive.dir.clone(), wanted, run, self.peer.sees());
        let way = "name the raw id, as `sw-bpf list` tells it";
        self.make(shown, way).await
    }

    /// Which records there are; `running` are being written. The line of the answer.
    pub async fn list(
        &mut self,
        since: Option<Timestamp>,
        user: Option<String>,
        state: Option<JobState>,
        running: BTreeSet<String>,
    ) -> Result<Vec<u8>, Refusal> {
        // Whom a name means may take long to find out.
        let filter = move || Filter {
            since,
            user: user.as_deref().map(Whose::of),
            state,
        };
        let view = View {
            user: self.peer.sees(),
            running: Some(running),
        };
        let listed = Listed::new(self.archive.dir.clone(), filter, view);
        self.make(listed, "ask for less, as by --since").await
    }

    /// Makes an answer, each part in its turn. `way` out is told to who would have to wait too long.
    async fn make(&mut self, mut work: impl Work, way: &str) -> Result<Vec<u8>, Refusal> {
        let refusal = |error| refusal(error, self.peer.sees());
        let late = || {
            let why = format!("the answer takes more than {} s", PATIENCE.as_secs());
            Refusal::new(Reason::Failed, format!("{why}: {way}"))
        };
        let mut making = None;
        loop {
            if work.is_long() && making.is_none() && self.peer.uid != ROOT {
                let asked = self.asked;
                let wait = async |turns: &Arc<Semaphore>| {
                    let left = PATIENCE.saturating_sub(asked.elapsed());
                    let turn = timeout(left, Arc::clone(turns).acquire_owned()).await;
                    turn.map_err(|_| late()).map(Result::ok)
                };
                if self.turn.is_none() {
                    self.turn = wait(&self.archive.turns).await?;
                    self.place.is_at(Stage::Reading);
                }
                making = wait(&self.archive.making).await?;
            }
            // Whoever has waited longest comes first.
            let mut desk = Arc::clone(&self.archive.desk).lock_owned().await;
            sleep(desk.debt.wait(Instant::now())).await;
            if self.asked.elapsed() > PATIENCE {
                return Err(late());
            }
            let part = spawn_blocking(move || {
                let (begin, used) = (Instant::now(), cpu_time());
                let made = work.go_on(&mut desk.index, &|| begin.elapsed() >= PART);
                let spent = cpu_time().saturating_sub(used);
                desk.debt.spend(spent, Instant::now());
                (work, made)
            });
            let (rest, made) = part
                .await
                .context("read the records")
                .map_err(Error::from)
                .map_err(refusal)?;
            if let Some(line) = made.map_err(refusal)? {
                return Ok(line);
            }
            work = rest;
        }
    }
}

/// CPU time of this thread so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Why `user` has no answer: who sees all is told the reason; to others a record that is not there, one that cannot be read and
/// one of somebody else are alike.
fn refusal(error: Error, user: Option<u32>) -> Refusal {
    match error {
        Error::NoRecord { why, .. } if user.is_none() => Refusal::new(Reason::Absent, why),
        Error::NoRecord { .. } | Error::RecordDenied { .. } => Refusal::new(
            Reason::Absent,
            "it has not run on this host, its record was removed by age, or only another user may see it; `sw-bpf list` tells \
             which there are",
        ),
        // It is told of records that this user may see alone.
        Error::NoSuchRun(_, why) => Refusal::new(Reason::Absent, why),
        Error::JobSeveral { what, candidates } => Refusal {
            candidates,
            ..Refusal::new(Reason::Several, what)
        },
        error => Refusal::new(Reason::Failed, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sees_all_alone_is_told_why_a_record_tells_nothing() {
        let damaged = || Error::NoRecord {
            what: "7".to_owned(),
            why: "7.jsonl: it has no whole line yet".to_owned(),
        };
        assert_eq!(
            refusal(damaged(), None).message,
            "7.jsonl: it has no whole line yet"
        );
        let of_other = refusal(damaged(), Some(7));
        assert_eq!(of_other.reason, Reason::Absent);
        assert!(!of_other.message.contains("7.jsonl"), "{}", of_other.message);
    }

    #[tokio::test]
    async fn so_many_users_are_told_of_all_records_at_one_time() {
        let temp = tempfile::tempdir().expect("a directory");
        let archive = Rc::new(Archive::new(temp.path().to_owned()));
        let doors = Rc::new(super::super::doors::Doors::default());
        let guests = (ROOT..=AT_ONCE as u32 + 1).map(|uid| {
            let (place, _) = doors.enter(uid).expect("a place");
            (Peer::user(uid), place)
        });
        let guests: Vec<_> = guests.collect();
        let telling = guests.iter().map(|(peer, place)| archive.tell(peer, place));
        let telling: Result<Vec<Telling>, Refusal> = telling.collect();
        let mut telling = telling.expect("one question each");
        let mut last = telling.pop().expect("there");
        let listed = async |telling: &mut Telling| {
            let listed = telling.list(None, None, None, BTreeSet::new());
            timeout(Duration::from_secs(1), listed).await
        };
        for one in telling.iter_mut().rev() {
            listed(one).await.expect("root too").expect("told");
        }
        listed(&mut last).await.expect_err("it waits");
        let named = last.show("cgroup-a".to_owned(), 0);
        let absent = timeout(Duration::from_secs(1), named).await.expect("at once");
        assert_eq!(absent.expect_err("none").reason, Reason::Absent);
        drop(telling.pop());
        listed(&mut last).await.expect("its turn").expect("told");
    }
}
