//! The agent of this node, asked by whoever may not, or need not, load programs.

mod pauses;
mod records;
mod silence;
mod without;

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};

use anyhow::{Context, anyhow};
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::UnixStream,
    time::{Instant, sleep, timeout},
};

use super::mine;
use crate::{
    cli::{self, ForcedSource},
    error::{Error, NOTE},
    job::{cgroup::Hierarchies, id::JobId},
    out::{self, escape, units},
    snapshot::Snapshot,
    wire::{self, Answer, Ask, Misread, Reason, Request, Target},
};
use pauses::Pauses;
pub use records::of_records;
use silence::Silence;
pub use silence::tell_who_may_ask;
pub use without::{looked_at, or_recorded, without_agent};

/// How long a line of an answer may take, beyond the window that was asked for.
const PATIENCE: Duration = Duration::from_secs(10);
/// After so long without a word, its user is told: one who follows a job has a line a second.
pub const SILENCE: Duration = Duration::from_secs(5);
/// The same of the first answer about a job, which the agent has at hand.
const FIRST_SILENCE: Duration = Duration::from_secs(1);
/// How long the next agent is waited for.
const COMES_BACK: Duration = Duration::from_secs(30);
/// Columns of what the agent says.
const WORDS: usize = 200;

/// A job that is followed, whichever agent is there.
pub struct Following {
    socket: PathBuf,
    target: Target,
    conversation: Conversation,
}

/// An agent that answers.
struct Conversation(BufReader<UnixStream>);

/// What an agent says of a job.
pub enum Told<T> {
    /// This.
    This(T),
    /// It knows no such job, or several, which can change when the job is found.
    NotYet,
    /// Nothing, and it need not be asked again.
    Nothing,
}

impl<T> Told<T> {
    fn map<U>(self, of: impl FnOnce(T) -> U) -> Told<U> {
        match self {
            Self::This(told) => Told::This(of(told)),
            Self::NotYet => Told::NotYet,
            Self::Nothing => Told::Nothing,
        }
    }
}

/// An answer, as it is read.
pub type Read = Answer<Box<RawValue>>;

/// What the agent is to be asked for; `None` where it cannot be asked: for steps, for one of several nodes on this host, or where
/// another source is wanted.
pub async fn target(
    socket: &Path,
    named: &cli::Target,
    force: Option<ForcedSource>,
) -> Result<Option<Target>, Error> {
    if force.is_some() {
        return Ok(None);
    }
    if let Some(silence) = Silence::before_asking(socket.try_exists()) {
        silence.tell(socket);
        return Ok(None);
    }
    let of_job = |id: JobId| id.step.is_none().then(|| Target::Job(id.job.to_string()));
    Ok(match named {
        cli::Target::Job { node: Some(_), .. } | cli::Target::Mine { node: Some(_) } => None,
        cli::Target::Job { id, node: None } => of_job(id.clone()),
        cli::Target::Mine { node: None } => {
            let hierarchies = Hierarchies::detect()?;
            of_job(mine::job(&hierarchies, None).await?)
        }
        cli::Target::Own => mine::own_job().and_then(of_job),
        cli::Target::Cgroup(path) => {
            let cgroup = Hierarchies::detect()?.cgroup_at(path)?;
            Some(Target::CgroupId(cgroup.id()))
        }
        cli::Target::Pid(pid) => {
            let cgroup = Hierarchies::detect()?.cgroup_of_pid(*pid)?;
            Some(Target::CgroupId(cgroup.id()))
        }
    })
}

/// One snapshot.
pub async fn once(socket: &Path, target: Target, window: Option<Duration>) -> Told<Box<RawValue>> {
    let ask = Ask::Once {
        target,
        window_seconds: window.map(|window| window.as_secs_f64()),
    };
    let begun = first_of_job(socket, ask, window.unwrap_or_default()).await;
    of_job(socket, begun).map(|(first, _)| first)
}

/// The first answer about a job, over a window. Where it is long in coming, its user is told.
async fn first_of_job(socket: &Path, ask: Ask, window: Duration) -> Result<(Read, Conversation), Silence> {
    let words = |silence: Duration| {
        let (seconds, most) = (silence.as_secs_f64(), (PATIENCE + window).as_secs_f64());
        format!(
            "{NOTE}the agent has said nothing for {}: it is waited for, {} at most\n",
            units::duration(seconds),
            units::duration(most)
        )
    };
    patiently(
        FIRST_SILENCE + window,
        try_begin(socket, ask, PATIENCE + window),
        words,
    )
    .await
}

/// A snapshot of a job, where the agent has one.
fn of_job(
    socket: &Path,
    begun: Result<(Read, Conversation), Silence>,
) -> Told<(Box<RawValue>, Conversation)> {
    match begun {
        Ok((read, conversation)) => match readable(read.snapshot) {
            Ok(snapshot) => Told::This((snapshot, conversation)),
            Err(misread) => {
                Silence::from(misread).tell(socket);
                Told::Nothing
            }
        },
        Err(Silence::Refused(refusal)) if matches!(refusal.reason, Reason::Absent | Reason::Several) => {
            Told::NotYet
        }
        Err(silence) => {
            silence.tell(socket);
            Told::Nothing
        }
    }
}

