//! The records of a host: one row each.

use std::collections::BTreeSet;

use super::REASON;
use super::page::{Page, WIDTH, wrapped};
use crate::out::escape;
use crate::out::units::{bytes, duration, known};
use crate::snapshot::{Entry, JobState, Listing, Source};

/// Columns of a job, of a user, of a state, of a moment and of the numbers.
const JOB: usize = 13;
const USER: usize = 8;
const STATE: usize = 7;
const BEGIN: usize = 16;
const SPAN: usize = 9;
const NEEDED: usize = 11;
const CORES: usize = 6;
const KILLS: usize = 3;

/// What stands behind a number that is the least that was needed.
const AT_LEAST: char = '+';

/// The whole of `listing` in plain text: at most 80 columns of printable ASCII, whatever names it holds.
pub fn listed(listing: &Listing) -> String {
    let mut page = Page::default();
    if listing.jobs.is_empty() {
        page.line("no record is there, or none that was asked for");
        return page.finish();
    }
    row(
        &mut page,
        [
            "JOB",
            "USER",
            "STATE",
            "FROM (UTC)",
            "MEASURED",
            "NEEDED",
            "CORES",
            "OOM",
        ],
    );
    for entry in &listing.jobs {
        row_of(&mut page, entry);
    }
    notes(&mut page, &listing.jobs);
    page.finish()
}

fn row(page: &mut Page, cells: [&str; 8]) {
    let [job, user, state, from, span, needed, cores, kills] = cells;
    let job = escape::head(job, JOB);
    let user = escape::head(user, USER);
    page.line(&format!(
        "{job:<JOB$} {user:<USER$} {state:<STATE$} {from:<BEGIN$} {span:>SPAN$} {needed:>NEEDED$} {cores:>CORES$} {kills:>KILLS$}"
    ));
}

fn row_of(page: &mut Page, entry: &Entry) {
    let name = entry.record.strip_suffix(".jsonl").unwrap_or(&entry.record);
    let name = name.strip_suffix(&format!(".{}", entry.run)).unwrap_or(name);
    let id = entry.job_id.as_deref().unwrap_or(name);
    let mut job = match entry.run {
        0 => id.to_owned(),
        run => format!("{id} #{run}"),
    };
    // A name is told whole, since it is what `show` takes: in a line of its own where it is long.
    if escape::head(&job, WIDTH).len() > JOB {
        page.line(&escape::head(&job, WIDTH));
        job.clear();
    }
    let uid = entry.uid.map(|uid| uid.to_string());
    let user = entry.user.as_deref().or(uid.as_deref()).unwrap_or("-");
    // What is no moment is told as text.
    let from = entry
        .from
        .as_ref()
        .map_or("-".to_owned(), |from| escape::head(minute(from), BEGIN));
    let mut needed = known(entry.needed_peak_bytes, bytes);
    if entry.needed_peak_bytes.is_some() && entry.source != Some(Source::Kernel) {
        needed.push(AT_LEAST);
    }
    let cores = entry
        .busy_cores
        .map_or("-".to_owned(), |cores| format!("{cores:.2}"));
    let kills = entry.oom_kills.map_or("-".to_owned(), |kills| kills.to_string());
    let cells = [
        &job,
        user,
        word(entry.state),
        &from,
        &entry.seconds.map_or("-".to_owned(), duration),
        &needed,
        &escape::head(cores, CORES),
        &escape::head(kills, KILLS),
    ];
    row(page, cells);
}

/// `2026-11-30 01:52` of an RFC 3339 timestamp.
fn minute(rfc3339: &str) -> String {
    rfc3339.parse::<jiff::Timestamp>().map_or_else(
        |_| rfc3339.to_owned(),
        |moment| moment.strftime("%Y-%m-%d %H:%M").to_string(),
    )
}

fn word(state: JobState) -> &'static str {
    match state {
        JobState::Running => "running",
        JobState::Ended => "ended",
        JobState::Unknown => "unknown",
    }
}

/// Why things are not known, each reason once.
fn notes(page: &mut Page, entries: &[Entry]) {
    let mut notes = BTreeSet::new();
    for entry in entries {
        // Of a record that tells nothing, all keys have the same reason.
        let unread = entry.unknown.get("from").or(entry.unknown.get("record"));
        if let Some(why) = unread {
            notes.insert(format!("{}: {why}", entry.record));
        } else if let Some(why) = entry.unknown.get("state") {
            notes.insert(format!("unknown: {why}"));
        }
    }
    if entries
        .iter()
        .any(|entry| entry.source.is_some_and(|source| source != Source::Kernel))
    {
        notes.insert(format!(
            "{AT_LEAST} sampled: so much was seen, and more can have been needed"
        ));
    }
    if !notes.is_empty() {
        page.line("");
    }
    for note in notes {
        for line in wrapped(&escape::head(note, REASON), WIDTH) {
            page.line(&line);
        }
    }
}
