//! What is asked of the records of jobs.

use std::path::PathBuf;

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use jiff::{SignedDuration, Timestamp, Zoned, civil::Date, tz::TimeZone};

use crate::{
    job::id::{IdError, Recorded},
    snapshot::JobState,
};

/// What runs are, for whoever typed something else.
const RUNS: &str = "a run is 0 for the latest one on this host, else 1, 2 and so on for the earlier ones, as `sw-bpf list` has them";

/// What a moment looks like, for whoever typed something else.
const MOMENTS: &str = "a moment is a span back from now as 90m, 2h or 7d, a day as 2026-11-30 (in UTC), or 2026-11-30T01:52:03Z";

/// `sw-bpf show`.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(override_usage = "sw-bpf show JOB [--run N] [--json | --admin-comment] [--records DIR]")]
pub struct Show {
    /// The job: 123, `123_4`, 123+1 or an SLUID; 123.0 or 123.batch is a step of it, cgroup-NAME what the agent watches beside
    /// jobs
    #[arg(value_name = "JOB", value_parser = recorded)]
    pub job: Recorded,
    /// An earlier run of it on this host, by the number that `list` has; without it, the latest
    #[arg(long, value_name = "N", value_parser = run, default_value = "0", hide_default_value = true, allow_negative_numbers = true)]
    pub run: u32,
    /// Answer with one JSON object on one line
    #[arg(long)]
    pub json: bool,
    /// Answer with one short line KEY=VALUE,... such as Slurm keeps as the `AdminComment` of a job
    #[arg(long, conflicts_with = "json")]
    pub admin_comment: bool,
    /// Read this directory of records, and do not ask the agent
    #[arg(long, value_name = "DIR")]
    pub records: Option<PathBuf>,
}

/// `sw-bpf list`.
#[derive(Debug, PartialEq, Eq, Args)]
pub struct List {
    /// Answer with one JSON object on one line
    #[arg(long)]
    pub json: bool,
    /// Only jobs that ran at this moment or later: 90m, 2h or 7d back from now, 2026-11-30 (in UTC), 2026-11-30T01:52:03Z
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<Timestamp>,
    /// Only jobs of this user, by name or number
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Only jobs in this state
    #[arg(long, value_name = "STATE", value_parser = state())]
    pub state: Option<JobState>,
    /// Read this directory of records, and do not ask the agent
    #[arg(long, value_name = "DIR")]
    pub records: Option<PathBuf>,
}

/// Reads what a record is asked for by.
fn recorded(typed: &str) -> Result<Recorded, String> {
    if typed.is_empty() {
        return Err("the id is empty: is a variable not set?".to_owned());
    }
    typed.parse().map_err(|error: IdError| error.to_string())
}

/// Reads the number of a run.
fn run(typed: &str) -> Result<u32, &'static str> {
    typed.parse().map_err(|_| RUNS)
}

fn state() -> impl TypedValueParser<Value = JobState> {
    PossibleValuesParser::new(["running", "ended", "unknown"]).map(|word| match word.as_str() {
        "running" => JobState::Running,
        "ended" => JobState::Ended,
        _ => JobState::Unknown,
    })
}

/// Reads the moment since when.
fn since(typed: &str) -> Result<Timestamp, &'static str> {
    moment(typed, Timestamp::now()).ok_or(MOMENTS)
}

/// `2h` before `now`, a day of UTC, or a moment as it stands.
fn moment(typed: &str, now: Timestamp) -> Option<Timestamp> {
    if let Some(days) = typed.strip_suffix('d') {
        let hours = days.parse::<u32>().ok()?.checked_mul(24)?;
        return now.checked_sub(SignedDuration::from_hours(hours.into())).ok();
    }
    if let Ok(span) = typed.parse::<SignedDuration>() {
        return (!span.is_negative())
            .then(|| now.checked_sub(span).ok())
            .flatten();
    }
    if let Ok(moment) = typed.parse::<Timestamp>() {
        return Some(moment);
    }
    // What has a time of day, and no zone, is no moment.
    let day: Date = (typed.len() == "2026-11-30".len()).then(|| typed.parse().ok())??;
    let begin: Zoned = day.to_zoned(TimeZone::UTC).ok()?;
    Some(begin.timestamp())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moments_are_spans_days_or_moments() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().expect("a moment");
        for (typed, expected) in [
            ("2h", "2026-11-30T10:00:00Z"),
            ("90m", "2026-11-30T10:30:00Z"),
            ("1h 30m", "2026-11-30T10:30:00Z"),
            ("7d", "2026-11-23T12:00:00Z"),
            ("0d", "2026-11-30T12:00:00Z"),
            ("2026-11-29", "2026-11-29T00:00:00Z"),
            ("2026-11-29T01:52:03Z", "2026-11-29T01:52:03Z"),
            ("2026-11-29T01:52:03+01:00", "2026-11-29T00:52:03Z"),
        ] {
            let found = moment(typed, now).unwrap_or_else(|| panic!("{typed}"));
            assert_eq!(found.to_string(), expected, "{typed}");
        }
        for typed in [
            "",
            "d",
            "-2h",
            "2",
            "yesterday",
            "2026-11-31",
            "99999999999d",
            "4000000000d",
            "2026-11-29T01:52:03",
        ] {
            assert_eq!(moment(typed, now), None, "{typed}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_moment_or_none(typed in "(?s).{0,30}", near in "[-0-9dhmTZ:+]{0,30}") {
            let _ = (since(&typed), since(&near));
        }
    }
}