/// A snapshot that this sw-bpf can read, also where it is only passed on.
fn readable(snapshot: Option<Box<RawValue>>) -> Result<Box<RawValue>, Misread> {
    let snapshot = snapshot.ok_or(Misread::Nothing)?;
    serde_json::from_str::<Snapshot>(snapshot.get())?;
    Ok(snapshot)
}

impl Following {
    /// The first snapshot, and those that follow.
    pub async fn begin(socket: &Path, target: Target) -> Told<(Box<RawValue>, Self)> {
        let ask = Ask::Follow {
            target: target.clone(),
        };
        let begun = first_of_job(socket, ask, Duration::ZERO).await;
        of_job(socket, begun).map(|(first, conversation)| {
            let following = Self {
                socket: socket.to_owned(),
                target,
                conversation,
            };
            (first, following)
        })
    }

    /// The next snapshot. Where the agent has ended, the next one is waited for: it goes on with the job.
    pub async fn next(&mut self) -> Result<Box<RawValue>, Error> {
        if let Some(next) = self.conversation.next().await {
            return Ok(next);
        }
        let until = Instant::now() + COMES_BACK;
        let mut last = None;
        let mut pauses = Pauses::default();
        while Instant::now() < until {
            sleep(pauses.next()).await;
            let ask = Ask::Follow {
                target: self.target.clone(),
            };
            match try_begin(&self.socket, ask, PATIENCE).await {
                Ok((read, conversation)) => {
                    let snapshot = readable(read.snapshot).map_err(|misread| replaced(&misread))?;
                    self.conversation = conversation;
                    return Ok(snapshot);
                }
                Err(Silence::Misread(misread)) => return Err(replaced(&misread)),
                Err(silence) => last = Some(silence),
            }
        }
        Err(match last {
            Some(Silence::Broken(why)) => anyhow!(
                "the agent does not answer: {}: `systemctl status sw-bpf-agent` tells of it",
                escape::head(&why, WORDS)
            ),
            _ => anyhow!(
                "the agent has ended, or the job has while there was none: `sw-bpf list` tells what is recorded"
            ),
        }
        .into())
    }

    /// All of the job until now, where the agent is there.
    pub async fn whole(&self) -> Option<Box<RawValue>> {
        let ask = Ask::Whole {
            target: self.target.clone(),
        };
        match of_job(
            &self.socket,
            first_of_job(&self.socket, ask, Duration::ZERO).await,
        ) {
            Told::This((whole, _)) => Some(whole),
            Told::NotYet | Told::Nothing => None,
        }
    }
}

fn replaced(misread: &Misread) -> Error {
    anyhow!("the agent was replaced by another: {misread}").into()
}

/// Waits for what the agent says, and tells its user what `words` says where it takes longer than `silence`.
pub async fn patiently<T>(
    silence: Duration,
    said: impl Future<Output = T>,
    words: impl FnOnce(Duration) -> String,
) -> T {
    let mut said = pin!(said);
    if let Ok(said) = timeout(silence, &mut said).await {
        return said;
    }
    out::tell_aside(&words(silence));
    said.await
}

/// The first answer, and who gives it, within `patience` for all of it.
async fn try_begin(socket: &Path, ask: Ask, patience: Duration) -> Result<(Read, Conversation), Silence> {
    timeout(patience, begin(socket, ask)).await?
}

async fn begin(socket: &Path, ask: Ask) -> Result<(Read, Conversation), Silence> {
    let stream = match UnixStream::connect(socket).await {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(Silence::Shut),
        Err(error) if is_absence(error.kind()) => return Err(Silence::Nobody),
        Err(error) => return Err(error.into()),
    };
    let mut conversation = Conversation(BufReader::new(stream));
    let request = wire::line(&Request::new(ask)).map_err(io::Error::from)?;
    let asked = conversation.0.get_mut().write_all(&request).await;
    // Who is not let in may be told so before anything was asked.
    let first = conversation.next_answer().await;
    match first {
        Ok(Some(first)) => Ok((first, conversation)),
        Ok(None) => Err(asked
            .err()
            .map_or_else(|| Silence::Broken("it ended".to_owned()), Silence::from)),
        Err(Silence::Broken(why)) => Err(asked.err().map_or(Silence::Broken(why), Silence::from)),
        Err(silence) => Err(silence),
    }
}

/// A snapshot that the agent told.
pub fn understood(snapshot: &RawValue) -> Result<Snapshot, Error> {
    let understood = serde_json::from_str(snapshot.get());
    Ok(
        understood
            .context("the agent's answer is not understood: use the sw-bpf that it was started from")?,
    )
}

fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

impl Conversation {
    /// The next snapshot; `None` where the agent has ended, or is too slow.
    async fn next(&mut self) -> Option<Box<RawValue>> {
        let next = timeout(PATIENCE, self.next_answer()).await;
        next.ok()?.ok().flatten()?.snapshot
    }

    async fn next_answer(&mut self) -> Result<Option<Read>, Silence> {
        let Some(line) = wire::next_line(&mut self.0, wire::MAX_ANSWER).await? else {
            return Ok(None);
        };
        let read = Read::parse(&line)?;
        match read.refused {
            Some(refusal) => Err(Silence::Refused(refusal)),
            None => Ok(Some(read)),
        }
    }
}

#[cfg(test)]
mod tests;
