//! Metrics of the jobs, for whoever collects them: in a file, and by HTTP on a loopback address.
//!
//! Every reader has a window of its own ([`windows`]); the text is made of what the programs hold at that moment.

mod file;
mod highs;
mod http;
mod windows;

use std::{net::SocketAddr, time::Duration};

use anyhow::Context;
use bytes::Bytes;
use tokio::{net::TcpListener, sync::mpsc, time::Instant};

use super::{jobs::Jobs, note};
use crate::{
    cli,
    error::Error,
    out::openmetrics::{self, Format},
};
use file::TextFile;
pub use highs::Highs;
pub use http::asked;
use http::{Answer, Ask, serve};
pub use windows::{Reader, Windows, sample};

/// Time between two versions of the file, and length of a part of its window.
const EVERY: Duration = Duration::from_secs(15);
/// Parts of the window of the file: whoever reads it each minute misses none.
const PARTS: u64 = 7;
/// An answer is given again within this: any process of the host may ask, and each answer costs.
const SAME: Duration = Duration::from_millis(200);
/// Answers, and versions of the file because jobs come and go, may each take one part in this many of the time.
const SHARE: u32 = 20;
/// Questions that wait to be taken.
const ASKS: usize = 16;

/// When the file is written.
struct Due {
    /// When the next part of its window begins.
    next_part: Instant,
    /// When it may be written before that.
    next_version: Instant,
}

/// What the file is written for.
#[derive(Debug, PartialEq, Eq)]
enum Version {
    /// It is time: the next part of its window begins.
    WithNewPart,
    /// Jobs have come or gone.
    BecauseOfJobs,
}

impl Due {
    /// The first version comes with the first look after this: a collector is not to wait for numbers that there are.
    fn at(begin: Instant) -> Self {
        Self {
            next_part: begin,
            next_version: begin,
        }
    }

    fn version(&self, now: Instant, have_changed: bool) -> Option<Version> {
        if now >= self.next_part {
            return Some(Version::WithNewPart);
        }
        (have_changed && now >= self.next_version).then_some(Version::BecauseOfJobs)
    }
}

/// All readers.
pub struct Metrics {
    file: Option<TextFile>,
    due: Due,
    asks: (mpsc::Sender<Ask>, mpsc::Receiver<Ask>),
    /// The last answer by HTTP in each format, and until when it is given again.
    last: [Option<(Instant, Answer)>; 2],
}

impl Metrics {
    /// Opens what was asked for.
    pub async fn open(asked: &cli::Agent) -> Result<Self, Error> {
        let asks = mpsc::channel(ASKS);
        if let Some(address) = asked.listen {
            let listener = listen(address).await?;
            let address = listener.local_addr().context("read the address of a socket")?;
            tokio::spawn(serve(listener, asks.0.clone()));
            note(&format!("tells metrics at http://{address}/metrics"));
        }
        Ok(Self {
            file: asked.openmetrics.as_deref().map(TextFile::open).transpose()?,
            due: Due::at(Instant::now()),
            asks,
            last: [None, None],
        })
    }

    /// The next question by HTTP.
    pub async fn asked(&mut self) -> Option<Ask> {
        self.asks.1.recv().await
    }

    /// Answers it.
    pub fn answer(&mut self, ask: Ask, jobs: &mut Jobs) -> Result<(), Error> {
        match ask {
            Ask::Numbers(format, reply) => {
                let answer = self.numbers(format, jobs)?;
                // It may have hung up.
                let _ = reply.send(answer);
            }
            Ask::Read(part) => jobs.windows.forget_before(Reader::Http, part),
        }
        Ok(())
    }

    fn numbers(&mut self, format: Format, jobs: &mut Jobs) -> Result<Answer, Error> {
        let now = Instant::now();
        let last = &self.last[format as usize];
        if let Some((_, answer)) = last.as_ref().filter(|(until, _)| now < *until) {
            return Ok(answer.clone());
        }
        let (samples, agent) = jobs.samples(Reader::Http)?;
        let answer = Answer {
            text: Bytes::from(openmetrics::text(&samples, &agent, format)),
            part: jobs.begin_part(Reader::Http),
        };
        let until = Instant::now() + SAME.max(now.elapsed() * SHARE);
        self.last[format as usize] = Some((until, answer.clone()));
        Ok(answer)
    }

    /// The agent has looked at all jobs: writes the file, where it is time, or where jobs have come or gone since.
    pub fn looked(&mut self, jobs: &mut Jobs) -> Result<(), Error> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let now = Instant::now();
        let Some(version) = self.due.version(now, jobs.have_changed) else {
            return Ok(());
        };
        jobs.have_changed = false;
        let (samples, agent) = jobs.samples(Reader::File)?;
        if let Some(error) = file.write(&openmetrics::text(&samples, &agent, file.format)) {
            note(&format!("metrics: {error}; it is tried again"));
        }
        self.due.next_version = Instant::now() + now.elapsed() * SHARE;
        if version == Version::WithNewPart {
            self.due.next_part = now + EVERY;
            let part = jobs.begin_part(Reader::File);
            jobs.windows
                .forget_before(Reader::File, (part + 1).saturating_sub(PARTS));
        }
        Ok(())
    }

    /// The agent ends.
    pub fn leave(&mut self) {
        if let Some(file) = &mut self.file {
            file.remove();
        }
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    let listener = TcpListener::bind(address).await;
    let port = address.port();
    Ok(listener.with_context(|| {
        format!("listen at {address} (`ss -ltnp 'sport = :{port}'` tells who does; or name another port)")
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_look_is_written_and_then_what_is_due() {
        let begin = Instant::now();
        let mut due = Due::at(begin);
        assert_eq!(due.version(begin, false), Some(Version::WithNewPart));
        due.next_part = begin + EVERY;
        due.next_version = begin + SAME;
        let after = |millis, have_changed| due.version(begin + Duration::from_millis(millis), have_changed);
        assert_eq!(after(100, true), None);
        assert_eq!(after(14_999, false), None);
        assert_eq!(after(1000, true), Some(Version::BecauseOfJobs));
        assert_eq!(after(15_000, false), Some(Version::WithNewPart));
    }
}
