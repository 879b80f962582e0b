//! The rows of a job: its steps with their tasks.

use std::collections::BTreeMap;

use super::{
    Fold, Unknown,
    below::{Frame, Role, Told},
};
use crate::snapshot::{Kind, Memory, Source, Step, StepTask, Usage};

/// What the target is to a Slurm job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The job, on this node.
    Job,
    /// One of its steps.
    Step(String),
    /// Something else.
    Other,
}

impl Fold {
    pub(super) fn frame(&self) -> Frame {
        Frame {
            begin: self.begin,
            cpus: self.subject.cpus,
            batch_bound_pages: self.subject.batch_bound_pages,
            counts_memory: self.subject.memory_not_counted.is_none(),
        }
    }

    /// The steps, and the reason of each number of theirs that is not known.
    pub(super) fn steps(&self, kind: Kind, memory: &Memory, unknown: &mut Unknown) -> Option<Vec<Step>> {
        if self.subject.place == Place::Other {
            for key in ["steps", "steps_left_out"] {
                unknown.insert(
                    key.to_owned(),
                    "the target is no Slurm job and no step of one".to_owned(),
                );
            }
            return None;
        }
        let in_window = kind == Kind::Progress;
        let since_ns = if in_window { self.previous.ns } else { 0 };
        let mut steps = grouped(self.below.told(since_ns, self.frame(), in_window));
        if let Place::Step(name) = &self.subject.place {
            let tasks = steps.pop().map(|step| step.tasks).unwrap_or_default();
            steps = vec![self.target_as_step(name, memory, tasks)];
        }
        note_unknown(&steps, unknown);
        Some(steps)
    }

    /// The target itself, where it is one step.
    fn target_as_step(&self, name: &str, memory: &Memory, tasks: Vec<StepTask>) -> Step {
        let slot = self.last.kernel.as_ref().map(|kernel| &kernel.slot);
        let busy_ns = super::cpu::busy_ns(&self.first, &self.last);
        let seconds = self.begin.seconds_to(self.last.ns);
        let usage = Usage {
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
        };
        Step {
            step_id: name.to_owned(),
            slurmstepd_bytes: outside_tasks(&usage, &tasks),
            usage,
            tasks,
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

/// Rows by their step; of one name begun twice, as after a requeue, each is told. Ended tasks of an older one of the same
/// name are with the first.
fn grouped(rows: Vec<Told>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut tasks: BTreeMap<String, Vec<StepTask>> = BTreeMap::new();
    let mut daemons: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for Told { role, usage } in rows {
        match role {
            Role::Step(step_id) => steps.push(Step {
                step_id,
                usage,
                slurmstepd_bytes: None,
                tasks: Vec::new(),
            }),
            Role::Task(step, task_id) => tasks.entry(step).or_default().push(StepTask { task_id, usage }),
            Role::Slurmstepd(step) => drop(daemons.insert(step, usage.needed_bytes)),
            Role::Other => {}
        }
    }
    steps.sort_by_cached_key(|step| (order(&step.step_id), step.usage.began_at.clone()));
    for step in &mut steps {
        step.tasks = tasks.remove(&step.step_id).unwrap_or_default();
        step.tasks.sort_by_key(|task| task.task_id);
        step.slurmstepd_bytes = match daemons.get(&step.step_id) {
            Some(bytes) => *bytes,
            None => outside_tasks(&step.usage, &step.tasks),
        };
    }
    steps
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

/// As Slurm lists them: the batch script, then what is not numbered, then the numbers.
fn order(step: &str) -> (u8, u64) {
    match (step, step.parse()) {
        ("batch", _) => (0, 0),
        ("interactive", _) => (1, 0),
        ("extern", _) => (2, 0),
        (_, Ok(number)) => (3, number),
        _ => (4, 0),
    }
}

const HAS_ENDED: &str = "it has ended";
const NOT_SEEN: &str = "it was there before the measurement, or is there still";
const NOT_COUNTED: &str =
    "memory is not counted where the job has its cgroups, or only the kernel programs tell it";

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
    unless_all("began_at", |usage| usage.began_at.is_some(), NOT_SEEN);
    unless_all("ended_at", |usage| usage.ended_at.is_some(), NOT_SEEN);
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
