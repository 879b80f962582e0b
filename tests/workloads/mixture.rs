//! A composition of known parts.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::file::Scratch;
use crate::hold::Hold;
use crate::kernel::full_pipes;
use crate::mapping::Mapping;
use crate::size::Size;

#[derive(Subcommand)]
pub enum Workload {
    /// Have anonymous, shared, file and kernel memory all at once
    ///
    /// Peak: ANON + SHMEM + PIPES x 64 KiB, plus footprint, page tables of the first two, at most 4 KiB a pipe, and at most
    /// 1/32 of FILE, which itself counts in the kernel's own counter alone.
    Mixture(Mixture),
}

#[derive(Args)]
pub struct Mixture {
    /// Private anonymous memory
    #[arg(long)]
    anon: Size,
    /// Shared anonymous memory
    #[arg(long)]
    shmem: Size,
    /// Size of a file on disk
    #[arg(long)]
    file: Size,
    /// That file, not on a tmpfs; it is removed at the end
    #[arg(long)]
    path: PathBuf,
    /// Number of pipes, each full with 64 KiB
    #[arg(long)]
    pipes: usize,
    #[command(flatten)]
    hold: Hold,
}

impl Workload {
    pub fn run(&self) -> Result<()> {
        let Self::Mixture(args) = self;
        args.run()
    }
}

impl Mixture {
    fn run(&self) -> Result<()> {
        let mut file = Scratch::create(&self.path)?;
        file.write(self.file)?;
        let mut anon = Mapping::private(self.anon)?;
        anon.touch();
        let mut shmem = Mapping::shared(self.shmem)?;
        shmem.touch();
        let pipes = full_pipes(self.pipes)?;
        self.hold.hold()?;
        drop(pipes);
        shmem.unmap()?;
        anon.unmap()?;
        file.remove()
    }
}
