//! A process of sw-bpf that stays in the step of a job, where sw-bpf itself has left it.
//!
//! On version 2 Slurm signals and ends a step by the processes in its cgroup. Of one that has left, it would wait for the end in
//! vain, and take the node out of service. So a process stays there that does nothing; what ends it is meant for sw-bpf. It is
//! made outside and then moved, so that next to nothing of it is charged to the job.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use nix::sys::signal::SigSet;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getppid, kill_process,
    pidfd_open, pidfd_send_signal, set_dumpable_behavior, set_parent_process_death_signal, waitid, waitpid,
};
use tokio::io::unix::AsyncFd;

/// What the kernel's choice of whom to kill for memory is not to fall on: proc(5).
const NEVER: &str = "-1000";

/// One that is there. It ends with this value, and with the process that has it.
pub struct StandIn(AsyncFd<Child>);

impl StandIn {
    /// Places one in the cgroup at `dir`.
    pub fn place(dir: &Path) -> io::Result<Self> {
        let mut procs = OpenOptions::new().write(true).open(dir.join("cgroup.procs"))?;
        let child = Child::start()?;
        let pid = child.pid.as_raw_nonzero();
        // It looks as large as sw-bpf, and its end would be that of the measurement. Where that is not allowed, it can be chosen.
        let _ = fs::write(format!("/proc/{pid}/oom_score_adj"), NEVER);
        // SAFETY: a `Child` keeps the same open file description until it is dropped.
        let child = unsafe { AsyncFd::register(child) }?;
        procs.write_all(pid.to_string().as_bytes())?;
        Ok(Self(child))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.get_ref().pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until someone has ended it.
    pub async fn ended(&self) {
        // What cannot be watched has no end that could be told.
        if self.0.readable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A process that does nothing. It is known by its descriptor: where this process was started with SIGCHLD ignored, the
/// kernel gives the number of one that has ended to another.
struct Child {
    pid: Pid,
    fd: OwnedFd,
}

impl Child {
    fn start() -> io::Result<Self> {
        let parent = rustix::process::getpid();
        // SAFETY: this process has one thread, and the child does nothing but system calls.
        let pid = match unsafe { libc::fork() } {
            0 => stay(parent),
            pid => Pid::from_raw(pid.max(0)).ok_or_else(io::Error::last_os_error)?,
        };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => Ok(Self { pid, fd }),
            Err(error) => {
                let _ = kill_process(pid, Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::empty());
                Err(error.into())
            }
        }
    }
}

impl AsRawFd for Child {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&self.fd, Signal::KILL);
        let _ = waitid(WaitId::PidFd(self.fd.as_fd()), WaitIdOptions::EXITED);
    }
}

/// Does nothing, until a signal or the end of `parent` ends it.
fn stay(parent: Pid) -> ! {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // A signal that ends it is no fault to keep an image of.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // Whoever waits for the output's end is not to wait for this one. SAFETY: nothing here uses a file any more.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    let _ = SigSet::empty().thread_set_mask();
    while getppid() == Some(parent) {
        nix::unistd::pause();
    }
    // SAFETY: it ends at once.
    unsafe { libc::_exit(0) }
}
