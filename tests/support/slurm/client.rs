//! Programs that are run to their end within a time limit: a client of Slurm may wait for a daemon for minutes.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::pace::scaled;

/// How often it is looked.
const PAUSE: Duration = Duration::from_millis(2);

/// Most that is read of what a program writes, in bytes.
const MOST_OUTPUT: u64 = 4 << 20;

/// What a program wrote, and how it ended.
#[derive(Debug)]
pub struct Answer {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Answer {
    /// The output of a program that succeeded, without the last line end.
    ///
    /// # Panics
    ///
    /// Where it did not.
    #[must_use]
    pub fn good(self) -> String {
        assert!(
            self.status.success(),
            "{}: {}{}",
            self.status,
            self.stdout,
            self.stderr
        );
        self.stdout.trim_end_matches('\n').to_owned()
    }
}

/// Runs `command` to its end. Its standard input is empty.
///
/// # Panics
///
/// Where it cannot be started, or takes longer than `limit`, as [`scaled`]: then it is killed with all that it started.
pub fn run(command: &mut Command, limit: Duration) -> Answer {
    let mut stdout = tempfile::tempfile().expect("a temporary file");
    let mut stderr = tempfile::tempfile().expect("a temporary file");
    command
        .stdin(Stdio::null())
        .stdout(stdout.try_clone().expect("a file"))
        .stderr(stderr.try_clone().expect("a file"))
        .process_group(0);
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", command.get_program().display()));
    let status = ended_within(&mut child, limit);
    if status.is_none() {
        if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait();
    }
    let (stdout, stderr) = (text(&mut stdout), text(&mut stderr));
    let status = status.unwrap_or_else(|| panic!("{command:?} took longer than {limit:?}: {stdout}{stderr}"));
    Answer {
        status,
        stdout,
        stderr,
    }
}

/// Waits for the end of `child`, for as long as `limit`, as [`scaled`].
pub fn ended_within(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + scaled(limit);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() > deadline {
            return None;
        }
        sleep(PAUSE);
    }
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.rewind().expect("a file");
    file.take(MOST_OUTPUT).read_to_end(&mut bytes).expect("a file");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn what_a_program_writes_is_given_with_how_it_ended() {
        let answer = run(
            Command::new("sh").args(["-c", "echo a; echo b >&2; exit 3"]),
            Duration::from_secs(10),
        );
        assert_eq!(answer.status.code(), Some(3));
        assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("a\n", "b\n"));
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let dir = tempfile::tempdir().expect("a directory");
        let later = scaled(Duration::from_millis(400)).as_secs_f64();
        let script = format!("(sleep {later}; touch \"$0\") & sleep 600");
        let path = dir.path().join("outlived");
        let target = path.clone();
        let hung = catch_unwind(move || {
            run(
                Command::new("sh").args(["-c", &script]).arg(target),
                Duration::from_millis(100),
            )
        });
        assert!(hung.is_err());
        sleep(scaled(Duration::from_millis(600)));
        assert!(!path.exists());
    }
}
