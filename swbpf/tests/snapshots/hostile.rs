use super::*;

/// Names that try to take the terminal over.
pub fn hostile() -> Snapshot {
    with_names(
        kernel(),
        "\u{1b}[2J\u{202e}evil\n\\\u{fffd}",
        "/cg/\u{1b}]0;x\u{7}/a b",
    )
}

/// Takes every text that others chose from `name` and `path`.
pub fn with_names(mut snapshot: Snapshot, name: &str, path: &str) -> Snapshot {
    let mut oom = oom().oom_kills.remove(1);
    oom.victim.comm = name.into();
    oom.trigger.comm = name.into();
    oom.limit_bytes = Some(32 * MIB);
    oom.limit_cgroup = Some(path.into());
    oom.at = name.into();
    oom.step_id = Some(name.into());
    oom.task_id = Some(u32::MAX);
    snapshot.oom_kills = vec![oom];
    snapshot.job_id = snapshot.job_id.map(|_| name.into());
    if let Some(job) = &mut snapshot.job {
        job.name = Some(name.into());
        job.user = Some(path.into());
    }
    for step in snapshot.steps.iter_mut().flatten() {
        step.step_id = name.into();
    }
    snapshot.target.command = snapshot.target.command.map(|_| vec![name.into(), path.into()]);
    snapshot.target.cgroup = path.into();
    if let Some(peak) = &mut snapshot.memory.peak {
        peak.at = name.into();
        peak.raised_by = Some(task(name, u32::MAX));
        peak.top_processes = vec![top(name, u32::MAX, u64::MAX)];
    }
    snapshot.probes.reason = Some(path.into());
    for why in snapshot.unknown.values_mut() {
        *why = path.into();
    }
    snapshot
}
