//! The kernel's own accounting of CPU time, and how far from it a right figure may be.

use std::fs;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle, sleep};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use support::pace;
use swbpf::job::cgroup::Cgroup;
use swbpf::sampled::cgroupfs::CpuFiles;

/// How far busy time may be from the kernel's accounting.
const SHARE: f64 = 0.005;

/// The kernel charges what runs at each of its ticks, so that it is behind by at most one on each side of a window. A
/// command that is started joins its cgroup while it runs: what it has run since the last tick goes along with it.
const TICK_S: f64 = 0.004;

/// Where the processor is emulated, its CPUs take turns on one, of this length: a tick may be late by so much.
const TURN_S: f64 = 0.1;

/// A task that wakes up on an idle CPU is charged by the kernel from the interrupt that wakes it, and takes the CPU only
/// when that has left its idle state: on a virtual machine, which must ask its host to stop the idle timer, 10 to 40 us
/// later (`sched_waking` and `sched_switch` in one trace show it). `sw-bpf` counts from the switch on.
const WAKE_UP_S: f64 = 40e-6;

/// CPU time by the kernel's own accounting.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    /// The time.
    pub usage_s: f64,
    /// Time that the hypervisor took from all CPUs meanwhile. The kernel does not charge it to the task that was on the
    /// CPU; `sw-bpf` cannot tell it from work.
    pub stolen_s: f64,
    /// How often a task came to a CPU that was idle.
    pub wake_ups: u32,
}

impl Truth {
    /// What a measurement may tell.
    pub fn range(self) -> RangeInclusive<f64> {
        let slower = f64::from(pace::factor());
        let tick_s = if slower > 1.0 { TURN_S } else { TICK_S };
        let off = self.usage_s * SHARE + tick_s;
        let least = self.usage_s - off - f64::from(self.wake_ups) * WAKE_UP_S * slower;
        least..=self.usage_s + off + self.stolen_s
    }
}

/// Time stolen from all CPUs since boot, rounded up: it is told in ticks of 10 ms for each CPU.
fn stolen_s() -> f64 {
    let stat = fs::read_to_string("/proc/stat").expect("/proc/stat");
    let all = stat.lines().next().expect("a line of all CPUs");
    let ticks: u64 = all
        .split_ascii_whitespace()
        .nth(8)
        .map_or(0, |ticks| ticks.parse().expect("a number"));
    ticks as f64 / 100.0
}

/// Does something, and gives with its result the time that was stolen meanwhile.
pub fn with_stolen<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = stolen_s();
    let result = work();
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let after = stolen_s();
    // What has not filled a tick is not told yet.
    let unseen = if after > 0.0 { 0.01 * cpus as f64 } else { 0.0 };
    (result, after - before + unseen)
}

/// One look at a cgroup's CPU time.
struct Look {
    /// Wall clock, seconds since 1970.
    at: f64,
    usage_s: f64,
}

/// Looks at a cgroup's CPU time each millisecond while `work` is done, and gives a function of the time spent between
/// two moments of the wall clock.
pub fn watched<T>(cgroup: &Cgroup, work: impl FnOnce() -> T) -> (T, impl Fn(f64, f64) -> f64) {
    let is_over = AtomicBool::new(false);
    let (result, looks) = thread::scope(|scope| {
        let looking: ScopedJoinHandle<Vec<Look>> = scope.spawn(|| {
            let mut looks = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                looks.push(Look::now(cgroup));
                sleep(Duration::from_millis(1));
            }
            looks.push(Look::now(cgroup));
            looks
        });
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        (result, looking.join().expect("a thread that looks"))
    });
    (result, move |from, to| {
        usage_at(&looks, to) - usage_at(&looks, from)
    })
}

impl Look {
    fn now(cgroup: &Cgroup) -> Self {
        let usage_ns = CpuFiles::read(cgroup).usage_ns.expect("the kernel's accounting");
        let now = clock_gettime(ClockId::Realtime);
        Self {
            at: now.tv_sec as f64 + now.tv_nsec as f64 / 1e9,
            usage_s: usage_ns as f64 / 1e9,
        }
    }
}

/// Between two looks it grew evenly.
fn usage_at(looks: &[Look], at: f64) -> f64 {
    let next = looks
        .partition_point(|look| look.at < at)
        .clamp(1, looks.len() - 1);
    let (before, after) = (&looks[next - 1], &looks[next]);
    let share = (at - before.at) / (after.at - before.at);
    before.usage_s + (after.usage_s - before.usage_s) * share
}
