//! The summary, compared with `tests/golden/`; `SWBPF_BLESS=1` rewrites what is there.

#[path = "snapshots/listed.rs"]
mod listed;
mod snapshots;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use swbpf::out::{json, text};
use swbpf::record::Writer;
use swbpf::snapshot::{Gathered, Listing, Snapshot};

fn assert_plain(text: &str) {
    for line in text.lines() {
        assert!(line.len() <= 80, "{} columns: {line}", line.len());
        assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line:?}");
        assert_eq!(line.trim_end(), line, "space at the end");
    }
}

#[test]
fn summaries_are_as_they_were_approved() {
    for (name, snapshot) in snapshots::all() {
        assert_approved(name, &text::summary(&snapshot));
    }
    for (name, gathered) in snapshots::all_gathered() {
        assert_approved(name, &text::gathered(&gathered));
    }
    for (name, listing) in listed::all_listings() {
        assert_approved(name, &text::listed(&listing));
    }
    let job = snapshots::job();
    for (name, step) in [("step_of_tasks", 1), ("step_killed", 2)] {
        let step = &job.steps.as_ref().expect("steps")[step];
        assert_approved(name, &text::step(&job, step));
    }
}

/// What the comment of a job may be made of: neither Slurm nor a shell takes any of it for more than a letter.
fn assert_comment(comment: &str) {
    assert!(comment.len() <= text::MAX_COMMENT, "{comment}");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_=,.-".contains(c);
    assert!(comment.chars().all(is_plain), "{comment:?}");
}

#[test]
fn a_comment_is_a_short_line_of_what_is_known() {
    for (name, snapshot) in snapshots::all() {
        let comment = text::comment(&snapshot);
        assert_comment(&comment);
        let has_peak = snapshot.memory.needed_peak_bytes.is_some();
        assert_eq!(
            comment.contains("needed_peak_bytes="),
            has_peak,
            "{name}: {comment}"
        );
    }
    assert_eq!(
        text::comment(&snapshots::oom()),
        "swbpf=1,needed_peak_bytes=33554432,error_bound_bytes=0,source=kernel,busy_seconds=0.34,cores_allocated=2.00,\
         seconds=0.41,from_start=true,oom_kills=7"
    );
}

fn assert_approved(name: &str, told: &str) {
    assert_plain(told);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"));
    if std::env::var_os("SWBPF_BLESS").is_some() {
        fs::write(&path, told).expect("golden file");
    }
    let approved = fs::read_to_string(&path).expect("golden file; SWBPF_BLESS=1 makes it");
    assert_eq!(told, approved, "{name}: SWBPF_BLESS=1 approves it");
}

#[test]
fn progress_is_one_line_and_one_for_each_step_with_columns_that_stay() {
    let told: Vec<_> = snapshots::all()
        .into_iter()
        .map(|(_, snapshot)| {
            (
                text::progress(&snapshot),
                snapshot.steps.map_or(0, |steps| steps.len()),
            )
        })
        .collect();
    let mut lines = Vec::new();
    for (text, steps) in &told {
        assert_plain(text);
        assert_eq!(text.lines().count(), 1 + steps, "{text}");
        lines.extend(text.split_inclusive('\n'));
    }
    for line in &lines {
        assert_eq!(line.find("busy cores"), lines[0].find("busy cores"), "{line}");
    }
    let expected = "   412 ms  needed        0 B  peak  300.9 MiB  busy cores    0.82\n";
    assert_eq!(lines[0].trim_start(), expected.trim_start());
    assert!(
        lines[4].contains("seen  300.9 MiB"),
        "a sampler knows no peak: {}",
        lines[4]
    );
}

#[test]
fn a_line_of_json_reads_back_as_it_was() {
    for (name, snapshot) in snapshots::all() {
        let line = json::line(&snapshot).expect("JSON");
        assert_eq!(line.find('\n'), Some(line.len() - 1), "{name}");
        assert_eq!(serde_json::from_str::<Snapshot>(&line).expect(name), snapshot);
    }
    for (name, gathered) in snapshots::all_gathered() {
        let line = json::line(&gathered).expect("JSON");
        assert_eq!(line.find('\n'), Some(line.len() - 1), "{name}");
        assert_eq!(serde_json::from_str::<Gathered>(&line).expect(name), gathered);
    }
    for (name, listing) in listed::all_listings() {
        let line = json::line(&listing).expect("JSON");
        assert_eq!(line.find('\n'), Some(line.len() - 1), "{name}");
        assert_eq!(serde_json::from_str::<Listing>(&line).expect(name), listing);
    }
}

#[test]
fn a_record_is_told_line_by_line_and_begins_anew() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("record.jsonl");
    fs::write(&path, "of an earlier run").expect("file");
    let mut record = Writer::create(&path).expect("record");
    let mut expected = String::new();
    for snapshot in [snapshots::attached(), snapshots::kernel()] {
        record.append(&snapshot).expect("append");
        expected += &json::line(&snapshot).expect("JSON");
        assert_eq!(fs::read_to_string(&path).expect("file"), expected);
    }
}

#[test]
fn a_record_that_cannot_be_written_says_which() {
    let folder = tempfile::tempdir().expect("folder");
    let error = Writer::create(folder.path()).expect_err("a folder is no file");
    assert_eq!(error.exit_code(), 73);
    assert!(
        error.to_string().contains(&folder.path().display().to_string()),
        "{error}"
    );
    let mut full = Writer::create(Path::new("/dev/full")).expect("device");
    assert_eq!(
        full.append(&snapshots::kernel()).expect_err("full").exit_code(),
        73
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_name_leaves_its_place(name: String, path in "(.|\n|[^/]){0,300}", which in 0_usize..8) {
        let snapshot = snapshots::all().swap_remove(which).1;
        let hostile = snapshots::hostile::with_names(snapshot, &name, &path);
        assert_plain(&text::summary(&hostile));
        assert_plain(&text::progress(&hostile));
        for step in hostile.steps.iter().flatten() {
            assert_plain(&text::step(&hostile, step));
        }
        assert_comment(&text::comment(&hostile));
        assert_plain(&text::gathered(&snapshots::gathered::gathered_with_names(&name)));
        assert_plain(&text::listed(&listed::listing_with_name(&name)));
    }
}
