//! Why a job waits, in plain words.

use std::fmt::Write;

use jiff::Timestamp;

use super::refuse::plain;
use crate::job::slurm::{JobFacts, TimeLimit};

/// Several lines that say why a job that has not started waits, since when, when Slurm expects it to start, and
/// whether its time limit can ever be met.
///
/// `cap` is the longest limit of its partition, where that was asked for. What `facts` do not say is left out.
pub fn explain(facts: &JobFacts, cap: Option<TimeLimit>, now: Timestamp) -> String {
    let mut text = format!("Job {} has not started.\n", facts.shown_id());
    let reason = facts
        .reason
        .as_deref()
        .map_or_else(|| "not told".to_owned(), plain);
    match meaning(&reason) {
        Some(meaning) => line(&mut text, "why", &format!("{reason}: {meaning}")),
        None => line(&mut text, "why", &reason),
    }
    if let Some(dependency) = &facts.dependency {
        line(&mut text, "waits for", &plain(dependency));
    }
    if let Some(submitted) = facts.submitted {
        line(&mut text, "since", &moment(submitted, now));
    }
    if let Some(eligible) = facts.eligible.filter(|&eligible| eligible > now) {
        line(&mut text, "not before", &moment(eligible, now));
    }
    match facts.start {
        // A time that has passed is not expected any more.
        Some(start) if start > now => {
            line(
                &mut text,
                "start",
                &format!("{}, as Slurm expects it now", moment(start, now)),
            );
        }
        _ => line(&mut text, "start", "Slurm expects no time yet"),
    }
    add_limit(&mut text, facts, cap);
    text
}

fn line(text: &mut String, what: &str, value: &str) {
    // A String takes everything.
    let _ = writeln!(text, "  {what:<12}{value}");
}

/// The trap: a limit beyond the partition's does not become possible by waiting.
fn add_limit(text: &mut String, facts: &JobFacts, cap: Option<TimeLimit>) {
    let partition = facts
        .partition
        .as_deref()
        .map_or_else(|| "its partition".to_owned(), plain);
    let asked = facts.time_limit.map(|limit| format!("{limit} asked for"));
    let most = cap.map(|cap| format!("{cap} at most in {partition}"));
    let both: Vec<_> = asked.into_iter().chain(most).collect();
    if !both.is_empty() {
        line(text, "time limit", &both.join(", "));
    }
    match (facts.time_limit, cap) {
        (Some(asked), Some(cap)) if asked > cap => {
            let _ = writeln!(
                text,
                "It asks for more time than {partition} gives: waiting does not help. Cancel it and hand it in again \
                 with --time={cap} or less, or in a partition that gives more."
            );
        }
        (Some(_), Some(cap @ TimeLimit::Limited(_))) => {
            let _ = writeln!(
                text,
                "A limit above {cap} cannot be had here by changing the job: it takes another partition, and so to \
                 cancel it and to hand it in again."
            );
        }
        _ if facts.reason.as_deref() == Some("PartitionTimeLimit") => {
            let _ = writeln!(
                text,
                "Its time limit is above what {partition} gives: waiting does not help. Cancel it and hand it in \
                 again with a shorter --time, or in a partition that gives more."
            );
        }
        _ => {}
    }
}

/// `2026-11-30 07:55 UTC, 2 h 10 min ago`.
fn moment(time: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(time.as_second());
    let span = span(seconds.unsigned_abs());
    let distance = match seconds {
        0.. => format!("{span} ago"),
        _ => format!("in {span}"),
    };
    format!("{} UTC, {distance}", time.strftime("%Y-%m-%d %H:%M"))
}

