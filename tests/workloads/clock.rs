//! Spinning for a known CPU time.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

use crate::hold::tell;

/// Keeps this thread busy until it has spent that much CPU time, however long it has to wait for a CPU.
pub fn spin(span: Duration) {
    let end = cpu_time(ClockId::ThreadCPUTime) + span;
    let mut left = span;
    while !left.is_zero() {
        // The wall clock needs no system call, and CPU time is never ahead of it.
        let now = Instant::now();
        while now.elapsed() < left {
            spin_loop();
        }
        left = end.saturating_sub(cpu_time(ClockId::ThreadCPUTime));
    }
}

/// Does `work` and prints `cpu_ns <n> wall_ns <n>`: CPU time of this process since its begin, and how long `work` took.
pub fn timed(work: impl FnOnce() -> Result<()>) -> Result<()> {
    let begin = Instant::now();
    work()?;
    let wall_ns = begin.elapsed().as_nanos();
    let cpu_ns = cpu_time(ClockId::ProcessCPUTime).as_nanos();
    tell(&format!("cpu_ns {cpu_ns} wall_ns {wall_ns}"))
}

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
