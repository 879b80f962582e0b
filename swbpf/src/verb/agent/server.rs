//! The socket of the agent: who may come in, and how long they may stay.

mod doors;
mod peer;

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::Path,
    rc::Rc,
    time::Duration,
};

use anyhow::{Context, anyhow};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::{mpsc, oneshot},
    time::{sleep, timeout},
};

use super::jobs::{Line, Question, Wanted};
use crate::{
    error::Error,
    wire::{self, Answer, Ask, Reason, Refusal, Request},
};
use doors::{Doors, Place};
pub use peer::Peer;

/// How long a request, and the taking of a line of an answer, may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is read of a client that is refused, bytes.
const REST: u64 = 1 << 20;
/// Questions that wait for the loop.
const QUESTIONS: usize = 64;
/// Lines that wait for a client that follows a job.
const LINES: usize = 4;
/// Longest window of one question.
const MAX_WINDOW: f64 = 3600.0;
/// Pause after a connection that could not be taken, as where too many files are open.
const PAUSE: Duration = Duration::from_millis(100);

/// The questions of all clients.
pub type Questions = mpsc::Receiver<Question>;

/// Opens the socket, and lets clients in from then on. `admins` see the jobs of all.
pub fn open(path: &Path, admins: Option<u32>) -> Result<Questions, Error> {
    let listener = bind(path)?;
    let (questions, asked) = mpsc::channel(QUESTIONS);
    tokio::task::spawn_local(async move {
        let doors = Rc::new(Doors::default());
        loop {
            match listener.accept().await {
                Ok((stream, _)) => let_in(stream, &doors, admins, &questions),
                Err(_) => sleep(PAUSE).await,
            }
        }
    });
    Ok(asked)
}

/// Makes the directory of the socket, where what the next agent needs is kept too.
pub fn make_dir(dir: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(dir);
    made.with_context(|| format!("make {}", dir.display()))?;
    let found = fs::metadata(dir).with_context(|| format!("look at {}", dir.display()))?;
    let own = rustix::process::geteuid().as_raw();
    if (found.uid() != own && found.uid() != 0) || found.mode() & 0o022 != 0 {
        return Err(anyhow!(
            "{} is not used for the socket: others can write to it: `chown root {0}; chmod 755 {0}`",
            dir.display()
        )
        .into());
    }
    Ok(())
}

/// A socket that everybody may connect to. One that a killed agent left is replaced.
fn bind(path: &Path) -> Result<UnixListener, Error> {
    let bound = UnixListener::bind(path).or_else(|error| {
        if error.kind() != ErrorKind::AddrInUse {
            return Err(error);
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::Error::other("another agent is there: end that first"));
        }
        fs::remove_file(path)?;
        UnixListener::bind(path)
    });
    let listener = bound.with_context(|| format!("open the socket {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))
        .with_context(|| format!("let everybody connect to {}", path.display()))?;
    Ok(listener)
}

/// Serves a client, each by itself: none waits for another.
fn let_in(
    mut stream: UnixStream,
    doors: &Rc<Doors>,
    admins: Option<u32>,
    questions: &mpsc::Sender<Question>,
) {
    let Ok(peer) = Peer::of(&stream, admins) else {
        return;
    };
    let place = doors.enter(peer.uid);
    let questions = questions.clone();
    tokio::task::spawn_local(async move {
        // A client that has gone, or is too slow, has no answer; nobody else has to know.
        let _ = if let Some(place) = place {
            attend(&mut stream, &peer, &questions, place).await
        } else {
            let busy = Refusal::new(Reason::Busy, "too many connections: close some, or wait");
            refuse(&mut stream, &busy).await
        };
    });
}

/// Answers the one request of a client.
async fn attend(
    stream: &mut UnixStream,
    peer: &Peer,
    questions: &mpsc::Sender<Question>,
    _place: Place,
) -> io::Result<()> {
    let (reading, writing) = stream.split();
    let mut reader = BufReader::new(reading);
    let line = timeout(PATIENCE, wire::next_line(&mut reader, wire::MAX_REQUEST)).await?;
    let mut client = Client {
        reader,
        writing,
        peer,
        questions,
    };
    let request = match line {
        Ok(Some(line)) => Request::parse(&line),
        Ok(None) => return Ok(()),
        Err(error) => Err(Refusal::new(
            Reason::Malformed,
            format!("the request is not understood: {error}"),
        )),
    };
    let answered = match request {
        Ok(request) => client.answer(request.ask).await?,
        Err(refusal) => Err(refusal),
    };
    match answered {
        Ok(()) => Ok(()),
        Err(refusal) => client.refuse(&refusal).await,
    }
}

/// A client whose request was read.
struct Client<'a> {
    reader: BufReader<tokio::net::unix::ReadHalf<'a>>,
    writing: tokio::net::unix::WriteHalf<'a>,
    peer: &'a Peer,
    questions: &'a mpsc::Sender<Question>,
}

