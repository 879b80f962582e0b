use super::*;

/// The same cgroup, with no privilege for kernel programs.
pub fn sampled() -> Snapshot {
    let mut snapshot = kernel();
    let why = "CAP_BPF is missing, which the kernel programs need: run as root";
    snapshot.kind = Kind::Once;
    snapshot.source = Source::Sampled;
    snapshot.loss = None;
    snapshot.window_seconds = 1.0;
    snapshot.target.kind = TargetKind::Cgroup;
    snapshot.target.command = None;
    snapshot.exit = None;
    snapshot.coverage.from_start = false;
    snapshot.coverage.seconds = 1.0;
    snapshot.probes = Probes {
        held_by: HeldBy::Nobody,
        rung: "none".into(),
        reason: Some(why.into()),
        programs: vec![],
        ..snapshot.probes
    };
    let memory = &mut snapshot.memory;
    memory.source = Source::Sampled;
    memory.needed_bytes = Some(100 * MIB);
    memory.needed_peak_samples = Some(12);
    memory.error_bound_bytes = None;
    memory.high = None;
    memory.levels = None;
    memory.timeline = None;
    memory.peak_bytes = None;
    memory.cache_inflation = None;
    if let Some(peak) = &mut memory.peak {
        peak.at_error_seconds = 0.0;
        peak.raised_by = None;
    }
    snapshot.cpu.source = Source::Sampled;
    snapshot.cpu.concurrency = None;
    snapshot.processes = Processes {
        started: None,
        threads_started: None,
        ended: None,
        moved_in: None,
        alive: Some(3),
    };
    snapshot.overhead = Overhead {
        ns_per_event: None,
        programs_cpu_percent: None,
        ..snapshot.overhead
    };
    let reasons = [
        ("memory.error_bound_bytes", "peaks between two looks are not seen"),
        ("memory.high", "only the kernel programs see it"),
        ("memory.peak_bytes", "Linux 5.15 has no memory.peak"),
        ("cpu.concurrency", "only the kernel programs see it"),
        ("processes.started", "only the kernel programs see it"),
    ];
    snapshot.unknown = reasons.map(|(key, why)| (key.into(), why.into())).into();
    snapshot
}

/// A cgroup of which nothing can be read.
pub fn nothing() -> Snapshot {
    let mut snapshot = sampled();
    snapshot.source = Source::Unavailable;
    snapshot.elapsed_seconds = None;
    let memory = &mut snapshot.memory;
    memory.source = Source::Unavailable;
    memory.needed_bytes = None;
    memory.needed_peak_bytes = None;
    memory.needed_peak_samples = None;
    memory.peak = None;
    memory.limit_bytes = None;
    memory.rss_sum_peak_bytes = None;
    memory.rss_inflation = None;
    memory.hugetlb_peak_bytes = None;
    let cpu = &mut snapshot.cpu;
    cpu.source = Source::Unavailable;
    cpu.busy_cores = None;
    cpu.busy_seconds = None;
    cpu.usage_percent = None;
    cpu.cores_allocated = None;
    cpu.per_cpu_busy_seconds = None;
    snapshot.processes.alive = None;
    snapshot.overhead.agent_cpu_percent = None;
    let why = "the job has no memory cgroup: ConstrainRAMSpace=no in cgroup.conf";
    snapshot
        .unknown
        .insert("memory.needed_peak_bytes".into(), why.into());
    snapshot
}
