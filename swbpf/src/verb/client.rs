//! The agent of this node, asked by whoever may not, or need not, load programs.

mod pauses;
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
use silence::Silence;
pub use without::{looked_at, or_recorded, without_agent};

/// How long a line of an answer may take, beyond the window that was asked for.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same of records, which may be very many.
const PATIENCE_OF_RECORDS: Duration = Duration::from_mins(2);
/// After so long without a word, its user is told: one who follows a job has a line a second.
pub const SILENCE: Duration = Duration::from_secs(5);
/// The same of the first answer about a job, which the agent has at hand.
const FIRST_SILENCE: Duration = Duration::from_secs(1);
/// How long the next agent is waited for.
const COMES_BACK: Duration = Duration::from_secs(30);
/// Jobs that are named where several are meant.
const MOST_CANDIDATES: usize = 100;
/// Columns of what the agent says.
const WORDS: usize = 200;

/// A job that is followed, whichever agent is there.
pub struct Following {
    socket: PathBuf,
    target: Target,
    conversation: Conversation,
}

/// An agent that answers.
struct Conversation {
    stream: BufReader<UnixStream>,
    patience: Duration,
}

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
    if !socket.exists() {
        Silence::Nobody.tell(socket);
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
        Ok((read, conversation)) => {
            if let Some(snapshot) = read.snapshot {
                return Told::This((snapshot, conversation));
            }
            Silence::from(Misread::Nothing).tell(socket);
            Told::Nothing
        }
        Err(Silence::Refused(refusal)) if matches!(refusal.reason, Reason::Absent | Reason::Several) => {
            Told::NotYet
        }
        Err(silence) => {
            silence.tell(socket);
            Told::Nothing
        }
    }
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
                    let Some(snapshot) = read.snapshot else {
                        return Err(replaced(&Misread::Nothing));
                    };
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
        match of_job(&self.socket, try_begin(&self.socket, ask, PATIENCE).await) {
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

/// What the agent says of records, the `part` of its answer that was asked for; `None` where they are to be read without it. `what`
/// is asked for.
pub async fn of_records<T>(
    socket: &Path,
    ask: Ask,
    what: &str,
    part: impl FnOnce(Read) -> Option<T>,
) -> Result<Option<T>, Error> {
    let waits = |silence: Duration| {
        let (seconds, minutes) = (silence.as_secs(), PATIENCE_OF_RECORDS.as_secs() / 60);
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

/// Whether the agent has a record of a job, told to nobody.
pub async fn has_record(socket: &Path, job: &str) -> Option<bool> {
    let ask = Ask::Show {
        job: job.to_owned(),
        run: 0,
    };
    match try_begin(socket, ask, PATIENCE).await {
        Ok((read, _)) => Some(read.shown.is_some()),
        Err(Silence::Refused(_)) => Some(false),
        Err(_) => None,
    }
}

/// Asks for records, again as long as others are told first.
async fn try_while_busy(socket: &Path, ask: Ask) -> Result<(Read, Conversation), Silence> {
    let until = Instant::now() + PATIENCE_OF_RECORDS;
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

async fn try_begin(socket: &Path, ask: Ask, patience: Duration) -> Result<(Read, Conversation), Silence> {
    let stream = match timeout(PATIENCE, UnixStream::connect(socket)).await? {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(Silence::Shut),
        Err(error) if is_absence(error.kind()) => return Err(Silence::Nobody),
        Err(error) => return Err(error.into()),
    };
    let mut conversation = Conversation {
        stream: BufReader::new(stream),
        patience,
    };
    let request = wire::line(&Request::new(ask)).map_err(io::Error::from)?;
    let asked = timeout(PATIENCE, conversation.stream.get_mut().write_all(&request)).await?;
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
    /// The next snapshot; `None` where the agent has ended.
    async fn next(&mut self) -> Option<Box<RawValue>> {
        self.next_answer().await.ok().flatten()?.snapshot
    }

    async fn next_answer(&mut self) -> Result<Option<Read>, Silence> {
        let line = timeout(self.patience, wire::next_line(&mut self.stream, wire::MAX_ANSWER));
        let Some(line) = line.await?? else {
            return Ok(None);
        };
        let read = Read::parse(&line)?;
        match read.refused {
            Some(refusal) => Err(Silence::Refused(refusal)),
            None => Ok(Some(read)),
        }
    }
}
