//! `GET /metrics` on a loopback address. Whoever asks may be any process of this host: each is bounded in length and in time, and
//! of very many the oldest is hung up on.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::out::openmetrics::Format;

/// Longest head of a request.
const MAX_HEAD: usize = 8192;
/// Headers in it at most.
const MAX_HEADERS: usize = 64;
/// A request, its answer and its end take no longer.
const LIMIT: Duration = Duration::from_secs(10);
/// Connections at one time.
const MOST_OPEN: usize = 32;
/// Wait after a connection could not be taken, as without a free file descriptor.
const PAUSE: Duration = Duration::from_millis(100);

/// What connections have for the loop of the agent.
pub enum Ask {
    /// The numbers now.
    Numbers(Format, oneshot::Sender<Answer>),
    /// All before this part of the window was read to its end.
    Read(u64),
}

/// The numbers.
#[derive(Clone)]
pub struct Answer {
    /// As they are told.
    pub text: Bytes,
    /// The part of the window that began with them.
    pub part: u64,
}

/// Takes connections for ever.
pub async fn serve(listener: TcpListener, asks: mpsc::Sender<Ask>) {
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= MOST_OPEN
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let connection = tokio::spawn(timeout(LIMIT, exchange(stream, asks.clone())));
        open.push_back(connection.abort_handle());
    }
}

/// One request and its answer. An error is of whoever asked: nobody is to be told.
async fn exchange(mut stream: TcpStream, asks: mpsc::Sender<Ask>) -> Option<()> {
    let mut part = None;
    let (status, kind, body) = match request(&mut stream).await? {
        Ok(format) => {
            let (reply, answer) = oneshot::channel();
            asks.send(Ask::Numbers(format, reply)).await.ok()?;
            let answer = answer.await.ok()?;
            part = Some(answer.part);
            ("200 OK", format.media_type(), answer.text)
        }
        Err(status) => (
            status,
            "text/plain; charset=utf-8",
            Bytes::from_static(b"GET /metrics\n"),
        ),
    };
    let allow = if status.starts_with("405") {
        "Allow: GET\r\n"
    } else {
        ""
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(&body).await.ok()?;
    stream.shutdown().await.ok()?;
    // It hangs up when it has read all.
    let mut rest = [0; 512];
    while stream.read(&mut rest).await.ok()? > 0 {}
    if let Some(part) = part {
        asks.send(Ask::Read(part)).await.ok()?;
    }
    Some(())
}

/// Reads a request: how the numbers are wanted, or the status to refuse it with; `None` where it ends before its end.
async fn request(stream: &mut TcpStream) -> Option<Result<Format, &'static str>> {
    let mut head = [0; MAX_HEAD];
    let mut length = 0;
    loop {
        let read = stream.read(&mut head[length..]).await.ok()?;
        if read == 0 {
            return None;
        }
        length += read;
        if let Some(asked) = asked(&head[..length]) {
            return Some(asked);
        }
        if length == MAX_HEAD {
            return Some(Err("431 Request Header Fields Too Large"));
        }
    }
}

/// What the head of a request asks; `None` where more of it is to come.
pub fn asked(head: &[u8]) -> Option<Result<Format, &'static str>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Some(Err("431 Request Header Fields Too Large")),
        Err(_) => return Some(Err("400 Bad Request")),
    }
    let path = request.path.unwrap_or_default();
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    if path != "/metrics" {
        return Some(Err("404 Not Found"));
    }
    if request.method != Some("GET") {
        return Some(Err("405 Method Not Allowed"));
    }
    let takes_open = request.headers.iter().any(|header| {
        header.name.eq_ignore_ascii_case("accept")
            && header
                .value
                .windows(OPEN.len())
                .any(|part| part.eq_ignore_ascii_case(OPEN))
    });
    Some(Ok(if takes_open {
        Format::OpenMetrics
    } else {
        Format::Prometheus
    }))
}

/// Whoever names it takes it: Prometheus and its kin name it first.
const OPEN: &[u8] = b"application/openmetrics-text";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_path_and_one_method_have_an_answer() {
        for (head, expected) in [
            (
                "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
                Some(Ok(Format::Prometheus)),
            ),
            ("GET /metrics?a=b HTTP/1.0\r\n\r\n", Some(Ok(Format::Prometheus))),
            (
                "GET /metrics HTTP/1.1\r\naccept: Application/OpenMetrics-text;version=1.0.0,*/*;q=0.1\r\n\r\n",
                Some(Ok(Format::OpenMetrics)),
            ),
            ("GET /metrics HTTP/1.1\r\n", None),
            ("", None),
            (
                "HEAD /metrics HTTP/1.1\r\n\r\n",
                Some(Err("405 Method Not Allowed")),
            ),
            ("GET / HTTP/1.1\r\n\r\n", Some(Err("404 Not Found"))),
            ("GET /metrics/../x HTTP/1.1\r\n\r\n", Some(Err("404 Not Found"))),
            ("\u{1b}[2J", Some(Err("400 Bad Request"))),
        ] {
            assert_eq!(asked(head.as_bytes()), expected, "{head:?}");
        }
        let many = "a: b\r\n".repeat(MAX_HEADERS + 1);
        let refusal = asked(format!("GET /metrics HTTP/1.1\r\n{many}\r\n").as_bytes());
        assert_eq!(refusal, Some(Err("431 Request Header Fields Too Large")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_awaited(bytes: Vec<u8>) {
            prop_assert!(!matches!(asked(&bytes), Some(Ok(_))));
        }
    }
}
