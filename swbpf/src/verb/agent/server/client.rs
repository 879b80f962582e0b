//! One client: its one request, and what it is told.

use std::{io, time::Duration};

use serde_json::value::RawValue;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{
        UnixStream,
        unix::{ReadHalf, WriteHalf},
    },
    sync::{mpsc, oneshot},
    time::{error::Elapsed, sleep, timeout},
};

use super::{
    Desk, Peer,
    doors::{Place, Stage},
};
use crate::{
    verb::agent::jobs::{Line, Question, Wanted},
    wire::{self, Answer, Ask, Reason, Refusal, Request, Target},
};

/// How long a request, and the taking of a part of an answer, may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the taking of all of an answer about records may take.
const PATIENCE_WITH_ALL: Duration = Duration::from_secs(30);
/// How long one without a place may take to say what it wants.
const HASTE: Duration = Duration::from_secs(1);
/// What is written at once, bytes.
const PART: usize = 64 << 10;
/// What is read of a client that is refused, bytes.
const REST: u64 = 1 << 20;
/// Lines that wait for a client that follows a job.
const LINES: usize = 4;
/// Longest window of one question.
const MAX_WINDOW: f64 = 3600.0;

/// Why a client has no answer.
enum Failure {
    /// It has gone, or is too slow.
    Gone(io::Error),
    /// It is told why.
    Refused(Refusal),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

impl From<Elapsed> for Failure {
    fn from(elapsed: Elapsed) -> Self {
        Self::Gone(elapsed.into())
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A client, and where its questions go.
struct Client<'a> {
    reader: BufReader<ReadHalf<'a>>,
    writer: WriteHalf<'a>,
    peer: &'a Peer,
    desk: &'a Desk,
    place: &'a Place,
}

/// Answers the one request of a client.
pub async fn attend(stream: &mut UnixStream, peer: &Peer, desk: &Desk, place: &Place) -> io::Result<()> {
    let (reader, writer) = stream.split();
    let mut client = Client {
        reader: BufReader::new(reader),
        writer,
        peer,
        desk,
        place,
    };
    let Err(failure) = client.serve().await else {
        return Ok(());
    };
    match failure {
        Failure::Gone(error) => Err(error),
        Failure::Refused(refusal) => {
            refuse(&mut client.writer, refusal).await?;
            client.writer.shutdown().await?;
            // Whatever were left unread, the kernel would have it that the connection broke, not that it was refused.
            drain(&mut client.reader).await
        }
    }
}

/// Tells one who has no place why. What it wants is read first: left unread, the kernel would have it that the connection broke.
pub async fn turn_away(stream: &mut UnixStream, refusal: Refusal) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader);
    let _ = timeout(HASTE, wire::next_line(&mut reader, wire::MAX_REQUEST)).await;
    refuse(&mut writer, refusal).await
}

/// Tells why there is no answer.
pub async fn refuse(to: &mut (impl AsyncWrite + Unpin), refusal: Refusal) -> io::Result<()> {
    write(to, &Answer::refused(refusal)).await
}

impl Client<'_> {
    async fn serve(&mut self) -> Result<(), Failure> {
        let line = timeout(PATIENCE, wire::next_line(&mut self.reader, wire::MAX_REQUEST)).await?;
        let line = line.map_err(|error| {
            Refusal::new(
                Reason::Malformed,
                format!("the request is not understood: {error}"),
            )
        })?;
        let Some(line) = line else {
            return Ok(());
        };
        let ask = Request::parse(&line)?.ask;
        self.place.is_at(Stage::Asked);
        match ask {
            Ask::Once {
                target,
                window_seconds,
            } => self.once(target, window_seconds).await,
            Ask::Whole { target } => {
                let line = self.question(|reply| Wanted::Whole(target, reply)).await?;
                self.tell(&Answer::snapshot(&line)).await
            }
            Ask::Follow { target } => self.follow(target).await,
            Ask::Show { job, run } => {
                let mut telling = self.desk.archive.tell(self.peer, self.place)?;
                let line = telling.show(job, run).await?;
                self.tell_of_records(line).await
            }
            Ask::List { since, user, state } => {
                let mut telling = self.desk.archive.tell(self.peer, self.place)?;
                let running = self.question(Wanted::Running).await?;
                let line = telling.list(since, user, state, running).await?;
                self.tell_of_records(line).await
            }
        }
    }

    /// Others may wait for their turn until this is taken.
    async fn tell_of_records(&mut self, line: Vec<u8>) -> Result<(), Failure> {
        Ok(timeout(PATIENCE_WITH_ALL, write_line(&mut self.writer, line)).await??)
    }

    async fn once(&mut self, target: Target, window_seconds: Option<f64>) -> Result<(), Failure> {
        let from = match window_seconds {
            None => None,
            Some(seconds) => {
                let window = window(seconds)?;
                let marked = self.question(|reply| Wanted::Mark(target.clone(), reply)).await?;
                sleep(window).await;
                Some(marked)
            }
        };
        let line = self.question(|reply| Wanted::Once(target, from, reply)).await?;
        self.tell(&Answer::snapshot(&line)).await
    }

    /// Passes on the lines of a job until it ends or the client goes.
    async fn follow(&mut self, target: Target) -> Result<(), Failure> {
        let (sender, mut lines) = mpsc::channel::<Line>(LINES);
        self.question(|reply| Wanted::Follow(target, sender, reply))
            .await?;
        let mut said = [0; 64];
        loop {
            tokio::select! {
                line = lines.recv() => match line {
                    Some(line) => write(&mut self.writer, &Answer::snapshot(&line)).await?,
                    None => return Ok(()),
                },
                // It has nothing more to say: this is its end.
                _ = self.reader.read(&mut said) => return Ok(()),
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
        self.desk.questions.send(question).await.map_err(|_| ends())?;
        answer.await.map_err(|_| ends())?
    }

    async fn tell(&mut self, answer: &Answer<&RawValue>) -> Result<(), Failure> {
        Ok(write(&mut self.writer, answer).await?)
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

async fn drain(from: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut rest = from.take(REST);
    timeout(PATIENCE, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await??;
    Ok(())
}

async fn write(to: &mut (impl AsyncWrite + Unpin), answer: &Answer<&RawValue>) -> io::Result<()> {
    write_line(to, wire::line(answer)?).await
}

async fn write_line(to: &mut (impl AsyncWrite + Unpin), mut line: Vec<u8>) -> io::Result<()> {
    if line.len() as u64 > wire::MAX_ANSWER {
        let refusal = Refusal::new(
            Reason::Failed,
            "the answer is too long: ask for less, as by --since",
        );
        line = wire::line(&Answer::<()>::refused(refusal))?;
    }
    for part in line.chunks(PART) {
        timeout(PATIENCE, to.write_all(part)).await??;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_has_no_place_is_told_so_once_it_has_asked() {
        let (mut client, mut server) = UnixStream::pair().expect("a pair");
        let busy = Refusal::new(Reason::Busy, "too many");
        let asks = async {
            // It is slower than the agent.
            sleep(Duration::from_millis(100)).await;
            client.write_all(b"{\"version\":1,\"ask\":\"list\"}\n").await?;
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.map(|_| answer)
        };
        let turned = async move { turn_away(&mut server, busy).await };
        let (turned, answer) = tokio::join!(turned, asks);
        turned.expect("told");
        assert!(answer.expect("no broken pipe").contains("too many"));
    }
}
