//! Signals that are meant for the command of `run`, or that end `attach`.

use anyhow::Context;
use nix::sys::{
    signal::{SigSet, SigmaskHow, Signal},
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
    before: SigSet,
}

impl Signals {
    /// Takes them over.
    pub fn catch() -> Result<Self, Error> {
        let set: SigSet = PASSED.into_iter().collect();
        let before = set
            .thread_swap_mask(SigmaskHow::SIG_BLOCK)
            .context("block signals")?;
        let fd = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .context("open a signalfd")?;
        // SAFETY: a `SignalFd` keeps the same open file description until it is dropped.
        let fd = unsafe { AsyncFd::register(fd) }.context("watch the signalfd")?;
        Ok(Self { fd, before })
    }

    /// The signals that were blocked before: those that a command is to be started with.
    pub fn mask_before(&self) -> SigSet {
        self.before
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
