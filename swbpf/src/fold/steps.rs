//! The rows of a job: its steps with their tasks.

use std::collections::BTreeMap;

use super::{
    Fold, Unknown,
    below::{Frame, Told},
};
use crate::{
    job::{cgroup::slurm::Role, id::StepName},
    snapshot::{Kind, Memory, Source, Step, StepTask, Usage},
};

impl Fold {
    pub(super) fn frame(&self) -> Frame {
        Frame {
            begin: self.begin,
            cpus: self.subject.cpus,
            batch_bound_pages: self.subject.batch_bound_pages,
            counts_memory: self.subject.memory_not_counted.is_none(),
        }
    }

    /// The steps that have ended since a moment and those that are there, and the reason of each number of theirs that is not
    /// known.
    pub(super) fn steps(
        &self,
        kind: Kind,
        ended_since_ns: u64,
        memory: &Memory,
        unknown: &mut Unknown,
    ) -> Option<Vec<Step>> {
        if !matches!(self.subject.role, Some(Role::Job | Role::Step(_))) {
            for key in ["steps", "steps_left_out"] {
                unknown.insert(
                    key.to_owned(),
                    "the target is no Slurm job and no step of one".to_owned(),
                );
            }
            return None;
        }
        let in_window = kind == Kind::Progress;
        let mut rows = self.below.told(ended_since_ns, self.frame(), in_window);
        if let Some(role @ Role::Step(_)) = self.subject.role {
            let usage = self.target_usage(memory);
            rows.push(Told {
                role,
                step_cgroup_id: Some(usage.cgroup_id),
                usage,
            });
        }
        let steps = grouped(rows);
        note_unknown(&steps, unknown);
        Some(steps)
    }

    /// What the target itself used, where it is one step.
    fn target_usage(&self, memory: &Memory) -> Usage {
        let slot = self.last.kernel.as_ref().map(|kernel| &kernel.slot);
        let busy_ns = super::cpu::busy_ns(&self.first, &self.last);
        let seconds = self.begin.seconds_to(self.last.ns);
        Usage {
            source: self.source(),
            cgroup_id: self.subject.target.cgroup_id,
            began_at: self
                .subject
                .from_start
                .then(|| self.begin.rfc3339(self.begin.ns())),
            ended_at: None,
            seconds,
            needed_bytes: memory.needed_bytes,
            needed_peak_bytes: memory.needed_peak_bytes,
            needed_peak_at: memory.peak.as_ref().map(|peak| peak.at.clone()),
            error_bound_bytes: memory.error_bound_bytes,
            busy_cores: busy_ns
                .filter(|_| seconds > 0.0)
                .map(|ns| ns as f64 / 1e9 / seconds),
            busy_seconds: busy_ns.map(|ns| ns as f64 / 1e9),
            processes_started: slot.map(|slot| slot.started),
            processes_ended: slot.map(|slot| slot.ended),
            oom_kills: slot.map(|slot| slot.oom_kills),
        }
    }

    pub(super) fn source(&self) -> Source {
        if self.last.kernel.is_some() {
            Source::Kernel
        } else {
            Source::Sampled
        }
    }
}

/// Rows by the cgroup of their step: one of the same name can begin twice, as after a requeue.
fn grouped(rows: Vec<Told>) -> Vec<Step> {
    let mut steps: Vec<(StepName, Usage)> = Vec::new();
    let mut tasks: BTreeMap<Option<u64>, Vec<StepTask>> = BTreeMap::new();
    let mut daemons: BTreeMap<Option<u64>, Option<u64>> = BTreeMap::new();
    for Told {
        role,
        step_cgroup_id: of,
        usage,
    } in rows
    {
        match role {
            Role::Step(step) => steps.push((step, usage)),
            Role::Task { task, .. } => tasks
                .entry(of)
                .or_default()
                .push(StepTask { task_id: task, usage }),
            Role::Slurmstepd { .. } => drop(daemons.insert(of, usage.needed_bytes)),
            _ => {}
        }
    }
    steps.sort_by(|(one, its), (other, others)| (one, &its.began_at).cmp(&(other, &others.began_at)));
    let mut with_tasks = |(step, usage): (StepName, Usage)| {
        let mut tasks = tasks.remove(&Some(usage.cgroup_id)).unwrap_or_default();
        tasks.sort_by_key(|task| task.task_id);
        let own = daemons.get(&Some(usage.cgroup_id)).copied();
        Step {
            step_id: step.to_string(),
            slurmstepd_bytes: own.unwrap_or_else(|| outside_tasks(&usage, &tasks)),
            usage,
            tasks,
        }
    };
    steps.into_iter().map(&mut with_tasks).collect()
}

