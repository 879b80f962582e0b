//! Records, as clients are told of them: read beside the loop, which goes on meanwhile.

use std::{cell::RefCell, collections::BTreeSet, path::PathBuf, rc::Rc};

use anyhow::Context;
use jiff::Timestamp;
use tokio::{sync::Semaphore, task::spawn_blocking};

use super::Peer;
use crate::{
    error::Error,
    record::{self, Filter, Records, View, Whose},
    snapshot::{JobState, Listing},
    verb::list::listing,
    wire::{Reason, Refusal, Shown},
};

/// Clients that are told at one time.
const AT_ONCE: usize = 2;

/// The directory of records.
pub struct Archive {
    dir: PathBuf,
    turns: Semaphore,
    /// Users who are being told.
    told: RefCell<BTreeSet<u32>>,
}

/// A user who is being told, as long as this value is there.
pub struct Telling {
    archive: Rc<Archive>,
    uid: u32,
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.archive.told.borrow_mut().remove(&self.uid);
    }
}

impl Archive {
    /// Of this directory.
    pub fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            turns: Semaphore::new(AT_ONCE),
            told: RefCell::default(),
        }
    }

    /// Begins to tell a user, one answer at a time: it may be long, and reading it slow.
    pub fn tell(self: &Rc<Self>, peer: &Peer) -> Result<Telling, Refusal> {
        if !self.told.borrow_mut().insert(peer.uid) {
            return Err(Refusal::new(
                Reason::Busy,
                "another question of this user about records is being answered: wait for that",
            ));
        }
        Ok(Telling {
            archive: Rc::clone(self),
            uid: peer.uid,
        })
    }

    /// What the record of a job says.
    pub async fn show(&self, peer: &Peer, job: String, run: u32) -> Result<Shown, Refusal> {
        let wanted = job.parse().map_err(|error| {
            Refusal::new(
                Reason::Malformed,
                format!("the request is not understood: {error}"),
            )
        })?;
        let user = peer.sees();
        let found = self.read(move |records| record::find(records, &wanted, run, user));
        let found = found.await?;
        Ok(Shown {
            record: found.name.file(),
            snapshot: found.last.snapshot,
            note: found.last.note,
        })
    }

    /// Which records there are; `running` are being written.
    pub async fn list(
        &self,
        peer: &Peer,
        since: Option<Timestamp>,
        user: Option<String>,
        state: Option<JobState>,
        running: BTreeSet<String>,
    ) -> Result<Listing, Refusal> {
        let sees = peer.sees();
        self.read(move |records| {
            let filter = Filter {
                since,
                user: user.as_deref().map(Whose::of),
                state,
            };
            let view = View {
                user: sees,
                running: Some(&running),
            };
            Ok(listing(record::list(records, &filter, view)?))
        })
        .await
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Records) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Refusal> {
        let _turn = self.turns.acquire().await;
        let dir = self.dir.clone();
        let done = spawn_blocking(move || read(&Records::open(&dir)?)).await;
        let done = done.context("read the records").map_err(Error::from);
        done.flatten().map_err(refusal)
    }
}

/// A record that is not there and one of somebody else are refused alike.
fn refusal(error: Error) -> Refusal {
    match error {
        Error::NoRecord { .. } | Error::RecordDenied { .. } => Refusal::new(
            Reason::Absent,
            "it has not run on this host, its record was removed by age, or only another user may see it; `sw-bpf list` tells \
             which there are",
        ),
        Error::JobSeveral { what, candidates } => Refusal {
            candidates,
            ..Refusal::new(Reason::Several, what)
        },
        error => Refusal::new(Reason::Failed, error.to_string()),
    }
}
