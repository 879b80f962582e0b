//! Memory that several processes have, or could have.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use rustix::fs::{MemfdFlags, fstatfs, memfd_create};

use crate::child::Family;
use crate::file::Scratch;
use crate::hold::Held;
use crate::mapping::Mapping;
use crate::size::Size;

#[derive(Subcommand)]
pub enum Workload {
    /// Touch shared anonymous memory
    ///
    /// Peak: SIZE, all of it shmem, plus footprint and page tables.
    SharedAnon(Held),
    /// Touch a memfd through a mapping
    ///
    /// Peak: SIZE, all of it shmem, plus footprint and page tables.
    Memfd(Held),
    /// Write a file on a tmpfs
    ///
    /// Peak: SIZE, all of it shmem, plus footprint.
    Tmpfs(Tmpfs),
    /// Touch private memory, fork children, let each write to a part of it
    ///
    /// Peak: SIZE + CHILDREN x WRITE, plus page tables and footprint for each process.
    Cow(Cow),
    /// Touch private memory, fork children, let each read all of it
    ///
    /// Peak: SIZE once, plus page tables and footprint for each process.
    SharedReaders(SharedReaders),
}

#[derive(Args)]
pub struct Tmpfs {
    #[command(flatten)]
    held: Held,
    /// File to make, on a tmpfs
    #[arg(long)]
    path: PathBuf,
    /// Leave the file behind, and with it the memory
    #[arg(long)]
    keep: bool,
}

#[derive(Args)]
pub struct Cow {
    #[command(flatten)]
    held: Held,
    /// Number of children
    #[arg(long, default_value_t = 1)]
    children: usize,
    /// How much each child writes, at most SIZE
    #[arg(long)]
    write: Size,
}

#[derive(Args)]
pub struct SharedReaders {
    #[command(flatten)]
    held: Held,
    /// Number of children
    #[arg(long, default_value_t = 4)]
    children: usize,
}

impl Workload {
    pub fn run(&self) -> Result<()> {
        match self {
            Self::SharedAnon(args) => touch_and_hold(Mapping::shared(args.size)?, args),
            Self::Memfd(args) => memfd(args),
            Self::Tmpfs(args) => args.run(),
            Self::Cow(args) => args.run(),
            Self::SharedReaders(args) => args.run(),
        }
    }
}

fn memfd(held: &Held) -> Result<()> {
    let file = File::from(memfd_create("workload", MemfdFlags::CLOEXEC).context("memfd_create")?);
    file.set_len(held.size.0 as u64)
        .context("ftruncate of the memfd")?;
    touch_and_hold(Mapping::file(&file, held.size)?, held)
}

fn touch_and_hold(mut memory: Mapping, held: &Held) -> Result<()> {
    memory.touch();
    held.hold.hold()?;
    memory.unmap()
}

impl Tmpfs {
    fn run(&self) -> Result<()> {
        let mut file = Scratch::create(&self.path)?;
        let kind = fstatfs(&file.file).context("fstatfs")?.f_type;
        ensure!(
            kind == libc::TMPFS_MAGIC,
            "{} is not on a tmpfs",
            self.path.display()
        );
        file.write(self.held.size)?;
        self.held.hold.hold()?;
        if self.keep {
            file.keep();
            return Ok(());
        }
        file.remove()
    }
}

impl Cow {
    fn run(&self) -> Result<()> {
        let Held { size, hold } = &self.held;
        ensure!(self.write <= *size, "--write is at most --size");
        let mut memory = Mapping::private(*size)?;
        memory.touch();
        let family = Family::gather(self.children, || {
            memory.touch_first(self.write);
            Ok(())
        })?;
        hold.hold()?;
        family.dismiss()?;
        memory.unmap()
    }
}

impl SharedReaders {
    fn run(&self) -> Result<()> {
        let Held { size, hold } = &self.held;
        let mut memory = Mapping::private(*size)?;
        memory.touch();
        let family = Family::gather(self.children, || {
            memory.read();
            Ok(())
        })?;
        hold.hold()?;
        family.dismiss()?;
        memory.unmap()
    }
}