/// Needed memory of a step less that of its running tasks; nothing of one that has ended.
fn outside_tasks(step: &Usage, tasks: &[StepTask]) -> Option<u64> {
    let running = tasks.iter().filter(|task| task.usage.ended_at.is_none());
    let of_tasks = running
        .map(|task| task.usage.needed_bytes)
        .try_fold(0_u64, |sum, bytes| Some(sum.saturating_add(bytes?)))?;
    // Read one after the other, they may not agree to the page.
    Some(step.needed_bytes?.saturating_sub(of_tasks))
}

const HAS_ENDED: &str = "it has ended";
const NO_BEGIN: &str = "it was there before the measurement, or it is sampled, which does not tell";
const NO_END: &str = "it is there still";
const NOT_COUNTED: &str =
    "what it held before it was measured could not be told, or memory is not counted there";

/// One reason for all steps and one for all tasks.
fn note_unknown(steps: &[Step], unknown: &mut Unknown) {
    let of_steps: Vec<&Usage> = steps.iter().map(|step| &step.usage).collect();
    let tasks = steps.iter().flat_map(|step| &step.tasks);
    let of_tasks: Vec<&Usage> = tasks.map(|task| &task.usage).collect();
    note_usages("steps[].", &of_steps, unknown);
    note_usages("steps[].tasks[].", &of_tasks, unknown);
    if steps.iter().any(|step| step.slurmstepd_bytes.is_none()) {
        unknown.insert(
            "steps[].slurmstepd_bytes".to_owned(),
            format!("{HAS_ENDED}, or {NOT_COUNTED}"),
        );
    }
}

fn note_usages(prefix: &str, usages: &[&Usage], unknown: &mut Unknown) {
    let mut unless_all = |key: &str, is_known: fn(&Usage) -> bool, reason: &str| {
        if !usages.iter().all(|usage| is_known(usage)) {
            unknown.insert(format!("{prefix}{key}"), reason.to_owned());
        }
    };
    unless_all("began_at", |usage| usage.began_at.is_some(), NO_BEGIN);
    unless_all("ended_at", |usage| usage.ended_at.is_some(), NO_END);
    let ended_or = format!("{HAS_ENDED}, or {NOT_COUNTED}");
    unless_all("needed_bytes", |usage| usage.needed_bytes.is_some(), &ended_or);
    unless_all(
        "needed_peak_bytes",
        |usage| usage.needed_peak_bytes.is_some(),
        NOT_COUNTED,
    );
    unless_all(
        "needed_peak_at",
        |usage| usage.needed_peak_at.is_some(),
        NOT_COUNTED,
    );
    unless_all(
        "error_bound_bytes",
        |usage| usage.error_bound_bytes.is_some(),
        "what happens between two looks is not seen, or events were lost and it ended before its files could be compared",
    );
    unless_all(
        "busy_cores",
        |usage| usage.busy_cores.is_some(),
        "no time has passed, or no hierarchy counts its CPU time",
    );
    unless_all(
        "busy_seconds",
        |usage| usage.busy_seconds.is_some(),
        "no hierarchy counts its CPU time",
    );
    let kernel_only = "only the kernel programs see it";
    unless_all(
        "processes_started",
        |usage| usage.processes_started.is_some(),
        kernel_only,
    );
    unless_all(
        "processes_ended",
        |usage| usage.processes_ended.is_some(),
        kernel_only,
    );
    unless_all("oom_kills", |usage| usage.oom_kills.is_some(), kernel_only);
}
