//! Snapshots made by hand.

pub mod gathered;
pub mod hostile;
mod job;
mod sampled;

use std::collections::BTreeMap;

use swbpf::snapshot::*;

pub use gathered::all_gathered;
pub use hostile::hostile;
pub use job::job;
pub use sampled::{nothing, sampled};

/// Every snapshot here, with its name.
pub fn all() -> Vec<(&'static str, Snapshot)> {
    vec![
        ("kernel", kernel()),
        ("attached", attached()),
        ("joined", joined()),
        ("oom", oom()),
        ("sampled", sampled()),
        ("nothing", nothing()),
        ("hostile", hostile()),
        ("job", job()),
    ]
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn task(comm: &str, pid: u32) -> Task {
    Task {
        pid,
        comm: comm.into(),
    }
}

fn top(comm: &str, pid: u32, rss_bytes: u64) -> TopProcess {
    TopProcess {
        pid,
        comm: comm.into(),
        rss_bytes,
    }
}

const NOTHING_LOST: Loss = Loss {
    kernel_memory_misses: Some(0),
    lru_misses: Some(0),
    other_misses: 0,
    notices_dropped: 0,
    collisions: 0,
    unseen_switches: 0,
    without_row: 0,
    too_deep: 0,
    rebased: 0,
};

/// A short command, everything known of it.
pub fn kernel() -> Snapshot {
    Snapshot {
        schema_version: SCHEMA_VERSION,
        tool_version: "0.1.0".into(),
        kind: Kind::Summary,
        timestamp: "2026-11-30T01:52:03.412Z".into(),
        hostname: "node1".into(),
        job_id: None,
        step_id: None,
        job: None,
        target: Target {
            kind: TargetKind::Command,
            cgroup: "/sys/fs/cgroup/memory/sw-bpf/run-4240".into(),
            cgroup_id: 4711,
            cgroup_version: Some(1),
            pid: Some(4240),
            own_processes: OwnProcesses::Elsewhere,
            command: Some(
                ["sh", "-c", "head -c 300M /dev/zero | tail -c 1"]
                    .map(String::from)
                    .into(),
            ),
        },
        source: Source::Kernel,
        window_seconds: 0.412,
        elapsed_seconds: Some(0.412),
        coverage: Coverage {
            from: "2026-11-30T01:52:03Z".into(),
            to: "2026-11-30T01:52:03.412Z".into(),
            seconds: 0.412,
            from_start: true,
            reason: "nothing had been in it before".to_owned(),
        },
        memory: kernel_memory(),
        cpu: kernel_cpu(),
        processes: Processes {
            started: Some(3),
            threads_started: Some(0),
            ended: Some(3),
            moved_in: Some(0),
            alive: Some(0),
        },
        steps: None,
        steps_left_out: None,
        oom_kills: vec![],
        oom_kills_untold: Some(0),
        gpus: None,
        exit: Some(Exit {
            code: Some(0),
            signal: None,
        }),
        probes: kernel_probes(),
        loss: Some(NOTHING_LOST),
        overhead: Overhead {
            agent_cpu_percent: Some(0.13),
            ns_per_event: Some(41.2),
            programs_cpu_percent: Some(0.24),
            calibrated_seconds: 0.2,
        },
        unknown: BTreeMap::from([("gpus".into(), "not measured yet".into())]),
    }
}

fn kernel_probes() -> Probes {
    Probes {
        held_by: HeldBy::Command,
        rung: "btf_tracepoint".into(),
        reason: None,
        kernel: "6.18.44".into(),
        programs: vec![Program {
            name: "on_memcg_state".into(),
            hook: "mod_memcg_state".into(),
            attached: true,
            reason: None,
        }],
    }
}

fn kernel_memory() -> Memory {
    let never = |interval_seconds| SampledPeak {
        interval_seconds,
        samples: 0,
        peak_bytes: None,
        missed_percent: None,
    };
    Memory {
        source: Source::Kernel,
        needed_bytes: Some(0),
        needed_peak_bytes: Some(300 * MIB + 900 * KIB),
        needed_peak_samples: None,
        error_bound_bytes: Some(0),
        anon_bytes: Some(0),
        shmem_bytes: Some(0),
        kernel_bytes: Some(0),
        file_bytes: Some(0),
        swap_bytes: Some(0),
        hugetlb_bytes: Some(0),
        hugetlb_peak_bytes: Some(0),
        peak: Some(kernel_peak()),
        high: Some(High {
            threshold_bytes: 270 * MIB,
            seconds: 0.0053,
        }),
        timeline: Some(Timeline {
            bucket_seconds: 0.008,
            at_seconds: vec![0.0, 0.48],
            max_bytes: vec![MIB, 300 * MIB],
            min_bytes: vec![0, MIB],
            gaps: Vec::new(),
        }),
        levels: Some(vec![Level {
            from_bytes: 0,
            to_bytes: MIB,
            seconds: 0.3,
        }]),
        current_bytes: Some(0),
        peak_bytes: Some(GIB + 200 * MIB),
        limit_bytes: Some(2 * GIB),
        usage_percent: Some(0.0),
        working_set_bytes: Some(0),
        cache_bytes: Some(0),
        peak_working_set_bytes: Some(MIB),
        working_set_percent: Some(0.0),
        rss_sum_bytes: Some(0),
        rss_sum_peak_bytes: Some(412 * MIB),
        rss_inflation: Some(1.369),
        cache_inflation: Some(4.068),
        sampled_1s: never(1.0),
        sampled_30s: never(30.0),
    }
}

fn kernel_peak() -> Peak {
    Peak {
        at: "2026-11-30T01:52:03.39Z".into(),
        at_seconds: 0.39,
        at_error_seconds: 0.004,
        anon_bytes: 300 * MIB,
        shmem_bytes: 0,
        kernel_bytes: 900 * KIB,
        page_tables_bytes: Some(648 * KIB),
        file_bytes: Some(2 * MIB),
        file_mapped_bytes: Some(MIB),
        thp_bytes: Some(288 * MIB),
        swap_bytes: Some(0),
        process_count: Some(3),
        thread_count: Some(3),
        raised_by: Some(task("tail", 4242)),
        top_processes: vec![
            top("tail", 4242, 301 * MIB),
            top("head", 4241, 1_300_000),
            top("sh", 4240, MIB),
        ],
    }
}

fn kernel_cpu() -> Cpu {
    Cpu {
        source: Source::Kernel,
        busy_cores: Some(0.8204),
        busy_seconds: Some(0.338),
        cores_allocated: Some(2.0),
        usage_percent: Some(41.0),
        usage_ns: Some(338_000_000),
        effective_cores: Some(0.8204),
        peak_effective_cores: Some(0.8204),
        per_cpu_busy_seconds: Some(BTreeMap::from([(0, 0.2), (1, 0.138)])),
        concurrency: Some(Concurrency {
            p50: 1,
            p95: 2,
            max: 2,
            seconds: BTreeMap::from([(0, 0.1), (1, 0.286), (2, 0.026)]),
        }),
    }
}

/// A cgroup that was there before, on a large machine, with losses.
pub fn attached() -> Snapshot {
    let mut snapshot = kernel();
    snapshot.kind = Kind::Progress;
    snapshot.target.kind = TargetKind::Pid;
    snapshot.target.command = None;
    snapshot.elapsed_seconds = Some(90_000.0);
    snapshot.coverage.seconds = 3720.0;
    snapshot.coverage.from_start = false;
    snapshot.exit = None;
    let memory = &mut snapshot.memory;
    memory.needed_bytes = Some(120 * MIB);
    memory.error_bound_bytes = Some(64 * KIB);
    memory.limit_bytes = None;
    memory.hugetlb_peak_bytes = Some(64 * MIB);
    memory.sampled_1s = SampledPeak {
        interval_seconds: 1.0,
        samples: 3720,
        peak_bytes: memory.needed_peak_bytes,
        missed_percent: Some(0.0),
    };
    memory.sampled_30s = SampledPeak {
        interval_seconds: 30.0,
        samples: 124,
        peak_bytes: Some(3 * MIB),
        missed_percent: Some(99.0),
    };
    snapshot.cpu.cores_allocated = Some(1.5);
    snapshot.processes = Processes {
        started: Some(1000),
        threads_started: Some(12),
        moved_in: Some(1),
        alive: Some(3),
        ended: Some(998),
    };
    snapshot.probes.programs.push(Program {
        name: "on_mark_victim".into(),
        hook: "mark_victim".into(),
        attached: false,
        reason: Some("this kernel has no such hook; kills for want of memory are not seen".into()),
    });
    snapshot.loss = Some(Loss {
        kernel_memory_misses: Some(12),
        lru_misses: Some(0),
        other_misses: 0,
        rebased: 1,
        ..NOTHING_LOST
    });
    snapshot
}

/// The same, agreed with the kernel's files; its peak was there before.
pub fn joined() -> Snapshot {
    let mut snapshot = attached();
    snapshot.memory.error_bound_bytes = Some(0);
    if let Some(peak) = &mut snapshot.memory.peak {
        peak.at_seconds = 0.0;
        peak.raised_by = None;
    }
    snapshot
}

/// A command that its limit killed.
pub fn oom() -> Snapshot {
    let mut snapshot = kernel();
    snapshot.exit = Some(Exit {
        code: None,
        signal: Some(9),
    });
    snapshot.memory.needed_peak_bytes = Some(32 * MIB);
    snapshot.memory.limit_bytes = Some(32 * MIB);
    let kill = OomKill {
        at: "2026-11-30T01:52:03.4Z".into(),
        at_seconds: 0.4,
        victim: task("tail", 4242),
        trigger: task("tail", 4242),
        step_id: None,
        task_id: None,
        victim_is_main: true,
        went_on_seconds: 0.012,
        needed_bytes: 32 * MIB,
        needed_peak_bytes: 32 * MIB,
        error_bound_bytes: Some(0),
        limit_of: LimitOf::Target,
        limit_bytes: Some(32 * MIB),
        limit_charged_bytes: Some(32 * MIB),
        limit_cgroup: Some("/sys/fs/cgroup/memory/sw-bpf/run-4240".into()),
    };
    let other = OomKill {
        trigger: task("head", 4241),
        needed_bytes: 20 * MIB,
        victim_is_main: false,
        limit_of: LimitOf::Unknown,
        limit_bytes: None,
        limit_charged_bytes: None,
        limit_cgroup: None,
        ..kill.clone()
    };
    snapshot.oom_kills = [vec![kill, other.clone()], vec![other; 5]].concat();
    snapshot
}
