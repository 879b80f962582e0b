//! Child processes without a new program, whose failures reach the parent.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};

use anyhow::{Context, Result, anyhow, ensure};
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, waitpid};

/// A forked copy of this process.
pub struct Child(Pid);

impl Child {
    /// Forks; the child does `work` and ends. Only for use while this process has one thread.
    pub fn fork(work: impl FnOnce() -> Result<()>) -> Result<Self> {
        // SAFETY: with one thread no lock can be held by a thread that the child lacks.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // A parent that is killed must leave nobody behind.
            let done = set_parent_process_death_signal(Some(Signal::KILL))
                .context("prctl")
                .and_then(|()| work());
            if let Err(error) = &done {
                eprintln!("workload: child: {error:#}");
            }
            // SAFETY: ends the process; handlers and buffers are the parent's.
            unsafe { libc::_exit(i32::from(done.is_err())) };
        }
        Pid::from_raw(pid.max(0))
            .map(Self)
            .ok_or_else(|| anyhow!(std::io::Error::last_os_error()).context("fork"))
    }

    /// Waits for its end; an error if it failed.
    pub fn wait(self) -> Result<()> {
        let (_, status) = waitpid(Some(self.0), WaitOptions::empty())
            .context("waitpid")?
            .context("no child")?;
        ensure!(
            status.exit_status() == Some(0),
            "child {} failed: {status:?}",
            self.0.as_raw_nonzero()
        );
        Ok(())
    }
}

/// Children that do their work, all stay, and end together.
pub struct Family(Vec<Member>);

struct Member {
    child: Child,
    done: PipeReader,
    leave: PipeWriter,
}

impl Family {
    /// Forks `count` children; when this returns, each has done `work` and waits with all that it has.
    pub fn gather(count: usize, mut work: impl FnMut() -> Result<()>) -> Result<Self> {
        let mut family = Self(Vec::with_capacity(count));
        for _ in 0..count {
            family.0.push(Member::fork(&mut work)?);
        }
        for member in &mut family.0 {
            // A dead child's end of the pipe is closed, which ends the wait as well.
            member
                .done
                .read_exact(&mut [0])
                .context("a child ended before its work was done")?;
        }
        Ok(family)
    }

    /// Lets all of them end.
    pub fn dismiss(self) -> Result<()> {
        for mut member in self.0 {
            member.leave.write_all(&[0]).context("pipe to a child")?;
            member.child.wait()?;
        }
        Ok(())
    }
}

impl Member {
    fn fork(work: impl FnOnce() -> Result<()>) -> Result<Self> {
        let (done, mut tell_done) = pipe().context("pipe")?;
        let (mut await_leave, leave) = pipe().context("pipe")?;
        let child = Child::fork(move || {
            work()?;
            tell_done.write_all(&[0]).context("pipe to the parent")?;
            await_leave.read_exact(&mut [0]).context("pipe from the parent")
        })?;
        Ok(Self { child, done, leave })
    }
}
