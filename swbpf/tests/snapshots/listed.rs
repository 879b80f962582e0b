//! Records as they are listed.

use swbpf::snapshot::{Entry, JobState, Listing};

use crate::snapshots::{attached, job, sampled};

/// Every listing here, with its name.
pub fn all_listings() -> Vec<(&'static str, Listing)> {
    vec![
        ("list", listing(entries())),
        ("list_none", listing(vec![])),
        (
            "list_hostile",
            listing_with_name("\u{1b}[2J\u{202e}evil\n\\\u{fffd}"),
        ),
    ]
}

fn listing(jobs: Vec<Entry>) -> Listing {
    Listing::of("2026-11-30T03:00:00.000Z".into(), "node1".into(), jobs)
}

fn entries() -> Vec<Entry> {
    let mut ended = Entry::of("77.jsonl".into(), 0, &job());
    ended.set_state(JobState::Ended, "");
    ended.set_user(Ok(1000), None);
    let mut earlier = Entry::of("77.1.jsonl".into(), 1, &job());
    earlier.set_state(JobState::Ended, "");
    earlier.set_user(Ok(1000), None);
    earlier.unknown.insert(
        "record".into(),
        "the last line is torn; told is the one before".into(),
    );
    let mut sampled = Entry::of("cgroup-web.jsonl".into(), 0, &sampled());
    sampled.set_state(JobState::Running, "");
    sampled.set_user(Err("root alone may read the record"), None);
    let mut attached = Entry::of("12345678.jsonl".into(), 0, &attached());
    attached.set_state(JobState::Unknown, "its record has no summary");
    attached.set_user(Ok(1001), Some("bob".into()));
    let unread = Entry::unread("9.jsonl".into(), 0, "it has no whole line yet");
    vec![unread, attached, earlier, ended, sampled]
}

/// The same, with every text that others chose taken from `name`.
pub fn listing_with_name(name: &str) -> Listing {
    let mut entries = entries();
    for entry in &mut entries {
        entry.job_id = Some(name.into());
        entry.name = Some(name.into());
        entry.user = Some(name.into());
        entry.from = Some(name.into());
        entry.record = format!("cgroup-{name}");
        entry.needed_peak_bytes = Some(u64::MAX);
        entry.busy_cores = Some(1e300);
        entry.oom_kills = Some(u64::MAX);
        let known = [
            "job_id",
            "name",
            "user",
            "from",
            "needed_peak_bytes",
            "busy_cores",
            "oom_kills",
        ];
        entry.unknown.retain(|key, _| !known.contains(&key.as_str()));
        for why in entry.unknown.values_mut() {
            *why = name.into();
        }
    }
    listing(entries)
}
