//! A job on all its nodes: one row a node, and the sums.

use super::page::{LABEL, Page, WIDTH};
use super::processors::cores_allowed;
use super::{REASON, plural};
use crate::out::escape;
use crate::out::units::{bytes, duration, known};
use crate::snapshot::{Gathered, HeldBy, Snapshot, Source};

/// Columns of a node's name.
const NAME: usize = 20;
/// Columns of a number.
const NUMBER: usize = 11;
/// Columns of the number of cores that a node may use.
const OF: usize = 6;

/// The whole of `gathered` in plain text: at most 80 columns of printable ASCII, whatever names it holds.
pub fn gathered(gathered: &Gathered) -> String {
    let mut page = Page::default();
    let nodes = gathered.nodes.len();
    let title = format!(
        "sw-bpf: job {} on {}",
        gathered.job_id,
        plural(nodes as u64, "node", "nodes")
    );
    page.line(&escape::head(title, WIDTH));
    page.line(&format!(
        "window of {} on each, at its own moment",
        duration(gathered.window_seconds)
    ));
    page.line("");
    row(
        &mut page,
        "Node",
        ["needed now", "peak", "busy cores", "of", "source"],
    );
    for answer in &gathered.nodes {
        match &answer.snapshot {
            Some(snapshot) => row_of(&mut page, &answer.node, snapshot),
            None => row(&mut page, &answer.node, ["no answer", "", "", "", ""]),
        }
    }
    totals(&mut page, gathered);
    missing(&mut page, gathered);
    page.finish()
}

fn row(page: &mut Page, name: &str, [needed, peak, cores, of, source]: [&str; 5]) {
    let name = escape::head(name, NAME);
    // A number that a node made up can be of any length.
    let [needed, peak, cores] = [needed, peak, cores].map(|cell| escape::head(cell, NUMBER));
    let of = escape::head(of, OF);
    page.line(&format!(
        "  {name:<NAME$} {needed:>NUMBER$} {peak:>NUMBER$} {cores:>NUMBER$} {of:>OF$}  {source}"
    ));
}

fn row_of(page: &mut Page, node: &str, snapshot: &Snapshot) {
    let (memory, cpu) = (&snapshot.memory, &snapshot.cpu);
    let cells = [
        &known(memory.needed_bytes, bytes),
        &known(memory.needed_peak_bytes, bytes),
        &known(cpu.busy_cores, cores),
        &cpu.cores_allocated.map_or(String::new(), cores_allowed),
        word(memory.source),
    ];
    row(page, node, cells);
}

fn totals(page: &mut Page, gathered: &Gathered) {
    let totals = &gathered.totals;
    let all = gathered.nodes.len();
    let answered = all - gathered.missing.len();
    if answered == 0 {
        return;
    }
    let name = if answered == all {
        "all".to_owned()
    } else {
        format!("{answered} of {all}")
    };
    let cells = [
        &known(totals.needed_bytes, bytes),
        &known(totals.needed_peak_sum_bytes, bytes),
        &known(totals.busy_cores, cores),
        "",
        word(totals.source),
    ];
    row(page, &name, cells);
    page.line("");
    page.line(match totals.source {
        Source::Kernel => "Peaks are at different moments: together these nodes needed at most their sum.",
        _ => "Peaks are the highest seen: what lies between two looks is not seen.",
    });
    if is_by_agent(gathered) {
        page.line("Where an agent answered, its peak is that of all it has counted of the job.");
    }
    if let Some(bound) = totals.error_bound_bytes.filter(|bound| *bound > 0) {
        page.row("error bound", &bytes(bound), super::bound_of(totals.source));
    }
    for (label, key) in [
        ("needed now", "needed_bytes"),
        ("peak", "needed_peak_sum_bytes"),
        ("busy cores", "busy_cores"),
    ] {
        if let Some(why) = gathered.unknown.get(&format!("totals.{key}")) {
            page.row(label, &known(None, bytes), &escape::head(why, REASON));
        }
    }
}

/// Whether the agent of a node answered, who has counted since before the window.
fn is_by_agent(gathered: &Gathered) -> bool {
    let mut told = gathered
        .nodes
        .iter()
        .filter_map(|answer| answer.snapshot.as_ref());
    told.any(|snapshot| snapshot.probes.held_by == HeldBy::Agent)
}

/// Why nodes did not answer.
fn missing(page: &mut Page, gathered: &Gathered) {
    let reasons: Vec<_> = gathered
        .nodes
        .iter()
        .filter_map(|answer| Some((&answer.node, answer.reason.as_ref()?)))
        .collect();
    if reasons.is_empty() {
        return;
    }
    page.section("No answer");
    for (node, why) in reasons {
        let why = escape::head(why, REASON);
        let name = escape::head(node, WIDTH - 2);
        if name.len() <= LABEL {
            page.row(&name, "", &why);
        } else {
            page.line(&format!("  {name}"));
            page.row("", "", &why);
        }
    }
}

fn cores(cores: f64) -> String {
    format!("{cores:.2}")
}

fn word(source: Source) -> &'static str {
    match source {
        Source::Kernel => "kernel",
        Source::Sampled => "sampled",
        Source::Unavailable => "unavailable",
    }
}