fn span(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// Slurm's word for a reason in plain words, for those that are met often.
fn meaning(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "Priority" => "jobs of higher priority go first",
        "Resources" => "what it asks for is in use; it is among the next",
        "Dependency" => "another job has to end first",
        "DependencyNeverSatisfied" => "the job that it waits for did not end as asked: it will never start",
        "JobHeldUser" => "its user holds it back; `scontrol release` lets it go",
        "JobHeldAdmin" => "an administrator holds it back",
        "BeginTime" => "it was asked not to start before a certain time",
        "JobArrayTaskLimit" => "as many tasks of its array run as were allowed at once",
        "PartitionTimeLimit" => "its time limit is above that of the partition",
        "PartitionNodeLimit" => "it asks for more nodes than the partition gives to one job",
        "PartitionDown" => "the partition takes jobs, but starts none at present",
        "PartitionInactive" => "the partition is closed",
        "ReqNodeNotAvail" | "NodeDown" => "a node that it needs is down, reserved or drained",
        "BadConstraints" => "no node can ever give what it asks for",
        "Reservation" | "ReservationDeleted" => "it waits for a reservation, or that is gone",
        "Licenses" => "a licence that it asks for is in use",
        "Prolog" => "its nodes are being prepared",
        "Cleaning" => "what an earlier run of it left is being cleaned up",
        "InvalidAccount" | "InvalidQOS" => "its account or QOS is not valid any more",
        "AccountNotAllowed" | "QOSNotAllowed" => "the partition does not take its account or QOS",
        "JobLaunchFailure" | "launch_failed_requeued_held" => "it failed to start and is held back",
        _ => return meaning_of_limit(reason),
    })
}

