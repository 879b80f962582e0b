//! The rows of a job's steps and tasks.

use std::fmt::Write as _;

use super::page::Page;
use super::{joined, plural, reason};
use crate::out::escape;
use crate::out::units::{bytes, duration, known};
use crate::snapshot::{Snapshot, Source, Step, Usage};

/// Steps that are shown, and tasks of each: of more, those with the highest peaks.
const SHOWN_STEPS: usize = 16;
const SHOWN_TASKS: usize = 8;
/// Steps that are shown beside a line of progress.
const SHOWN_RUNNING: usize = 8;

/// Columns of a label.
const LABEL: usize = 15;

/// Rows of the summary: one a step, and one for each task where there are several.
pub fn steps(page: &mut Page, snapshot: &Snapshot) {
    let Some(steps) = snapshot.steps.as_ref().filter(|steps| !steps.is_empty()) else {
        return;
    };
    page.section("Steps (highest memory needed; busy cores on the mean)");
    for step in highest(steps, SHOWN_STEPS, |step| &step.usage) {
        row(
            page,
            &format!(".{}", step.step_id),
            &step.usage,
            snapshot,
            "steps[]",
        );
        if let Some(own) = step.slurmstepd_bytes {
            page.row("", "", &format!("{} outside of its tasks", bytes(own)));
        }
        if step.tasks.len() < 2 {
            continue;
        }
        for task in highest(&step.tasks, SHOWN_TASKS, |task| &task.usage) {
            let label = format!("  task {}", task.task_id);
            row(page, &label, &task.usage, snapshot, "steps[].tasks[]");
        }
        rest(page, step.tasks.len().saturating_sub(SHOWN_TASKS), "tasks");
    }
    let left_out = snapshot.steps_left_out.unwrap_or(0);
    let hidden = steps.len().saturating_sub(SHOWN_STEPS) as u64;
    rest(page, (hidden + left_out) as usize, "steps");
}

fn rest(page: &mut Page, count: usize, what: &str) {
    if count > 0 {
        page.row("", "", &format!("and {count} more {what}, with lower peaks"));
    }
}

fn row(page: &mut Page, label: &str, usage: &Usage, snapshot: &Snapshot, key: &str) {
    let cores = mean_cores(usage).map_or(String::new(), |cores| format!("{cores:.2}"));
    let note = match usage.needed_peak_bytes {
        Some(_) => joined([
            Some(duration(usage.seconds)),
            Some(
                if usage.ended_at.is_some() {
                    "ended"
                } else {
                    "running"
                }
                .to_owned(),
            ),
            usage
                .oom_kills
                .filter(|&kills| kills > 0)
                .map(|kills| format!("{kills} killed for want of memory")),
        ]),
        None => reason(snapshot, &format!("{key}.needed_peak_bytes")),
    };
    let peak = known(usage.needed_peak_bytes, bytes);
    page.compared(&escape::head(label, LABEL), &peak, &cores, &note);
}

/// CPU time by the time beside it, also where `busy_cores` is that of the last second.
fn mean_cores(usage: &Usage) -> Option<f64> {
    let mean = usage.busy_seconds? / usage.seconds;
    mean.is_finite().then_some(mean)
}

/// The `count` with the highest peaks, in their own order.
fn highest<T>(all: &[T], count: usize, usage: impl Fn(&T) -> &Usage) -> Vec<&T> {
    let mut by_peak: Vec<usize> = (0..all.len()).collect();
    by_peak.sort_by_key(|&at| std::cmp::Reverse(usage(&all[at]).needed_peak_bytes));
    by_peak.truncate(count);
    by_peak.sort_unstable();
    by_peak.into_iter().map(|at| &all[at]).collect()
}

/// Rows under a line of progress, in its columns: the running steps, and those that ended since the last one.
pub fn progress(steps: &[Step]) -> String {
    let rows = highest(steps, SHOWN_RUNNING, |step| &step.usage);
    let hidden = steps.len() - rows.len();
    let mut text: String = rows
        .into_iter()
        .map(|step| line(&step.step_id, &step.usage))
        .collect();
    if hidden > 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:>10}  and {}",
            "",
            plural(hidden as u64, "more step", "more steps")
        );
    }
    text
}

/// A sampler knows the highest that it saw, not the peak.
pub fn highest_word(source: Source) -> &'static str {
    if source == Source::Kernel { "peak" } else { "seen" }
}

fn line(step: &str, usage: &Usage) -> String {
    let now = if usage.ended_at.is_some() {
        "ended".to_owned()
    } else {
        known(usage.needed_bytes, bytes)
    };
    let kills = match usage.oom_kills.unwrap_or(0) {
        0 => String::new(),
        kills => format!("  OOM kills {kills}"),
    };
    format!(
        "{:>10}  needed {now:>10}  {} {:>10}  busy cores {:>7}{kills}\n",
        escape::head(format!(".{step}"), 10),
        highest_word(usage.source),
        known(usage.needed_peak_bytes, bytes),
        known(usage.busy_cores, |cores| format!("{cores:.2}")),
    )
}