impl Client<'_> {
    async fn answer(&mut self, ask: Ask) -> io::Result<Result<(), Refusal>> {
        match ask {
            Ask::Once {
                target,
                window_seconds,
            } => {
                let from = match window_seconds.map(window) {
                    None => None,
                    Some(Err(refusal)) => return Ok(Err(refusal)),
                    Some(Ok(window)) => {
                        let marked = self.question(|reply| Wanted::Mark(target.clone(), reply)).await;
                        match marked {
                            Ok(marked) => {
                                sleep(window).await;
                                Some(marked)
                            }
                            Err(refusal) => return Ok(Err(refusal)),
                        }
                    }
                };
                let answer = self.question(|reply| Wanted::Once(target, from, reply)).await;
                self.pass_on(answer).await
            }
            Ask::Whole { target } => {
                let answer = self.question(|reply| Wanted::Whole(target, reply)).await;
                self.pass_on(answer).await
            }
            Ask::Follow { target } => {
                let (lines, mut follows) = mpsc::channel(LINES);
                match self.question(|reply| Wanted::Follow(target, lines, reply)).await {
                    Ok(()) => self.follow(&mut follows).await.map(Ok),
                    Err(refusal) => Ok(Err(refusal)),
                }
            }
        }
    }

    /// Asks the loop.
    async fn question<T>(
        &self,
        wanted: impl FnOnce(oneshot::Sender<Result<T, Refusal>>) -> Wanted,
    ) -> Result<T, Refusal> {
        let ends = || Refusal::new(Reason::Failed, "the agent ends: try again");
        let (reply, answer) = oneshot::channel();
        let question = Question {
            peer: self.peer.clone(),
            wanted: wanted(reply),
        };
        self.questions.send(question).await.map_err(|_| ends())?;
        answer.await.map_err(|_| ends())?
    }

    async fn pass_on(&mut self, answer: Result<Line, Refusal>) -> io::Result<Result<(), Refusal>> {
        match answer {
            Ok(line) => self.write(&Answer::snapshot(&line)).await.map(Ok),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// Passes on the lines of a job until it ends or the client goes.
    async fn follow(&mut self, follows: &mut mpsc::Receiver<Line>) -> io::Result<()> {
        let mut said = [0; 64];
        loop {
            tokio::select! {
                line = follows.recv() => match line {
                    Some(line) => self.write(&Answer::snapshot(&line)).await?,
                    None => return Ok(()),
                },
                // It has nothing more to say: this is its end.
                _ = self.reader.read(&mut said) => return Ok(()),
            }
        }
    }

    /// Refuses, and takes what is still sent: the kernel would have it that the connection broke, not that it was refused.
    async fn refuse(&mut self, refusal: &Refusal) -> io::Result<()> {
        self.write(&Answer::refused(refusal)).await?;
        self.writing.shutdown().await?;
        let mut rest = (&mut self.reader).take(REST);
        timeout(PATIENCE, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await??;
        Ok(())
    }

    async fn write(&mut self, answer: &Answer<'_>) -> io::Result<()> {
        write(&mut self.writing, answer).await
    }
}

/// Length of a window that was asked for.
fn window(seconds: f64) -> Result<Duration, Refusal> {
    let window = Duration::try_from_secs_f64(seconds).ok();
    window
        .filter(|window| window.as_secs_f64() <= MAX_WINDOW)
        .ok_or_else(|| {
            Refusal::new(
                Reason::Malformed,
                format!("a window of {seconds} s is not understood: 0 to {MAX_WINDOW}"),
            )
        })
}

async fn refuse(stream: &mut UnixStream, refusal: &Refusal) -> io::Result<()> {
    write(stream, &Answer::refused(refusal)).await
}

async fn write(to: &mut (impl tokio::io::AsyncWrite + Unpin), answer: &Answer<'_>) -> io::Result<()> {
    let line = wire::line(answer)?;
    for part in line.chunks(64 << 10) {
        timeout(PATIENCE, to.write_all(part)).await??;
    }
    Ok(())
}