/// Limits of an association or QOS come in many names: `AssocGrpCpuLimit`, `QOSMaxJobsPerUserLimit`.
fn meaning_of_limit(reason: &str) -> Option<&'static str> {
    let is = |part| reason.contains(part);
    if reason.starts_with("ReqNodeNotAvail") {
        meaning("ReqNodeNotAvail")
    } else if reason.starts_with("Assoc") && is("Grp") {
        Some("the jobs of its account together use what that account is allowed")
    } else if reason.starts_with("Assoc") {
        Some("it, or its user's jobs together, would use more than its account allows")
    } else if reason.starts_with("QOS") && is("Grp") {
        Some("the jobs of its QOS together use what that QOS is allowed")
    } else if reason.starts_with("QOS") {
        Some("it, or its user's jobs together, would use more than its QOS allows")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::job::slurm::State;

    const NOW: &str = "2026-11-30T10:05:00Z";

    fn at(time: &str) -> Timestamp {
        time.parse().expect(time)
    }

    fn waiting(reason: &str) -> JobFacts {
        JobFacts {
            job_id: 8,
            state: State::of(["PENDING".to_owned()]),
            reason: Some(reason.into()),
            partition: Some("short".into()),
            submitted: Some(at("2026-11-30T07:55:00Z")),
            eligible: Some(at("2026-11-30T07:55:00Z")),
            time_limit: Some(limit(3600)),
            ..JobFacts::default()
        }
    }

    fn limit(seconds: u64) -> TimeLimit {
        TimeLimit::Limited(Duration::from_secs(seconds))
    }

    fn told(facts: &JobFacts, cap: Option<TimeLimit>) -> String {
        explain(facts, cap, NOW.parse().expect("a time"))
    }

    #[test]
    fn a_job_in_the_queue_says_when_it_may_start() {
        let facts = JobFacts {
            start: Some(at("2026-12-01T12:05:00Z")),
            ..waiting("Priority")
        };
        assert_eq!(
            told(&facts, Some(TimeLimit::Unlimited)),
            "Job 8 has not started.\n  \
             why         Priority: jobs of higher priority go first\n  \
             since       2026-11-30 07:55 UTC, 2 h 10 min ago\n  \
             start       2026-12-01 12:05 UTC, in 1 d 2 h, as Slurm expects it now\n  \
             time limit  01:00:00 asked for, UNLIMITED at most in short\n"
        );
    }

    #[test]
    fn a_limit_beyond_the_cap_is_not_cured_by_waiting() {
        let text = told(&waiting("PartitionTimeLimit"), Some(limit(600)));
        assert!(
            text.contains("01:00:00 asked for, 00:10:00 at most in short"),
            "{text}"
        );
        assert!(
            text.ends_with("with --time=00:10:00 or less, or in a partition that gives more.\n"),
            "{text}"
        );
        assert!(text.contains("waiting does not help"), "{text}");
        // The cap was not asked for: no number is made up.
        let text = told(&waiting("PartitionTimeLimit"), None);
        assert!(
            text.contains("waiting does not help") && !text.contains("at most"),
            "{text}"
        );
        let unlimited = JobFacts {
            time_limit: Some(TimeLimit::Unlimited),
            ..waiting("Resources")
        };
        assert!(told(&unlimited, Some(limit(600))).contains("waiting does not help"));
    }

    #[test]
    fn within_the_cap_only_what_is_true_is_said() {
        let text = told(&waiting("Resources"), Some(limit(3600)));
        assert!(!text.contains("waiting does not help"), "{text}");
        assert!(
            text.contains("A limit above 01:00:00 cannot be had here"),
            "{text}"
        );
        let text = told(&waiting("Resources"), None);
        assert!(text.ends_with("time limit  01:00:00 asked for\n"), "{text}");
        let text = told(
            &JobFacts {
                job_id: 8,
                ..JobFacts::default()
            },
            None,
        );
        assert_eq!(
            text,
            "Job 8 has not started.\n  why         not told\n  start       Slurm expects no time yet\n"
        );
    }

    #[test]
    fn what_it_waits_for_is_named() {
        let facts = JobFacts {
            dependency: Some("afterok:1(unfulfilled)".into()),
            ..waiting("Dependency")
        };
        assert!(told(&facts, None).contains("  waits for   afterok:1(unfulfilled)\n"));
        let facts = JobFacts {
            eligible: Some(at("2026-11-30T10:05:30Z")),
            start: Some(at("2026-11-30T10:05:30Z")),
            ..waiting("BeginTime")
        };
        assert!(told(&facts, None).contains("  not before  2026-11-30 10:05 UTC, in 30 s\n"));
        // An estimate that has passed is none.
        let facts = JobFacts {
            start: Some(at("2026-11-30T10:00:00Z")),
            ..waiting("Resources")
        };
        assert!(told(&facts, None).contains("Slurm expects no time yet"));
    }

    #[test]
    fn common_reasons_are_put_in_plain_words() {
        for reason in [
            "Resources",
            "Priority",
            "Dependency",
            "JobHeldUser",
            "PartitionDown",
            "JobArrayTaskLimit",
            "AssocGrpCpuLimit",
            "AssocMaxJobsLimit",
            "QOSGrpMemLimit",
            "QOSMaxCpuPerUserLimit",
            "ReqNodeNotAvail,_UnavailableNodes:cn01",
        ] {
            let text = told(&waiting(reason), None);
            assert!(text.contains(&format!("  why         {reason}: ")), "{text}");
        }
        let text = told(&waiting("Some\u{1b}[31m\nNew"), None);
        assert!(text.contains("  why         Some??31m?New\n"), "{text}");
    }

    proptest! {
        #[test]
        fn whatever_the_facts_are_the_lines_are_plain(
            reason in "(?s).{0,40}", partition in "(?s).{0,20}", dependency in "(?s).{0,20}",
            times in prop::collection::vec(prop::option::of(-9_000_000_000_i64..9_000_000_000), 3), limits in prop::collection::vec(prop::option::of(0_u64..), 2),
        ) {
            let time = |n: usize| times[n].and_then(|seconds| Timestamp::from_second(seconds).ok());
            let limit = |n: usize| limits[n].map(|seconds| TimeLimit::Limited(Duration::from_secs(seconds)));
            let facts = JobFacts {
                reason: Some(reason),
                partition: Some(partition),
                dependency: Some(dependency),
                submitted: time(0),
                eligible: time(1),
                start: time(2),
                time_limit: limit(0),
                ..waiting("")
            };
            let text = told(&facts, limit(1));
            prop_assert!(text.lines().count() <= 8);
            prop_assert!(!text.replace('\n', "").chars().any(char::is_control));
        }
    }
}
