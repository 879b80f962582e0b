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
/// An answer is given again within this: reading faster tells nothing more, and costs.
const SAME: Duration = Duration::from_millis(200);
/// Questions that wait to be taken.
const ASKS: usize = 16;

/// All readers.
pub struct Metrics {
    file: Option<TextFile>,
    /// When the next part of the file's window begins.
    next_part: Instant,
    asks: (mpsc::Sender<Ask>, mpsc::Receiver<Ask>),
    /// The last answer by HTTP, and when it was given.
    last: Option<(Instant, Format, Answer)>,
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
            next_part: Instant::now() + EVERY,
            asks,
            last: None,
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
        if let Some((at, of, answer)) = &self.last
            && *of == format
            && now.duration_since(*at) < SAME
        {
            return Ok(answer.clone());
        }
        let (samples, agent) = jobs.samples(Reader::Http)?;
        let answer = Answer {
            text: Bytes::from(openmetrics::text(&samples, &agent, format)),
            part: jobs.begin_part(Reader::Http),
        };
        self.last = Some((now, format, answer.clone()));
        Ok(answer)
    }

    /// The agent has looked at all jobs: writes the file, where it is time, or where jobs have come or gone since.
    pub fn looked(&mut self, jobs: &mut Jobs) -> Result<(), Error> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let is_time = Instant::now() >= self.next_part;
        if !(std::mem::take(&mut jobs.have_changed) || is_time) {
            return Ok(());
        }
        let (samples, agent) = jobs.samples(Reader::File)?;
        if let Some(error) = file.write(&openmetrics::text(&samples, &agent, file.format)) {
            note(&format!("metrics: {error}; it is tried again"));
        }
        if is_time {
            self.next_part = Instant::now() + EVERY;
            let part = jobs.begin_part(Reader::File);
            jobs.windows
                .forget_before(Reader::File, (part + 1).saturating_sub(PARTS));
        }
        Ok(())
    }

    /// The agent ends.
    pub fn leave(&self) {
        if let Some(file) = &self.file {
            file.remove();
        }
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    let listener = TcpListener::bind(address).await;
    Ok(listener.with_context(|| format!("listen at {address}"))?)
}
