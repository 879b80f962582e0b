//! Processes too short for a poller.

use std::env;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand, ValueEnum};

use crate::child::Child;

#[derive(Subcommand)]
pub enum Workload {
    /// Start one short process after the other
    ///
    /// Processes: COUNT and itself. Peak: the footprint, plus at most 64 KiB of kernel memory for each process that is gone
    /// but not yet given back.
    ShortProcesses(ShortProcesses),
    /// Do nothing
    Noop,
}

#[derive(Args)]
pub struct ShortProcesses {
    /// How many
    #[arg(long, default_value_t = 1000)]
    count: usize,
    /// How they begin
    #[arg(long, value_enum, default_value = "fork")]
    by: Start,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Start {
    /// By fork alone
    Fork,
    /// By fork and exec of this program as `noop`
    Exec,
}

impl Workload {
    pub fn run(&self) -> Result<()> {
        match self {
            Self::ShortProcesses(args) => (0..args.count).try_for_each(|_| args.by.one()),
            Self::Noop => Ok(()),
        }
    }
}

impl Start {
    fn one(self) -> Result<()> {
        match self {
            Self::Fork => Child::fork(|| Ok(()))?.wait(),
            Self::Exec => {
                let program = env::current_exe().context("own path")?;
                let status = Command::new(&program).arg("noop").status().context("exec")?;
                ensure!(status.success(), "noop: {status}");
                Ok(())
            }
        }
    }
}
