//! A process of sw-bpf that may do one thing alone: switch the kernel's statistics of programs on, which wants `CAP_SYS_ADMIN`.
//! The process that made it can then give that up.

use std::{
    io::{self, Read, Write},
    os::{fd::AsRawFd, unix::net::UnixStream},
    time::Duration,
};

use aya::sys::{Stats, enable_stats};
use rustix::thread::{CapabilitySet, set_name};

use crate::verb::privilege;

/// Longest wait for its answer: it has to patch the kernel's text, which takes about a millisecond.
const ANSWER: Duration = Duration::from_secs(1);
/// What is said to it, and what it answers: a change of the switch.
const CHANGE: [u8; 1] = [0];

/// One that is there. It ends with this value, and with the process that has it.
#[derive(Debug)]
pub struct Helper(UnixStream);

/// Statistics are on while it is there.
#[derive(Debug)]
pub struct On(UnixStream);

impl Helper {
    /// Makes one. This process has one thread.
    pub fn start() -> io::Result<Self> {
        let (here, there) = UnixStream::pair()?;
        here.set_read_timeout(Some(ANSWER))?;
        // SAFETY: this process has one thread, and the child uses nothing of it but one descriptor.
        match unsafe { libc::fork() } {
            0 => serve(&there),
            pid if pid < 0 => Err(io::Error::last_os_error()),
            _ => Ok(Self(here)),
        }
    }

    /// Switches statistics on. Once that has failed, it fails for ever.
    pub fn switch_on(&self) -> io::Result<On> {
        let mut stream = self.0.try_clone()?;
        let answered = stream
            .write_all(&CHANGE)
            .and_then(|()| stream.read_exact(&mut [0; CHANGE.len()]));
        if let Err(error) = answered {
            // Its answer may come late, and statistics would stay on.
            let _ = stream.shutdown(std::net::Shutdown::Both);
            return Err(error);
        }
        Ok(On(stream))
    }
}

impl Drop for On {
    fn drop(&mut self) {
        // It has ended, and so are the statistics.
        let _ = self.0.write_all(&CHANGE);
    }
}

/// Switches on and off, until nobody is left who would ask.
fn serve(stream: &UnixStream) -> ! {
    let _ = confine(stream).and_then(answer);
    // SAFETY: it ends at once.
    unsafe { libc::_exit(0) }
}

fn answer(mut stream: UnixStream) -> io::Result<()> {
    let mut change = CHANGE;
    while stream.read_exact(&mut change).is_ok() {
        let _on = enable_stats(Stats::RunTime).map_err(io::Error::other)?;
        stream.write_all(&change)?;
        stream.read_exact(&mut change)?;
    }
    Ok(())
}

/// Keeps of all that this process has the stream and one capability.
fn confine(stream: &UnixStream) -> io::Result<UnixStream> {
    // SAFETY: nothing here uses any other file again, and nothing owns the descriptor 0 of this process.
    let stream = unsafe {
        if libc::dup2(stream.as_raw_fd(), 0) < 0
            || libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0) < 0
        {
            return Err(io::Error::last_os_error());
        }
        std::os::fd::FromRawFd::from_raw_fd(0)
    };
    set_name(c"sw-bpf-timer")?;
    privilege::keep_only(CapabilitySet::SYS_ADMIN)?;
    Ok(stream)
}
