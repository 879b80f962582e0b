//! What is asked of the records of jobs.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::{hints, moment};
use crate::{
    job::id::{IdError, Recorded},
    snapshot::JobState,
};

/// What runs are, for whoever typed something else.
const RUNS: &str = "a run is 0 for the latest one on this host, else 1, 2 and so on for the earlier ones, as `sw-bpf list` has them";

/// What states are, for whoever typed something else.
const STATES: &str = "a state is one of running, ended, unknown: what records tell";

/// How Slurm names the states of jobs that do not run (sacct(1), squeue(1)), long and short.
const SLURMS: &str = "bf boot_fail ca cancelled cd cf cg completed completing configuring deadline dl f failed nf node_fail oom out_of_memory \
                      pd pending pr preempted requeued resizing revoked rq rs rv s suspended timeout to";

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
    /// Only jobs that ran at this moment or later: 90m, 2h or 7d back from now, 10:00, today, 2026-11-30, 2026-11-30T01:52:03
    /// (UTC, as they are listed), and what else `sacct --starttime` takes
    #[arg(long, value_name = "TIME", value_parser = moment::since)]
    pub since: Option<Timestamp>,
    /// Only jobs of this user, by name or number
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Only jobs in this state: running, ended or unknown
    #[arg(long, value_name = "STATE", value_parser = state)]
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
    typed
        .parse()
        .map_err(|error: IdError| match hints::of_record(typed) {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        })
}

/// Reads the number of a run.
fn run(typed: &str) -> Result<u32, &'static str> {
    typed.parse().map_err(|_| RUNS)
}

/// Reads a state that records tell, `R` and `RUNNING` of Slurm's words too.
fn state(typed: &str) -> Result<JobState, String> {
    match typed.to_ascii_lowercase().as_str() {
        "running" | "r" => Ok(JobState::Running),
        "ended" => Ok(JobState::Ended),
        "unknown" => Ok(JobState::Unknown),
        word if SLURMS.split(' ').any(|known| known == word) => Err(format!(
            "{STATES}; whether a job has completed or failed is Slurm's to say, by `sacct --state {}`",
            word.to_ascii_uppercase()
        )),
        _ => Err(STATES.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_those_of_records() {
        for (typed, expected) in [
            ("running", JobState::Running),
            ("RUNNING", JobState::Running),
            ("R", JobState::Running),
            ("Ended", JobState::Ended),
            ("unknown", JobState::Unknown),
        ] {
            assert_eq!(state(typed), Ok(expected), "{typed}");
        }
        for (typed, way) in [
            ("cd", "sacct --state CD"),
            ("Failed", "sacct --state FAILED"),
            ("done", "one of running, ended, unknown"),
            ("", "one of running, ended, unknown"),
        ] {
            let told = state(typed).expect_err("no state of a record");
            assert!(told.contains(way), "{told}");
        }
    }
}
