//! What the agent says of records.

use std::{path::Path, time::Duration};

use anyhow::anyhow;
use tokio::time::{Instant, sleep};

use super::{Conversation, Read, SILENCE, WORDS, patiently, pauses::Pauses, silence::Silence, try_begin};
use crate::{
    error::{Error, NOTE},
    out::escape,
    wire::{Ask, Misread, Reason},
};

/// How long an answer about records, which may be very many, may take.
const PATIENCE: Duration = Duration::from_mins(2);
/// The same where the answer only adds to a failure that is to be told.
const PATIENCE_ASIDE: Duration = Duration::from_secs(1);
/// Jobs that are named where several are meant.
const MOST_CANDIDATES: usize = 100;

/// What the agent says of records, the `part` of its answer that was asked for; `None` where they are to be read without it. `what`
/// is asked for.
pub async fn of_records<T>(
    socket: &Path,
    ask: Ask,
    what: &str,
    part: impl FnOnce(Read) -> Option<T>,
) -> Result<Option<T>, Error> {
    let waits = |silence: Duration| {
        let (seconds, minutes) = (silence.as_secs(), PATIENCE.as_secs() / 60);
        format!(
            "{NOTE}the agent has said nothing for {seconds} s: it is waited for, {minutes} minutes at most\n"
        )
    };
    match patiently(SILENCE, try_while_busy(socket, ask), waits).await {
        Ok((read, _)) => {
            let told = part(read);
            if told.is_none() {
                Silence::from(Misread::Nothing).tell(socket);
            }
            Ok(told)
        }
        Err(Silence::Refused(refusal)) if refusal.reason == Reason::Busy => {
            Err(anyhow!("the agent is busy: {}", escape::head(&refusal.message, WORDS)).into())
        }
        // It knows best why there is no answer: what another directory has is none either.
        Err(Silence::Refused(refusal)) if refusal.reason == Reason::Failed => Err(anyhow!(
            "the agent has no answer: {}",
            escape::head(&refusal.message, WORDS)
        )
        .into()),
        Err(Silence::Refused(refusal)) if refusal.reason == Reason::Absent => Err(Error::NoRecord {
            what: what.to_owned(),
            why: escape::head(&refusal.message, WORDS),
        }),
        Err(Silence::Refused(refusal)) if refusal.reason == Reason::Several => Err(Error::JobSeveral {
            what: escape::head(&refusal.message, WORDS),
            candidates: { refusal.candidates.iter() }
                .take(MOST_CANDIDATES)
                .map(|candidate| escape::head(candidate, WORDS))
                .collect(),
        }),
        Err(silence) => {
            silence.tell(socket);
            Ok(None)
        }
    }
}

/// Whether the agent has a record of a job; `None` where that cannot be known at once. Its user is told nothing.
pub async fn has_record(socket: &Path, job: &str) -> Option<bool> {
    let ask = Ask::Show {
        job: job.to_owned(),
        run: 0,
    };
    match try_begin(socket, ask, PATIENCE_ASIDE).await {
        Ok((read, _)) => Some(read.shown.is_some()),
        Err(Silence::Refused(refusal)) => match refusal.reason {
            Reason::Absent => Some(false),
            // It is one of them, and `show` names them.
            Reason::Several => Some(true),
            _ => None,
        },
        Err(_) => None,
    }
}

/// Asks for records, again as long as others are told first.
async fn try_while_busy(socket: &Path, ask: Ask) -> Result<(Read, Conversation), Silence> {
    let until = Instant::now() + PATIENCE;
    let mut pauses = Pauses::default();
    loop {
        // All tries together take no longer than one may.
        let left = until.saturating_duration_since(Instant::now());
        match try_begin(socket, ask.clone(), left).await {
            Err(Silence::Refused(refusal)) if refusal.reason == Reason::Busy && Instant::now() < until => {
                sleep(pauses.next()).await;
            }
            begun => return begun,
        }
    }
}
