//! The agent of this node, asked by whoever may not, or need not, load programs.

use std::{
    io::{self, ErrorKind},
    path::Path,
    time::Duration,
};

use anyhow::Context;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::UnixStream,
    time::timeout,
};

use super::mine;
use crate::{
    cli::{self, ForcedSource},
    error::{Error, NOTE},
    job::{cgroup::Hierarchies, id::JobId},
    out::{self, escape},
    snapshot::Snapshot,
    wire::{self, Ask, Read, Reason, Refusal, Request, Target},
};

/// How long a line of an answer may take, beyond the window that was asked for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Columns of what the agent says.
const WORDS: usize = 200;

/// An agent that answers.
pub struct Conversation {
    stream: BufReader<UnixStream>,
    patience: Duration,
}

/// Why an agent does not answer.
enum Silence {
    /// There is none, or it does not know this job: all is as if there were none.
    Plain,
    /// Whatever its user should know.
    Told(String),
}

impl From<io::Error> for Silence {
    fn from(error: io::Error) -> Self {
        Self::Told(error.to_string())
    }
}

impl From<tokio::time::error::Elapsed> for Silence {
    fn from(_: tokio::time::error::Elapsed) -> Self {
        Self::Told(format!("it has not answered within {} s", PATIENCE.as_secs()))
    }
}

impl From<Refusal> for Silence {
    fn from(refusal: Refusal) -> Self {
        match refusal.reason {
            Reason::Absent | Reason::Several => Self::Plain,
            _ => Self::Told(escape::head(&refusal.message, WORDS)),
        }
    }
}

/// What the agent is to be asked for; `None` where it cannot be asked: for steps, for one of several nodes on this host, or where
/// another source is wanted.
pub async fn target(
    socket: &Path,
    named: &cli::Target,
    force: Option<ForcedSource>,
) -> Result<Option<Target>, Error> {
    if force.is_some() || !socket.exists() {
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

/// One answer; `None` where it has to be found without the agent.
pub async fn once(socket: &Path, target: Target, window: Option<Duration>) -> Option<Box<RawValue>> {
    let ask = Ask::Once {
        target,
        window_seconds: window.map(|window| window.as_secs_f64()),
    };
    let (first, _) = begin(socket, ask, window.unwrap_or_default()).await?;
    Some(first)
}

/// The first answer, and whatever follows; `None` where there is none.
pub async fn begin(socket: &Path, ask: Ask, window: Duration) -> Option<(Box<RawValue>, Conversation)> {
    match try_begin(socket, ask, window).await {
        Ok(begun) => Some(begun),
        Err(Silence::Plain) => None,
        Err(Silence::Told(why)) => {
            out::tell_aside(&format!(
                "{NOTE}the agent does not answer ({why}): measured without it\n"
            ));
            None
        }
    }
}

async fn try_begin(
    socket: &Path,
    ask: Ask,
    window: Duration,
) -> Result<(Box<RawValue>, Conversation), Silence> {
    let stream = match timeout(PATIENCE, UnixStream::connect(socket)).await? {
        Ok(stream) => stream,
        Err(error) if is_absence(error.kind()) => return Err(Silence::Plain),
        Err(error) => return Err(error.into()),
    };
    let mut conversation = Conversation {
        stream: BufReader::new(stream),
        patience: PATIENCE + window,
    };
    let request = wire::line(&Request::new(ask)).map_err(io::Error::from)?;
    timeout(PATIENCE, conversation.stream.get_mut().write_all(&request)).await??;
    match conversation.next_answer().await? {
        Some(first) => Ok((first, conversation)),
        None => Err(Silence::Told("it ended".to_owned())),
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
    matches!(
        kind,
        ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::PermissionDenied
    )
}

impl Conversation {
    /// The next answer; `None` where the agent has ended.
    pub async fn next(&mut self) -> Option<Box<RawValue>> {
        self.next_answer().await.ok().flatten()
    }

    async fn next_answer(&mut self) -> Result<Option<Box<RawValue>>, Silence> {
        let line = timeout(self.patience, wire::next_line(&mut self.stream, wire::MAX_ANSWER));
        let Some(line) = line.await?? else {
            return Ok(None);
        };
        let read: Read = serde_json::from_slice(&line).map_err(io::Error::from)?;
        match read {
            Read {
                refused: Some(refusal),
                ..
            } => Err(refusal.into()),
            Read { snapshot, .. } => match snapshot {
                Some(snapshot) => Ok(Some(snapshot)),
                None => Err(Silence::Told("its answer is not understood".to_owned())),
            },
        }
    }
}
