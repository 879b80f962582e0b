//! Files on disk: page cache, which the kernel can hand back at any moment and which is not needed memory.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};

use crate::hold::Held;
use crate::mapping::Mapping;
use crate::size::Size;

#[derive(Subcommand)]
pub enum Workload {
    /// Write a file and read it back through the page cache
    ///
    /// Peak: the footprint, plus at most 1/32 of SIZE of kernel memory that a file system keeps for its cached pages.
    FileRead(OnDisk),
    /// Write a file and read all of it through a mapping, under a limit that may be lower
    ///
    /// Peak: the footprint and page tables, plus at most 1/32 of what is cached at once.
    FileMap(OnDisk),
}

#[derive(Args)]
pub struct OnDisk {
    /// File to make, not on a tmpfs; it is removed at the end
    #[arg(long)]
    path: PathBuf,
    #[command(flatten)]
    held: Held,
}

impl Workload {
    pub fn run(&self) -> Result<()> {
        match self {
            Self::FileRead(args) => args.read(),
            Self::FileMap(args) => args.map(),
        }
    }
}

impl OnDisk {
    fn read(&self) -> Result<()> {
        let mut file = Scratch::create(&self.path)?;
        file.write(self.held.size)?;
        file.read(self.held.size)?;
        self.held.hold.hold()?;
        file.remove()
    }

    fn map(&self) -> Result<()> {
        let mut file = Scratch::create(&self.path)?;
        file.write(self.held.size)?;
        let memory = Mapping::file(&file.file, self.held.size)?;
        memory.read();
        self.held.hold.hold()?;
        memory.unmap()?;
        file.remove()
    }
}

/// A file that was not there before and is gone afterwards, also where a workload fails.
pub struct Scratch {
    pub file: File,
    path: Option<PathBuf>,
}

impl Scratch {
    pub fn create(path: &Path) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path);
        let file = file.with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self {
            file,
            path: Some(path.to_owned()),
        })
    }

    pub fn write(&mut self, size: Size) -> Result<()> {
        static BLOCK: [u8; 16 << 10] = [1; 16 << 10];
        let mut left = size.0;
        while left > 0 {
            let part = left.min(BLOCK.len());
            self.file.write_all(&BLOCK[..part]).context("write")?;
            left -= part;
        }
        Ok(())
    }

    fn read(&mut self, size: Size) -> Result<()> {
        let mut block = [0; 16 << 10];
        self.file.rewind().context("seek")?;
        let mut total = 0;
        loop {
            let read = self.file.read(&mut block).context("read")?;
            if read == 0 {
                break;
            }
            total += read;
        }
        ensure!(total == size.0, "read {total} of {size}");
        Ok(())
    }

    /// Leaves it behind.
    pub fn keep(mut self) {
        self.path = None;
    }

    pub fn remove(mut self) -> Result<()> {
        let path = self.path.take().context("the file is gone")?;
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(path) = &self.path
            && let Err(error) = fs::remove_file(path)
        {
            eprintln!("workload: cannot remove {}: {error}", path.display());
        }
    }
}
