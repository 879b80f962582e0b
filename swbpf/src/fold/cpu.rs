//! Busy cores and how many threads were on a CPU at once.

use std::collections::BTreeMap;

use super::{Reading, Unknown, levels::quantile, times::added};
use crate::{
    probe::SlotReading,
    snapshot::{Concurrency, Cpu, Processes, Source},
};

/// Until `to`: rates since `from`, times since `first`.
pub fn told(
    first: &Reading,
    from: &Reading,
    to: &Reading,
    peak_cores: Option<f64>,
    unknown: &mut Unknown,
) -> Cpu {
    let spent_ns = busy_ns(first, to);
    let wall_ns = to.ns.saturating_sub(from.ns);
    let busy_cores = busy_ns(from, to)
        .filter(|_| wall_ns > 0)
        .map(|busy| busy as f64 / wall_ns as f64);
    let cores_allocated = to.cpu.cores_allocated();
    let source = match (&to.kernel, spent_ns) {
        (Some(_), _) => Source::Kernel,
        (None, Some(_)) => Source::Sampled,
        (None, None) => Source::Unavailable,
    };
    let cpu = Cpu {
        source,
        busy_cores,
        busy_seconds: spent_ns.map(|busy| busy as f64 / 1e9),
        cores_allocated,
        usage_percent: busy_cores
            .zip(cores_allocated)
            .map(|(busy, cores)| busy / cores * 100.0),
        usage_ns: to.cpu.usage_ns,
        effective_cores: busy_cores,
        peak_effective_cores: peak_cores,
        per_cpu_busy_seconds: per_cpu(first, to),
        concurrency: concurrency(first, to),
    };
    note_unknown(&cpu, to, unknown);
    cpu
}

/// The reason of each number that is not known.
fn note_unknown(cpu: &Cpu, to: &Reading, unknown: &mut Unknown) {
    let mut because = |key: &str, is_known: bool, reason: &str| {
        if !is_known {
            unknown.insert(format!("cpu.{key}"), reason.to_owned());
        }
    };
    let no_usage = to
        .cpu
        .unknown
        .get("usage_ns")
        .map_or("the window has no length", String::as_str);
    let no_cores = to.cpu.unknown.get("cpus").map_or(no_usage, String::as_str);
    for (value, key) in [
        (cpu.busy_cores, "busy_cores"),
        (cpu.busy_seconds, "busy_seconds"),
        (cpu.effective_cores, "effective_cores"),
    ] {
        because(key, value.is_some(), no_usage);
    }
    because("cores_allocated", cpu.cores_allocated.is_some(), no_cores);
    because("usage_percent", cpu.usage_percent.is_some(), no_cores);
    because("usage_ns", cpu.usage_ns.is_some(), no_usage);
    because(
        "concurrency",
        cpu.concurrency.is_some(),
        "only the kernel programs see how many threads run at once",
    );
    because(
        "per_cpu_busy_seconds",
        cpu.per_cpu_busy_seconds.is_some(),
        "only the kernel programs count it per processor",
    );
    because(
        "peak_effective_cores",
        cpu.peak_effective_cores.is_some(),
        cpu.busy_seconds
            .map_or(no_usage, |_| "no whole second was measured"),
    );
}

/// CPU time from one reading to another: as counted, else by the kernel's own accounting.
pub fn busy_ns(from: &Reading, to: &Reading) -> Option<u64> {
    match (&from.kernel, &to.kernel) {
        (Some(from_kernel), Some(to_kernel)) => {
            let sum = |slot: &SlotReading| slot.busy_ns.values().sum::<u64>();
            let busy_ns = sum(&to_kernel.slot).saturating_sub(sum(&from_kernel.slot));
            let own_ns = to.own_cpu_ns.saturating_sub(from.own_cpu_ns);
            Some(if to.takes_own_off {
                busy_ns.saturating_sub(own_ns)
            } else {
                busy_ns
            })
        }
        _ => to.cpu.usage_ns?.checked_sub(from.cpu.usage_ns?),
    }
}

fn per_cpu(from: &Reading, to: &Reading) -> Option<BTreeMap<u32, f64>> {
    Some(seconds_between(
        &from.kernel.as_ref()?.slot.busy_ns,
        &to.kernel.as_ref()?.slot.busy_ns,
    ))
}

fn concurrency(from: &Reading, to: &Reading) -> Option<Concurrency> {
    let seconds = seconds_between(
        &from.kernel.as_ref()?.histograms.concurrency_ns,
        &to.kernel.as_ref()?.histograms.concurrency_ns,
    );
    Some(Concurrency {
        p50: quantile(&seconds, 0.5),
        p95: quantile(&seconds, 0.95),
        max: seconds.keys().next_back().copied().unwrap_or(0),
        seconds,
    })
}

/// By number, what was added to the times of `from` until `to`; numbers without time are left out.
fn seconds_between(from: &BTreeMap<u32, u64>, to: &BTreeMap<u32, u64>) -> BTreeMap<u32, f64> {
    (0..)
        .zip(added(&by_number(from), &by_number(to)))
        .filter(|(_, ns)| *ns > 0)
        .map(|(number, ns)| (number, ns as f64 / 1e9))
        .collect()
}

/// The same times in a row, from 0 to the highest number that has one.
fn by_number(times: &BTreeMap<u32, u64>) -> Vec<u64> {
    let end = times.keys().next_back().map_or(0, |highest| highest + 1);
    (0..end)
        .map(|number| times.get(&number).copied().unwrap_or(0))
        .collect()
}

/// Processes since the slot was tracked. A command of `run` begins by moving in: it counts as started.
pub fn processes(to: &Reading, is_command: bool, unknown: &mut Unknown) -> Processes {
    let slot = to.kernel.as_ref().map(|kernel| &kernel.slot);
    let joined = |slot: &SlotReading| u64::from(is_command).min(slot.moved_in);
    if slot.is_none() {
        for key in ["started", "threads_started", "ended", "moved_in"] {
            let reason = "only the kernel programs see processes between two readings";
            unknown.insert(format!("processes.{key}"), reason.to_owned());
        }
    }
    Processes {
        started: slot.map(|slot| slot.started + joined(slot)),
        threads_started: slot.map(|slot| slot.threads_started),
        ended: slot.map(|slot| slot.ended),
        moved_in: slot.map(|slot| slot.moved_in - joined(slot)),
        alive: Some(to.processes.len() as u64),
    }
}
