//! Signals that are meant for the command of `run`, or that end `attach`.

use anyhow::Context;
use nix::sys::{
    signal::{SigHandler, SigSet, SigmaskHow, Signal, signal},
    signalfd::{SfdFlags, SignalFd, siginfo},
};
use tokio::io::unix::AsyncFd;

use crate::error::Error;

/// Signals that ask a program to end, or to do what it has agreed upon. Stopping and continuing stay as they are: the
/// terminal sends them to the command too.
const PASSED: [Signal; 7] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
];

/// These signals no longer act on sw-bpf; they are read here.
pub struct Signals {
    fd: AsyncFd<SignalFd>,
    inherited: Inherited,
}

/// How signals were met when sw-bpf was started: what its command is to be started with.
#[derive(Clone, Copy)]
pub struct Inherited {
    blocked: SigSet,
    at_file_limit: SigHandler,
}

impl Inherited {
    /// Meets them so again. Safe between fork and exec: it does nothing but sigaction(2) and sigprocmask(2).
    pub fn restore(&self) -> std::io::Result<()> {
        // SAFETY: a process that was just started had no handlers: the signal was either ignored or not.
        unsafe { signal(Signal::SIGXFSZ, self.at_file_limit) }?;
        Ok(self.blocked.thread_set_mask()?)
    }
}

/// From here on, a file that would grow beyond `ulimit -f` is a failed write, as one on a full disk is, not a death.
pub fn survive_file_limit() -> Result<SigHandler, Error> {
    // SAFETY: no handler is installed.
    Ok(unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.context("ignore a signal")?)
}

impl Signals {
    /// Takes them over.
    pub fn catch() -> Result<Self, Error> {
        let set: SigSet = PASSED.into_iter().collect();
        let at_file_limit = survive_file_limit()?;
        let blocked = set
            .thread_swap_mask(SigmaskHow::SIG_BLOCK)
            .context("block signals")?;
        let fd = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .context("open a signalfd")?;
        // SAFETY: a `SignalFd` keeps the same open file description until it is dropped.
        let fd = unsafe { AsyncFd::register(fd) }.context("watch the signalfd")?;
        let inherited = Inherited {
            blocked,
            at_file_limit,
        };
        Ok(Self { fd, inherited })
    }

    /// How they were met before.
    pub fn inherited(&self) -> Inherited {
        self.inherited
    }

    /// The next one.
    pub async fn next(&self) -> std::io::Result<siginfo> {
        loop {
            let mut ready = self.fd.readable().await?;
            match ready.get_inner().read_signal()? {
                Some(info) => return Ok(info),
                None => ready.clear_ready(),
            }
        }
    }
}

/// Whether a process sent it. One that the terminal sent has reached the command as well, which is of the same group.
pub fn is_from_process(info: &siginfo) -> bool {
    info.ssi_code != libc::SI_KERNEL
}
