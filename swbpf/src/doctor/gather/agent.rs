//! Asks whoever listens at the path of the agent's socket.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::FileTypeExt,
    path::Path,
    time::Duration,
};

use serde::de::IgnoredAny;
use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::UnixStream,
    time::timeout,
};

use super::cannot_read;
use crate::doctor::facts::{Agent, Known, Met};
use crate::wire::{self, Answer, Ask, Misread, Reason, Request, Target};

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longest answer, bytes: a refusal is one short line.
const MAX_ANSWER: u64 = 64 << 10;

/// Who is met at `socket`.
pub async fn agent(socket: &Path) -> Agent {
    let met = timeout(PATIENCE, met(socket)).await;
    Agent {
        socket: socket.to_owned(),
        met: met.unwrap_or(Ok(Met::Silent)),
    }
}

async fn met(socket: &Path) -> Known<Met> {
    let cannot = |error: &io::Error| cannot_read(&socket.to_string_lossy(), error);
    match fs::metadata(socket) {
        Ok(found) if found.file_type().is_socket() => {}
        Ok(_) => return Ok(Met::NoSocket),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Met::Nothing),
        Err(error) => return Err(cannot(&error)),
    }
    let stream = match UnixStream::connect(socket).await {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(Met::Nobody),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Met::Nothing),
        Err(error) => return Err(cannot(&error)),
    };
    // One that breaks off, or talks without an end, is no agent that this sw-bpf understands.
    Ok(ask(stream).await.unwrap_or(Met::Odd))
}

/// Asks for a job that there is not: no cgroup has this id.
async fn ask(mut stream: UnixStream) -> io::Result<Met> {
    let request = Request::new(Ask::Once {
        target: Target::CgroupId(0),
        window_seconds: None,
    });
    stream.write_all(&wire::line(&request)?).await?;
    let line = wire::next_line(&mut BufReader::new(stream), MAX_ANSWER).await?;
    Ok(understood(&line.unwrap_or_default()))
}

/// What an answer says of who gave it.
fn understood(line: &[u8]) -> Met {
    match Answer::<IgnoredAny>::parse(line) {
        Ok(Answer {
            refused: Some(refusal),
            ..
        }) => match refusal.reason {
            Reason::Version | Reason::Malformed => Met::OtherVersion,
            _ => Met::Agent,
        },
        Ok(Answer {
            snapshot: Some(_), ..
        }) => Met::Agent,
        Err(Misread::Version(_)) => Met::OtherVersion,
        Ok(_) | Err(Misread::Form(_) | Misread::Nothing) => Met::Odd,
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn what_is_no_listener_is_told_apart() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x");
        let met = async || agent(&path).await.met;
        assert_eq!(met().await, Ok(Met::Nothing));
        fs::write(&path, "").expect("a file");
        assert_eq!(met().await, Ok(Met::NoSocket));
        fs::remove_file(&path).expect("gone");
        drop(UnixListener::bind(&path).expect("a socket"));
        assert_eq!(met().await, Ok(Met::Nobody));
        let below = agent(&path.join("y")).await.met;
        assert!(below.is_err_and(|reason| reason.contains("x/y")));
    }

    /// Who is met where each connection has `answer`, and nothing behind it.
    async fn answered(answer: &[u8]) -> Known<Met> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x");
        let listener = UnixListener::bind(&path).expect("a socket");
        let serve = async {
            let (stream, _) = listener.accept().await.expect("a client");
            let mut stream = BufReader::new(stream);
            let request = wire::next_line(&mut stream, wire::MAX_REQUEST).await;
            let request = request.expect("a line").expect("a request");
            assert_eq!(request, br#"{"version":1,"ask":"once","cgroup_id":0}"#);
            // A client that has heard enough is gone.
            let _ = stream.write_all(answer).await;
        };
        let (agent, ()) = tokio::join!(agent(&path), serve);
        agent.met
    }

    #[tokio::test]
    async fn an_agent_is_told_by_its_answer() {
        let refused = |reason: &str| {
            format!(r#"{{"version":1,"refused":{{"reason":"{reason}","message":"m"}}}}"#) + "\n"
        };
        for (answer, met) in [
            (refused("absent"), Met::Agent),
            (refused("busy"), Met::Agent),
            (refused("something_new"), Met::Agent),
            (refused("version"), Met::OtherVersion),
            (refused("malformed"), Met::OtherVersion),
            ("{\"version\":2,\"new\":[]}\n".to_owned(), Met::OtherVersion),
            ("{\"version\":1}\n".to_owned(), Met::Odd),
            ("{\"version\":-1}\n".to_owned(), Met::Odd),
            ("HTTP/1.1 400 Bad Request\r\n\r\n".to_owned(), Met::Odd),
            (refused("absent").trim_end().to_owned(), Met::Odd),
            (String::new(), Met::Odd),
            ("x".repeat(1 << 20), Met::Odd),
        ] {
            assert_eq!(answered(answer.as_bytes()).await, Ok(met), "{answer:.60}");
        }
    }

    #[tokio::test]
    async fn who_says_nothing_is_not_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x");
        let _listener = UnixListener::bind(&path).expect("a socket");
        let begin = std::time::Instant::now();
        assert_eq!(agent(&path).await.met, Ok(Met::Silent));
        assert!(begin.elapsed() >= PATIENCE);
    }
}
