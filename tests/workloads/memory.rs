//! Private anonymous memory in its plain forms.

use std::mem;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, Subcommand, ValueEnum};
use rustix::mm::Advice;

use crate::hold::{Held, Hold, ready_until_stdin, tell};
use crate::mapping::{Mapping, allow_huge_pages};
use crate::size::Size;

#[derive(Subcommand)]
pub enum Workload {
    /// Touch private anonymous memory
    ///
    /// Peak: SIZE, plus footprint and page tables; with huge pages the page tables are kept in reserve all the same.
    Anon(Anon),
    /// Touch private anonymous memory, print READY, free it at a line or the end of standard input
    ///
    /// Peak: SIZE, plus footprint and page tables. It may be moved, or killed, in between.
    Hold(Amount),
    /// Touch private anonymous memory, print READY and stay until killed
    ///
    /// Peak: SIZE, plus footprint and page tables; afterwards nothing.
    Killed(Amount),
    /// Touch private anonymous memory and exit without freeing it
    ///
    /// Peak: SIZE, plus footprint and page tables; afterwards nothing.
    Leak(Amount),
    /// Climb to a size by equal steps and down again
    ///
    /// Peak: SIZE, plus footprint and page tables. Each level below it lasts twice `--step-ms`, the highest once, and as
    /// long as touching takes.
    Staircase(Staircase),
    /// Touch memory from several threads at once
    ///
    /// Peak: THREADS x `--size-each`, plus footprint, page tables and 64 KiB a thread.
    ThreadsFault(ThreadsFault),
}

#[derive(Args)]
pub struct Amount {
    /// Bytes, or with a suffix: 64K, 300M, 1G
    #[arg(long)]
    size: Size,
}

#[derive(Args)]
pub struct Anon {
    #[command(flatten)]
    held: Held,
    /// Transparent huge pages
    #[arg(long, value_enum, default_value = "never")]
    thp: HugePages,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HugePages {
    Always,
    Never,
}

#[derive(Args)]
pub struct Staircase {
    #[command(flatten)]
    amount: Amount,
    /// Number of steps
    #[arg(long, default_value_t = 8)]
    steps: usize,
    /// Milliseconds to stay on each step
    #[arg(long, default_value_t = 100)]
    step_ms: u64,
}

#[derive(Args)]
pub struct ThreadsFault {
    /// Number of threads
    #[arg(long, default_value_t = 4)]
    threads: usize,
    /// Memory of each thread
    #[arg(long)]
    size_each: Size,
    #[command(flatten)]
    hold: Hold,
}

impl Workload {
    pub fn run(&self) -> Result<()> {
        match self {
            Self::Anon(args) => args.run(),
            Self::Hold(amount) => {
                let memory = touched(amount.size)?;
                ready_until_stdin()?;
                memory.unmap()
            }
            Self::Killed(amount) => {
                let _memory = touched(amount.size)?;
                tell("READY")?;
                loop {
                    thread::park();
                }
            }
            Self::Leak(amount) => touched(amount.size).map(mem::forget),
            Self::Staircase(args) => args.run(),
            Self::ThreadsFault(args) => args.run(),
        }
    }
}

fn touched(size: Size) -> Result<Mapping> {
    let mut memory = Mapping::private(size)?;
    memory.touch();
    Ok(memory)
}

impl Anon {
    fn run(&self) -> Result<()> {
        let mut memory = Mapping::private(self.held.size)?;
        match self.thp {
            HugePages::Always => {
                allow_huge_pages(true)?;
                memory.advise(Advice::LinuxHugepage)?;
            }
            HugePages::Never => memory.advise(Advice::LinuxNoHugepage)?,
        }
        memory.touch();
        self.held.hold.hold()?;
        memory.unmap()
    }
}

impl Staircase {
    fn run(&self) -> Result<()> {
        ensure!(self.steps > 0, "--steps must be at least 1");
        let step = Size(self.amount.size.0 / self.steps);
        let pause = Duration::from_millis(self.step_ms);
        let mut stairs = Vec::with_capacity(self.steps);
        for _ in 0..self.steps {
            stairs.push(touched(step)?);
            thread::sleep(pause);
        }
        while let Some(memory) = stairs.pop() {
            memory.unmap()?;
            thread::sleep(pause);
        }
        Ok(())
    }
}

impl ThreadsFault {
    fn run(&self) -> Result<()> {
        let mut memory = (0..self.threads)
            .map(|_| Mapping::private(self.size_each))
            .collect::<Result<Vec<_>>>()?;
        let start = Barrier::new(self.threads);
        thread::scope(|scope| {
            for mapping in &mut memory {
                scope.spawn(|| {
                    start.wait();
                    mapping.touch();
                });
            }
        });
        self.hold.hold()?;
        memory.into_iter().try_for_each(Mapping::unmap)
    }
}
