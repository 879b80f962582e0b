//! CPU time of known length.
//!
//! MS and the like are CPU time, not wall time, so that a busy machine makes no difference. Each workload ends with a line
//! `cpu_ns <n> wall_ns <n>`: its CPU time since its begin by the kernel's own clock, and how long it worked.

use std::hint::spin_loop;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::clock::{spin, timed};
use crate::hold::ready_until_stdin;

#[derive(Subcommand)]
pub enum Workload {
    /// Spin in several threads
    ///
    /// Busy: THREADS x MS, plus at most 10 ms to begin and end.
    Spin(Spin),
    /// Sleep
    ///
    /// Busy: at most 10 ms.
    Sleep(Span),
    /// Spin and sleep in turn
    ///
    /// Busy: COUNT x `--us`, plus at most 10 ms and 0.1 ms a burst.
    Bursts(Bursts),
    /// Spin on one CPU without ever leaving it
    ///
    /// Busy: MS on that CPU, plus at most 10 ms on any.
    Pinned(Pinned),
    /// Spin, move to the next allowed CPU every millisecond
    ///
    /// Busy: MS, the same on each allowed CPU, plus at most 10 ms and 0.1 ms a move.
    Migrate(Span),
    /// Spin in several threads, print READY, end at a line or the end of standard input
    ///
    /// Busy: THREADS CPUs all the time, where so many are free.
    SpinUntilStdin(Threads),
}

#[derive(Args)]
pub struct Span {
    /// Milliseconds of CPU time; of wall time for `sleep`
    #[arg(long)]
    ms: u64,
}

#[derive(Args)]
pub struct Threads {
    /// Number of threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

#[derive(Args)]
pub struct Spin {
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    span: Span,
}

#[derive(Args)]
pub struct Bursts {
    /// Number of bursts
    #[arg(long)]
    count: usize,
    /// Microseconds of CPU time of each burst
    #[arg(long)]
    us: u64,
    /// Microseconds between two
    #[arg(long, default_value_t = 500)]
    sleep_us: u64,
}

#[derive(Args)]
pub struct Pinned {
    /// Number of the CPU
    #[arg(long)]
    cpu: usize,
    #[command(flatten)]
    span: Span,
}

impl Workload {
    pub fn run(&self) -> Result<()> {
        timed(|| match self {
            Self::Spin(args) => {
                args.run();
                Ok(())
            }
            Self::Sleep(span) => {
                thread::sleep(span.duration());
                Ok(())
            }
            Self::Bursts(args) => {
                args.run();
                Ok(())
            }
            Self::Pinned(args) => {
                pin(args.cpu)?;
                spin(args.span.duration());
                Ok(())
            }
            Self::Migrate(span) => migrate(span.ms),
            Self::SpinUntilStdin(threads) => threads.spin_until_stdin(),
        })
    }
}

impl Span {
    fn duration(&self) -> Duration {
        Duration::from_millis(self.ms)
    }
}

impl Spin {
    fn run(&self) {
        thread::scope(|scope| {
            for _ in 0..self.threads.threads {
                scope.spawn(|| spin(self.span.duration()));
            }
        });
    }
}

impl Threads {
    fn spin_until_stdin(&self) -> Result<()> {
        let stop = AtomicBool::new(false);
        let all_spin = Barrier::new(self.threads + 1);
        thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| {
                    all_spin.wait();
                    while !stop.load(Ordering::Relaxed) {
                        spin_loop();
                    }
                });
            }
            all_spin.wait();
            let waited = ready_until_stdin();
            stop.store(true, Ordering::Relaxed);
            waited
        })
    }
}

impl Bursts {
    fn run(&self) {
        for _ in 0..self.count {
            spin(Duration::from_micros(self.us));
            thread::sleep(Duration::from_micros(self.sleep_us));
        }
    }
}

fn migrate(milliseconds: u64) -> Result<()> {
    let cpus = allowed_cpus()?;
    ensure!(cpus.len() > 1, "only one CPU is allowed: nowhere to move");
    for cpu in cpus.into_iter().cycle().take(milliseconds as usize) {
        pin(cpu)?;
        spin(Duration::from_millis(1));
    }
    Ok(())
}

/// The CPUs that this thread may use.
pub fn allowed_cpus() -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(None).context("sched_getaffinity")?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect())
}

/// Keeps this thread on one CPU.
pub fn pin(cpu: usize) -> Result<()> {
    ensure!(cpu < CpuSet::MAX_CPU, "no CPU {cpu}");
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).with_context(|| format!("cannot use CPU {cpu}"))
}
