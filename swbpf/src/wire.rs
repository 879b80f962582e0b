//! What the agent and its clients say to each other: one JSON object a line, one request on a connection.
//!
//! `{"version":1,"ask":"once","job":"123"}` has the answer `{"version":1,"snapshot":{…}}`. Keys that are not known are ignored;
//! a key that changes its meaning raises the version.

use std::io;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use crate::snapshot::{Entry, JobState, Listing, Snapshot};

/// Version of what is said.
pub const VERSION: u32 = 1;
/// Longest request, bytes, its newline among them.
pub const MAX_REQUEST: u64 = 4096;
/// Longest answer, bytes, its newline among them: a job of thousands of steps has some megabytes.
pub const MAX_ANSWER: u64 = 64 << 20;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`].
    pub version: u32,
    /// What it is.
    #[serde(flatten)]
    pub ask: Ask,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// How is this job now? One [`Answer::snapshot`].
    Once {
        /// The job.
        #[serde(flatten)]
        target: Target,
        /// Over how long; without it, over the last second or two, at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window_seconds: Option<f64>,
    },
    /// How was this job until now? One [`Answer::snapshot`] of all since its begin.
    Whole {
        /// The job.
        #[serde(flatten)]
        target: Target,
    },
    /// What does the record of a job say? One [`Answer::shown`].
    Show {
        /// The job, as `sw-bpf show` takes it.
        job: String,
        /// Which run of it on this host, 0 the latest.
        #[serde(default)]
        run: u32,
    },
    /// Which records are there? One [`Answer::listing`].
    List {
        /// Those that cover this moment, or a later one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        /// Those of this user, by name or number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        /// Those in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<JobState>,
    },
    /// How does this job go on? One [`Answer::snapshot`] a second, the last one its summary.
    Follow {
        /// The job.
        #[serde(flatten)]
        target: Target,
    },
}

/// A job that is being recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// By its id, as Slurm writes it.
    Job(String),
    /// By the inode number of the directory of its cgroup.
    CgroupId(u64),
}

/// One line of an answer: one of its parts is there, beside the version. `S` is a snapshot and `E` an entry of a list, as they
/// are written or read.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer<S, E = Entry> {
    /// [`VERSION`].
    pub version: u32,
    /// A snapshot, as `--once --json` prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<S>,
    /// A record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<Shown>,
    /// Which records there are, as `list --json` prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listing: Option<Listing<E>>,
    /// There is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
}

/// What a record says.
#[derive(Debug, Serialize, Deserialize)]
pub struct Shown {
    /// Name of its file.
    pub record: String,
    /// Its last whole line.
    pub snapshot: Snapshot,
    /// What of the file behind that line is left out, in words.
    pub note: Option<String>,
}

impl<S, E> Default for Answer<S, E> {
    fn default() -> Self {
        Self {
            version: VERSION,
            snapshot: None,
            shown: None,
            listing: None,
            refused: None,
        }
    }
}

impl<S> Answer<S> {
    /// A snapshot.
    pub fn snapshot(snapshot: S) -> Self {
        Self {
            snapshot: Some(snapshot),
            ..Self::default()
        }
    }

    /// A refusal.
    pub fn refused(refusal: Refusal) -> Self {
        Self {
            refused: Some(refusal),
            ..Self::default()
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The kind of reason.
    pub reason: Reason,
    /// In words, and what to do.
    pub message: String,
    /// What is meant, where that is several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
}

/// The kind of reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// There is no such job, or none that the client may see: which of the two is not told.
    Absent,
    /// Several jobs are meant.
    Several,
    /// The client has too many connections, or all clients together have.
    Busy,
    /// The request is not understood.
    Malformed,
    /// The agent speaks another version.
    Version,
    /// The agent could not find out.
    Failed,
    /// A kind of reason that this version does not know.
    #[serde(other)]
    Other,
}

impl Refusal {
    /// With these words.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            candidates: Vec::new(),
        }
    }
}

impl Request {
    /// In this version.
    pub fn new(ask: Ask) -> Self {
        Self {
            version: VERSION,
            ask,
        }
    }

    /// Reads one; what is not understood is told in words.
    pub fn parse(line: &[u8]) -> Result<Self, Refusal> {
        let malformed = |error: serde_json::Error| {
            Refusal::new(
                Reason::Malformed,
                format!("the request is not understood: {error}: docs/agent.md has the requests"),
            )
        };
        if version(line).map_err(malformed)? != VERSION {
            return Err(Refusal::new(
                Reason::Version,
                format!("this agent speaks version {VERSION}: use the sw-bpf that it was started from"),
            ));
        }
        serde_json::from_slice(line).map_err(malformed)
    }
}

impl<S> Answer<S> {
    /// Reads one.
    pub fn parse<'a>(line: &'a [u8]) -> Result<Self, Misread>
    where
        S: Deserialize<'a>,
    {
        let version = version(line)?;
        if version != VERSION {
            return Err(Misread::Version(version));
        }
        Ok(serde_json::from_slice(line)?)
    }
}

/// Why an answer is not understood.
#[derive(Debug, thiserror::Error)]
pub enum Misread {
    /// It is of another version.
    #[error(
        "it speaks version {0}, and this sw-bpf version {VERSION}: restart the agent with this one, or use the one that it was \
         started from"
    )]
    Version(u32),
    /// It has nothing of what was asked for.
    #[error(
        "its answer has nothing that this sw-bpf knows: restart the agent with this one, or use the one that it was started from"
    )]
    Nothing,
    /// It has another form.
    #[error(
        "its answer has another form ({0}): restart the agent with this sw-bpf, or use the one that it was started from"
    )]
    Form(#[from] serde_json::Error),
}

/// The version of what is said in a line, whatever else it has.
fn version(line: &[u8]) -> serde_json::Result<u32> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    serde_json::from_slice(line).map(|Versioned { version }| version)
}

/// One line of JSON, its end among it.
pub fn line(said: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    Ok(line)
}

/// The next line, without its end; `None` where there is no more. One that is longer than `max` bytes, or has no end, is an
/// error.
pub async fn next_line(reader: &mut (impl AsyncBufRead + Unpin), max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if reader.take(max).read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    match line.pop() {
        Some(b'\n') => Ok(Some(line)),
        _ if line.len() as u64 + 1 >= max => {
            Err(io::Error::other(format!("a line is longer than {max} bytes")))
        }
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn parse(text: &str) -> Result<Ask, Reason> {
        let request = Request::parse(text.as_bytes());
        request
            .map(|request| request.ask)
            .map_err(|refusal| refusal.reason)
    }

    #[test]
    fn requests_are_read_as_they_are_documented() {
        let once = |target, window_seconds| Ask::Once {
            target,
            window_seconds,
        };
        assert_eq!(
            parse(r#"{"version":1,"ask":"once","job":"123_4"}"#),
            Ok(once(Target::Job("123_4".to_owned()), None))
        );
        assert_eq!(
            parse(r#"{"version":1,"ask":"once","cgroup_id":7,"window_seconds":0.5,"new":[]}"#),
            Ok(once(Target::CgroupId(7), Some(0.5)))
        );
        assert_eq!(
            parse(r#"{"version":1,"ask":"follow","job":"1"}"#),
            Ok(Ask::Follow {
                target: Target::Job("1".to_owned())
            })
        );
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (text, reason) in [
            ("", Reason::Malformed),
            ("{}", Reason::Malformed),
            (r#"{"version":1}"#, Reason::Malformed),
            (r#"{"version":1,"ask":"reboot"}"#, Reason::Malformed),
            (r#"{"version":1,"ask":"once"}"#, Reason::Malformed),
            (r#"{"version":2,"ask":"anything"}"#, Reason::Version),
        ] {
            assert_eq!(parse(text), Err(reason), "{text}");
        }
    }

    #[test]
    fn an_answer_of_another_version_is_told_from_one_that_is_broken() {
        let read = |text: &str| Answer::<Box<RawValue>>::parse(text.as_bytes());
        let whole = read(r#"{"version":1,"snapshot":{"a":1},"new":[]}"#).expect("an answer");
        assert_eq!(whole.snapshot.as_deref().map(RawValue::get), Some(r#"{"a":1}"#));
        for text in [
            r#"{"version":2}"#,
            r#"{"snapshot":7,"refused":"all","version":2}"#,
            r#"{"version":2,"listing":{"old":[]}}"#,
        ] {
            let misread = read(text).expect_err(text);
            assert!(matches!(misread, Misread::Version(2)), "{misread}");
            let words = misread.to_string();
            assert!(
                words.contains("version 2") && words.contains("version 1"),
                "{words}"
            );
        }
        for text in ["", "{}", r#"{"version":-1}"#, r#"{"version":1,"refused":{}}"#] {
            assert!(matches!(read(text), Err(Misread::Form(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_panics(text in ".{0,200}", bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Answer::<Box<RawValue>>::parse(text.as_bytes());
            let _ = Answer::<Box<RawValue>>::parse(&bytes);
        }

        #[test]
        fn no_request_panics(text in ".{0,200}", bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::parse(text.as_bytes());
            let _ = Request::parse(&bytes);
        }

        #[test]
        fn a_request_is_read_as_it_was_written(job in ".{0,40}", window in proptest::option::of(0..4_000_000_u32)) {
            let request = Request::new(Ask::Once {
                target: Target::Job(job),
                // Such as text has exactly.
                window_seconds: window.map(|window| f64::from(window) / 1024.0),
            });
            let line = line(&request).expect("text");
            prop_assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
            prop_assert_eq!(Request::parse(&line), Ok(request));
        }
    }

    #[tokio::test]
    async fn a_line_is_bounded_and_has_an_end() {
        let mut whole: &[u8] = b"12\n3";
        assert_eq!(next_line(&mut whole, 3).await.ok(), Some(Some(b"12".to_vec())));
        assert!(next_line(&mut whole, 3).await.is_err());
        let mut empty: &[u8] = b"";
        assert_eq!(next_line(&mut empty, 3).await.ok(), Some(None));
        let mut long: &[u8] = b"123\n";
        assert!(next_line(&mut long, 3).await.is_err());
    }
}
