//! Cgroups for the loads to run in, all below one of our own.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use swbpf::job::cgroup::{Hierarchies, OwnCgroup, Version};

use crate::interrupt::Interrupt;

/// The parent of all, and with it they go.
pub struct Cgroups {
    own: OwnCgroup,
    made: usize,
}

/// Cgroups to track, and the last of them to run in.
pub struct Place {
    /// What the kernel calls them.
    pub ids: Vec<u64>,
    procs: PathBuf,
}

impl Cgroups {
    /// Makes the parent.
    pub fn create(hierarchies: &Hierarchies) -> Result<Self> {
        let own = OwnCgroup::create(hierarchies)?;
        if own.cgroup().version() == Version::V2 {
            let file = own.cgroup().path().join("cgroup.subtree_control");
            fs::write(&file, "+memory").with_context(|| format!("write {}", file.display()))?;
        }
        Ok(Self { own, made: 0 })
    }

    /// Makes `count` more.
    pub fn add(&mut self, count: usize, interrupt: &Interrupt) -> Result<Place> {
        let mut ids = Vec::with_capacity(count);
        let mut last = PathBuf::new();
        for number in self.made..self.made + count {
            interrupt.check()?;
            last = self.own.cgroup().path().join(number.to_string());
            let id = fs::create_dir(&last).and_then(|()| fs::metadata(&last));
            ids.push(id.with_context(|| format!("make {}", last.display()))?.ino());
        }
        self.made += count;
        Ok(Place {
            ids,
            procs: last.join("cgroup.procs"),
        })
    }

    /// Removes them all.
    pub fn remove(mut self) -> Result<()> {
        self.own.remove().context("remove the cgroups")
    }
}

impl Place {
    /// Has `command` move itself in before it executes.
    pub fn enter(&self, command: &mut Command) -> Result<()> {
        let procs = OpenOptions::new().write(true).open(&self.procs);
        let procs = procs.with_context(|| format!("open {}", self.procs.display()))?;
        let join = move || rustix::io::write(&procs, b"0").map(drop).map_err(io::Error::from);
        // SAFETY: between fork and exec it does nothing but write(2).
        unsafe { command.pre_exec(join) };
        Ok(())
    }
}
