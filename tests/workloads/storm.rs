//! Storms of the events that a measuring program pays for.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use clap::{Args, Subcommand};
use rustix::mm::Advice;

use crate::child::Child;
use crate::cpu::{allowed_cpus, pin};
use crate::hold::tell;
use crate::mapping::{Mapping, allow_huge_pages};
use crate::size::{PAGE, Size};

#[derive(Subcommand)]
pub enum Workload {
    /// Map, touch and unmap memory again and again, in a thread on each CPU
    ///
    /// Prints `pages <n> ns <n> ns_per_page <x>`: 4 KiB pages touched by all threads, and their times added up, so that the
    /// last is what a page costs one CPU.
    FaultStorm(FaultStorm),
    /// Hand a byte to and fro between two processes
    ///
    /// Prints `switches <n> ns <n> ns_per_switch <x>`: two switches a round.
    PipeSwitch(PipeSwitch),
}

#[derive(Args)]
pub struct FaultStorm {
    /// Number of threads; one for each allowed CPU where not given
    #[arg(long)]
    threads: Option<usize>,
    /// MiB of each thread
    #[arg(long, default_value_t = 64)]
    mib: usize,
    /// How often each thread does it
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Transparent huge pages
    #[arg(long)]
    thp: bool,
}

#[derive(Args)]
pub struct PipeSwitch {
    /// Number of rounds
    #[arg(long, default_value_t = 100_000)]
    rounds: usize,
    /// Leave both processes to the scheduler, not on one CPU
    #[arg(long)]
    unpinned: bool,
}

impl Workload {
    pub fn run(&self) -> Result<()> {
        match self {
            Self::FaultStorm(args) => args.run(),
            Self::PipeSwitch(args) => args.run(),
        }
    }
}

impl FaultStorm {
    fn run(&self) -> Result<()> {
        allow_huge_pages(self.thp)?;
        let cpus = allowed_cpus()?;
        let threads = self.threads.unwrap_or(cpus.len());
        let start = Barrier::new(threads);
        let spans = thread::scope(|scope| {
            let storms: Vec<_> = (0..threads)
                .map(|thread| {
                    let cpu = cpus[thread % cpus.len()];
                    let start = &start;
                    scope.spawn(move || {
                        let pinned = pin(cpu);
                        start.wait();
                        pinned.and_then(|()| self.storm())
                    })
                })
                .collect();
            let joined = storms
                .into_iter()
                .map(|storm| storm.join().map_err(|_| anyhow!("a thread died"))?);
            joined.collect::<Result<Vec<Duration>>>()
        })?;
        let pages = threads * self.rounds * (self.mib << 20) / PAGE;
        report("page", pages, spans.iter().sum())
    }

    fn storm(&self) -> Result<Duration> {
        let begin = Instant::now();
        for _ in 0..self.rounds {
            let mut memory = Mapping::private(Size(self.mib << 20))?;
            if self.thp {
                memory.advise(Advice::LinuxHugepage)?;
            }
            memory.touch();
            memory.unmap()?;
        }
        Ok(begin.elapsed())
    }
}

impl PipeSwitch {
    fn run(&self) -> Result<()> {
        if !self.unpinned {
            let cpus = allowed_cpus()?;
            pin(*cpus.first().context("no CPU is allowed")?)?;
        }
        let (mut there, mut to_child) = pipe().context("pipe")?;
        let (mut back, mut to_parent) = pipe().context("pipe")?;
        let child = Child::fork(|| (0..self.rounds).try_for_each(|_| hand_on(&mut there, &mut to_parent)))?;
        // A child that dies early then ends the parent's reading.
        drop(to_parent);
        let begin = Instant::now();
        for _ in 0..self.rounds {
            to_child.write_all(&[0]).context("write to the child")?;
            back.read_exact(&mut [0]).context("read from the child")?;
        }
        let elapsed = begin.elapsed();
        child.wait()?;
        report("switch", 2 * self.rounds, elapsed)
    }
}

fn hand_on(from: &mut PipeReader, to: &mut PipeWriter) -> Result<()> {
    from.read_exact(&mut [0]).context("read from the parent")?;
    to.write_all(&[0]).context("write to the parent")
}

fn report(event: &str, events: usize, time: Duration) -> Result<()> {
    ensure!(events > 0, "nothing was asked for");
    let plural = if event == "switch" { "switches" } else { "pages" };
    let each = time.as_nanos() as f64 / events as f64;
    tell(&format!(
        "{plural} {events} ns {} ns_per_{event} {each:.1}",
        time.as_nanos()
    ))
}
