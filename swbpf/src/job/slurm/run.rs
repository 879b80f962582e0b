//! One run of a program: bounded in time and in length, and nothing left of it.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};

use super::Unknown;

/// Longest answer: `scontrol` writes some 1,300 bytes a job, as JSON ten times that.
const MAX_STDOUT: u64 = 4 << 20;

/// Longest complaint.
const MAX_STDERR: u64 = 64 << 10;

/// How often it is looked whether a program has ended whose output has not.
const LOOK: Duration = Duration::from_millis(50);

/// How long the output of a program that has ended is read, where a process that it has left holds it open.
const REST: Duration = Duration::from_millis(500);

/// Longest part of a complaint that is told on.
pub(super) const MAX_TOLD: usize = 200;

/// What a program answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub stdout: Vec<u8>,
    pub stderr: String,
    status: ExitStatus,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        self.status.success()
    }

    /// Whether it says that there is no such thing. Some versions complain where others answer.
    pub fn says_there_is_none(&self) -> bool {
        self.lines().any(|line| {
            line.contains("Invalid job id") || line.starts_with("Job ") && line.ends_with(" not found")
        })
    }

    /// What is told of a run that failed.
    pub fn failure(&self, program: &'static str) -> Unknown {
        let line = self.lines().find(|line| !line.is_empty());
        let told = line.map_or_else(
            || self.status.to_string(),
            |line| line.chars().take(MAX_TOLD).collect(),
        );
        Unknown::Failed { program, told }
    }

    /// The complaint, then the beginning of the answer.
    fn lines(&self) -> impl Iterator<Item = String> {
        let begin = &self.stdout[..self.stdout.len().min(MAX_TOLD)];
        let answer = begin.split(|&byte| byte == b'\n').map(String::from_utf8_lossy);
        let complaint = self.stderr.lines().map(Into::into);
        complaint.chain(answer).map(|line| line.trim().to_owned())
    }
}

/// Runs `path` until it ends, or until `until`, which is `limit` after the beginning of what it is a part of.
pub(super) async fn run(
    program: &'static str,
    path: &Path,
    args: &[&str],
    until: Instant,
    limit: Duration,
) -> Result<Answer, Unknown> {
    let mut child = command(path, args).spawn().map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Unknown::Absent { program },
        _ => Unknown::NotExecutable {
            program,
            why: e.to_string(),
        },
    })?;
    let mut group = Group::of(&child);
    match timeout_at(until, answer(program, &mut child, group.first())).await {
        Ok(Ok(answer)) => {
            group.has_ended();
            Ok(answer)
        }
        Ok(Err(unknown)) => Err(unknown),
        Err(_) => Err(Unknown::TimedOut { program, limit }),
    }
}

/// A program in a process group of its own, without what its user set to change what it writes.
pub(super) fn command(path: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(path);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    // The user's habits would change what is written.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let is_habit = ["SQUEUE_", "SCONTROL_"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
            || ["SLURM_CLUSTERS", "SLURM_TIME_FORMAT"].contains(&text.as_ref());
        if is_habit {
            command.env_remove(name);
        }
    }
    // Slurm writes local time without its offset, and cuts lists of tasks.
    command
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .env("SLURM_BITSTR_LEN", "0");
    command
}

async fn answer(program: &'static str, child: &mut Child, first: Option<Pid>) -> Result<Answer, Unknown> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (from_stdout, from_stderr) = (child.stdout.take(), child.stderr.take());
    let output = async {
        tokio::try_join!(
            read(program, from_stdout, MAX_STDOUT, &mut stdout),
            read(program, from_stderr, MAX_STDERR, &mut stderr),
        )
    };
    tokio::select! {
        read = output => { read?; }
        () = has_left_others(first) => {}
    }
    let status = child.wait().await.map_err(|e| Unknown::Failed {
        program,
        told: e.to_string(),
    })?;
    Ok(Answer {
        stdout,
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
        status,
    })
}

/// Waits until the first process of a group has ended and its output is read, and ends those that hold it open: its id is not
/// another's until it is waited for.
pub(super) async fn has_left_others(first: Option<Pid>) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let has_ended = |first| !matches!(waitid(WaitId::Pid(first), options), Ok(None));
    while first.is_none_or(|first| !has_ended(first)) {
        sleep(LOOK).await;
    }
    sleep(REST).await;
    if let Some(group) = first {
        // What has ended cannot be ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

async fn read(
    program: &'static str,
    from: Option<impl AsyncRead + Unpin>,
    max: u64,
    bytes: &mut Vec<u8>,
) -> Result<(), Unknown> {
    if let Some(from) = from {
        let read = from.take(max + 1).read_to_end(bytes).await;
        read.map_err(|e| Unknown::Failed {
            program,
            told: e.to_string(),
        })?;
    }
    if bytes.len() as u64 > max {
        Err(Unknown::TooLong { program, max })
    } else {
        Ok(())
    }
}

/// The processes of a run, which are ended with it.
pub(super) struct Group(Option<Pid>);

impl Group {
    pub fn of(child: &Child) -> Self {
        Self(
            child
                .id()
                .and_then(|pid| i32::try_from(pid).ok())
                .and_then(Pid::from_raw),
        )
    }

    /// The first of them was waited for: its id may be another's from now on.
    pub fn has_ended(&mut self) {
        self.0 = None;
    }

    /// The id of the first of them, until that was waited for.
    pub fn first(&self) -> Option<Pid> {
        self.0
    }

    /// Sends a signal to all of them.
    pub fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // What has ended cannot be ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
