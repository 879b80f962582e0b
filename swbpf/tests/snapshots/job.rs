use super::*;

/// A job with a step of four tasks, one of them fat, and one that a limit killed.
pub fn job() -> Snapshot {
    let mut snapshot = kernel();
    snapshot.kind = Kind::Summary;
    snapshot.target.kind = TargetKind::Job;
    snapshot.job_id = Some("70_7".into());
    snapshot.job = Some(facts());
    snapshot.target.command = None;
    snapshot.target.pid = None;
    snapshot.target.cgroup = "/sys/fs/cgroup/memory/slurm/uid_1000/job_77".into();
    snapshot.exit = None;
    snapshot.steps = Some(vec![
        step("batch", 20 * MIB, false, vec![task_row(0, 20 * MIB)]),
        step(
            "0",
            900 * MIB,
            true,
            (0..4)
                .map(|task| task_row(task, if task == 2 { 700 * MIB } else { 60 * MIB }))
                .collect(),
        ),
        Step {
            usage: Usage {
                oom_kills: Some(1),
                ..usage(32 * MIB, true)
            },
            ..step("1", 0, true, vec![])
        },
        step("4294967293", GIB, true, vec![]),
    ]);
    snapshot.steps_left_out = Some(2);
    snapshot.oom_kills = oom().oom_kills;
    snapshot.oom_kills.truncate(1);
    snapshot.oom_kills[0].step_id = Some("1".into());
    snapshot.oom_kills[0].task_id = Some(0);
    snapshot.oom_kills[0].limit_of = LimitOf::Step;
    snapshot
}

fn facts() -> Job {
    Job {
        job_id: 77,
        array_job_id: Some(70),
        array_task_id: Some(7),
        het_job_id: None,
        het_job_offset: None,
        sluid: None,
        name: Some("train".into()),
        user: Some("alice".into()),
        account: Some("physics".into()),
        partition: Some("main".into()),
        state: Some("RUNNING".into()),
        started_at: Some("2026-11-30T01:52:03Z".into()),
        ends_at: Some("2026-11-30T02:52:03Z".into()),
        time_limit_seconds: Some(3600),
        nodes: Some(vec!["node1".into()]),
        node_count: Some(1),
        requested: Requested {
            memory_per_node_bytes: Some(2 * GIB),
            memory_per_cpu_bytes: None,
            cpus: Some(2),
            tasks: Some(1),
            cpus_per_task: Some(2),
            tres: Some(BTreeMap::from([("cpu".into(), 2), ("mem".into(), 2 * GIB)])),
        },
        here: Some(NodePart {
            node: "node1".into(),
            cpus: Some(2),
            cpu_ids: Some(vec![0, 1]),
            memory_bytes: Some(2 * GIB),
            gres: vec![Gres {
                name: "gpu".into(),
                kind: None,
                count: Some(1),
                indices: Some(vec![0]),
            }],
        }),
    }
}

fn step(step_id: &str, peak: u64, has_ended: bool, tasks: Vec<StepTask>) -> Step {
    Step {
        step_id: step_id.into(),
        usage: usage(peak, has_ended),
        slurmstepd_bytes: (!has_ended).then_some(300 * KIB),
        tasks,
    }
}

fn task_row(task_id: u32, peak: u64) -> StepTask {
    StepTask {
        task_id,
        usage: usage(peak, true),
    }
}

fn usage(peak: u64, has_ended: bool) -> Usage {
    Usage {
        source: Source::Kernel,
        cgroup_id: 4712,
        began_at: Some("2026-11-30T01:52:03Z".into()),
        ended_at: has_ended.then(|| "2026-11-30T01:52:03.3Z".into()),
        seconds: 0.3,
        needed_bytes: (!has_ended).then_some(peak / 2),
        needed_peak_bytes: Some(peak),
        needed_peak_at: Some("2026-11-30T01:52:03.2Z".into()),
        error_bound_bytes: Some(0),
        // Of the window, while it runs.
        busy_cores: Some(if has_ended { 0.97 } else { 1.94 }),
        busy_seconds: Some(0.29),
        processes_started: Some(1),
        processes_ended: Some(1),
        oom_kills: Some(0),
    }
}
