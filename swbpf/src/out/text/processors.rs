//! What the summary says of processors and processes.

use super::page::Page;
use super::{joined, reason};
use crate::out::units::{duration, known, percent};
use crate::snapshot::{Kind, Snapshot};

/// A window that covers so much of the whole is the whole.
const WHOLE: f64 = 0.98;

/// CPU time, and what ran.
pub fn processors(page: &mut Page, snapshot: &Snapshot) {
    let cpu = &snapshot.cpu;
    page.section("Processors");
    // Of what runs still it is that of the window, beside a time that is that of the whole.
    let is_of_window = snapshot.window_seconds < snapshot.coverage.seconds * WHOLE;
    let note = match cpu.busy_cores {
        Some(_) => joined([
            is_of_window.then(|| format!("in the last {}", duration(snapshot.window_seconds))),
            cpu.cores_allocated
                .map(|cores| format!("of {} allowed", cores_allowed(cores))),
            cpu.peak_effective_cores
                .map(|cores| format!("busiest second {cores:.2}")),
        ]),
        None => reason(snapshot, "cpu.busy_cores"),
    };
    let cores = known(cpu.busy_cores, |cores| format!("{cores:.2}"));
    page.compared(
        "busy cores",
        &cores,
        &cpu.usage_percent.map_or(String::new(), percent),
        &note,
    );
    let note = match cpu.busy_seconds {
        Some(busy) => joined([
            Some(format!("in {}", duration(snapshot.coverage.seconds))),
            is_of_window.then(|| format!("{:.2} cores on the mean", busy / snapshot.coverage.seconds)),
        ]),
        None => reason(snapshot, "cpu.busy_seconds"),
    };
    page.row("CPU time", &known(cpu.busy_seconds, duration), &note);
    let note = match &cpu.concurrency {
        Some(at_once) => format!("at most; p50 {}, p95 {}", at_once.p50, at_once.p95),
        None => reason(snapshot, "cpu.concurrency"),
    };
    let most = known(cpu.concurrency.as_ref(), |at_once| at_once.max.to_string());
    page.row("running at once", &most, &note);
    processes(page, snapshot);
}

/// `2`, `1.5`.
pub fn cores_allowed(cores: f64) -> String {
    format!("{cores:.2}")
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

fn processes(page: &mut Page, snapshot: &Snapshot) {
    let processes = snapshot.processes;
    let note = match processes.started {
        Some(_) => joined([
            Some("started".to_owned()),
            processes.ended.map(|ended| format!("{ended} ended")),
            processes
                .threads_started
                .filter(|&threads| threads > 0)
                .map(|threads| format!("{threads} more threads")),
            processes
                .moved_in
                .filter(|&tasks| tasks > 0)
                .map(|tasks| format!("{tasks} moved in")),
        ]),
        None => reason(snapshot, "processes.started"),
    };
    page.row(
        "processes",
        &known(processes.started, |started| started.to_string()),
        &note,
    );
    if let (Some(alive), true) = (processes.alive, snapshot.kind != Kind::Summary) {
        page.row("alive now", &alive.to_string(), "");
    }
}
