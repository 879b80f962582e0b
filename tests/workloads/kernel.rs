//! Memory that the kernel keeps on behalf of a process.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::hold::{Held, Hold, tell};
use crate::mapping::Mapping;
use crate::size::{PAGE, Size};

const PIPE_CAPACITY: usize = 64 << 10;

#[derive(Subcommand)]
pub enum Workload {
    /// Fill pipes
    ///
    /// Peak: COUNT x 64 KiB of kernel memory, plus at most 4 KiB a pipe for its own structures, plus footprint.
    Pipes(Count),
    /// Fill pairs of Unix sockets and print `payload <bytes>`
    ///
    /// Peak: that payload in kernel memory, plus at most a half for the buffers around it, plus footprint.
    Sockets(Count),
    /// Map much and read one page in each 2 MiB, so that there is nothing but page tables
    ///
    /// Peak: SIZE of page tables, which is kernel memory, plus 1/512 for the tables above them, plus footprint.
    PageTables(Held),
}

#[derive(Args)]
pub struct Count {
    /// How many
    #[arg(long)]
    count: usize,
    #[command(flatten)]
    hold: Hold,
}

impl Workload {
    pub fn run(&self) -> Result<()> {
        match self {
            Self::Pipes(args) => args.pipes(),
            Self::Sockets(args) => args.sockets(),
            Self::PageTables(args) => page_tables(args),
        }
    }
}

impl Count {
    fn pipes(&self) -> Result<()> {
        let _pipes = full_pipes(self.count)?;
        self.hold.hold()
    }

    fn sockets(&self) -> Result<()> {
        allow_open_files()?;
        let mut pairs = Vec::with_capacity(self.count);
        let mut payload = 0;
        for _ in 0..self.count {
            let (mut sender, receiver) = UnixStream::pair().context("socketpair")?;
            sender.set_nonblocking(true).context("non-blocking socket")?;
            payload += fill(&mut sender)?;
            pairs.push((sender, receiver));
        }
        tell(&format!("payload {payload}"))?;
        self.hold.hold()
    }
}

fn page_tables(held: &Held) -> Result<()> {
    let span = held.size.0.checked_mul(512).context("--size is too large")?;
    let memory = Mapping::sparse(Size(span))?;
    memory.make_page_tables();
    held.hold.hold()?;
    memory.unmap()
}

/// Pipes with 64 KiB in each.
pub fn full_pipes(count: usize) -> Result<Vec<(OwnedFd, File)>> {
    allow_open_files()?;
    (0..count).map(|_| full_pipe()).collect()
}

fn full_pipe() -> Result<(OwnedFd, File)> {
    let (reader, writer) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).context("pipe")?;
    // Past /proc/sys/fs/pipe-user-pages-soft the kernel makes smaller ones.
    fcntl_setpipe_size(&writer, PIPE_CAPACITY).context("F_SETPIPE_SZ")?;
    let mut writer = File::from(writer);
    let payload = fill(&mut writer)?;
    ensure!(
        payload == PIPE_CAPACITY,
        "a pipe took {payload} bytes, not {PIPE_CAPACITY}"
    );
    Ok((reader, writer))
}

/// Writes until nothing more goes in; how much did.
fn fill(sink: &mut impl Write) -> Result<usize> {
    const BLOCK: [u8; PAGE] = [1; PAGE];
    let mut payload = 0;
    loop {
        match sink.write(&BLOCK) {
            Ok(written) => payload += written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(payload),
            Err(error) => return Err(error).context("write"),
        }
    }
}

/// Raises the number of files that may be open as far as it may be raised.
fn allow_open_files() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("setrlimit of open files")
}
