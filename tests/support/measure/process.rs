//! A program that runs while the test talks to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use swbpf::job::cgroup::OwnCgroup;

use super::{PATIENCE, program};
use crate::pace::scaled;

/// A program that runs, its standard input and output in the hands of the test. Dropped, it is ended.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a command; where its standard error goes is the caller's choice.
    ///
    /// # Panics
    ///
    /// Where it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, stdin, stdout }
    }

    /// Starts a workload inside a cgroup.
    ///
    /// # Panics
    ///
    /// Where it cannot be started.
    #[must_use]
    pub fn workload_in(own: &OwnCgroup, arguments: &[&str]) -> Self {
        let files = own.join_files().expect("the files to join by");
        let mut command = Command::new(program("workload"));
        command.args(arguments);
        // SAFETY: joining does nothing but write(2).
        unsafe { command.pre_exec(move || files.join()) };
        Self::start(&mut command)
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line of its output.
    ///
    /// # Panics
    ///
    /// Where its output has ended.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line of text");
        assert!(!line.is_empty(), "the output has ended");
        line.trim_end().to_owned()
    }

    /// Waits until a workload has all that it is to hold.
    ///
    /// # Panics
    ///
    /// Where it says anything else.
    pub fn ready(&mut self) {
        assert_eq!(self.line(), "READY");
    }

    /// Sends a line, for which a workload waits before each of its steps.
    ///
    /// # Panics
    ///
    /// Where it no longer reads.
    pub fn step(&mut self) {
        let stdin = self.stdin.as_mut().expect("not let go yet");
        stdin.write_all(b"\n").expect("a reader");
    }

    /// Ends its standard input, at which a workload gives back what it holds.
    pub fn let_go(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end, and gives what it wrote until then.
    ///
    /// # Panics
    ///
    /// Where it does not end.
    pub fn finish(&mut self) -> (ExitStatus, String) {
        self.let_go();
        let status = self.ended_within(scaled(PATIENCE)).expect("the program ends");
        let mut output = String::new();
        self.stdout.read_to_string(&mut output).expect("text");
        (status, output)
    }

    fn ended_within(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("a child of this process") {
                return Some(status);
            }
            sleep(Duration::from_millis(2));
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        if let (Some(pid), Ok(None)) = (pid, self.child.try_wait()) {
            // `sw-bpf run` hands it on to its command, and removes its cgroup.
            let _ = kill_process(pid, Signal::TERM);
            if self.ended_within(scaled(Duration::from_secs(5))).is_none() {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
    }
}
