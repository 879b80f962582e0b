//! A process of sw-bpf that stays in the step of a job, where sw-bpf itself has left it.
//!
//! On version 2 Slurm signals and ends a step by the processes in its cgroup. Of one that has left, it would wait for the end in
//! vain, and take the node out of service. So a process stays there that does nothing; what ends it is meant for sw-bpf. It is
//! made outside and then moved, so that next to nothing of it is charged to the job.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::sys::signal::SigSet;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getppid, kill_process, pidfd_open, set_parent_process_death_signal,
    waitpid,
};
use tokio::io::unix::AsyncFd;

/// One that is there. It ends with this value, and with the process that has it.
pub struct StandIn {
    pid: Pid,
    end: AsyncFd<OwnedFd>,
}

impl StandIn {
    /// Places one in the cgroup at `dir`.
    pub fn place(dir: &Path) -> io::Result<Self> {
        let mut procs = OpenOptions::new().write(true).open(dir.join("cgroup.procs"))?;
        let parent = rustix::process::getpid();
        // SAFETY: this process has one thread, and the child does nothing but system calls.
        let pid = match unsafe { libc::fork() } {
            0 => stay(parent),
            pid => Pid::from_raw(pid.max(0)).ok_or_else(io::Error::last_os_error)?,
        };
        let placed = pidfd_open(pid, PidfdFlags::empty())
            .map_err(io::Error::from)
            // SAFETY: an `OwnedFd` keeps the same open file description until it is dropped.
            .and_then(|end| unsafe { AsyncFd::register(end) }.map_err(io::Error::from))
            .and_then(|end| {
                procs.write_all(pid.as_raw_nonzero().to_string().as_bytes())?;
                Ok(Self { pid, end })
            });
        if placed.is_err() {
            end(pid);
        }
        placed
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until someone has ended it.
    pub async fn ended(&self) {
        // What cannot be watched has no end that could be told.
        if self.end.readable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        end(self.pid);
    }
}

/// It has not been waited for, so its number is still its own.
fn end(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
    let _ = waitpid(Some(pid), WaitOptions::empty());
}

/// Does nothing, until a signal or the end of `parent` ends it.
fn stay(parent: Pid) -> ! {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // Whoever waits for the output's end is not to wait for this one. SAFETY: nothing here uses a file any more.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    let _ = SigSet::empty().thread_set_mask();
    while getppid() == Some(parent) {
        nix::unistd::pause();
    }
    // SAFETY: it ends at once.
    unsafe { libc::_exit(0) }
}
