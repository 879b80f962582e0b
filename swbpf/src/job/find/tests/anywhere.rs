//! Jobs by Slurm's word alone.

use super::*;
use crate::job::find::anywhere::running;

/// Raw id of the job that runs, or the refusal.
fn told(id: &str, uid: u32, asked: Result<&[JobFacts], &Unknown>) -> String {
    let id = id.parse().expect(id);
    let caller = Caller {
        uid,
        ..Caller::default()
    };
    let found = running(&Question {
        id: &id,
        wanted_node: None,
        asked,
        caller: &caller,
    });
    match found {
        Ok(facts) => format!("runs as {}", facts.job_id),
        Err(found) => match found.or_refuse(&id) {
            Err(error) => format!("{}: {error}", error.exit_code()),
            Ok(here) => panic!("{here:?}"),
        },
    }
}

#[test]
fn a_job_that_runs_is_found_without_a_cgroup() {
    for uid in [0, 1001] {
        assert_eq!(told("7", uid, Ok(&[facts(7, "RUNNING")])), "runs as 7");
        // Others of its array wait or have ended.
        let array = [
            task(4, 4, "3-9", "PENDING"),
            task(19, 4, "1", "RUNNING"),
            task(20, 4, "2", "COMPLETED"),
        ];
        assert_eq!(told("4", uid, Ok(&array)), "runs as 19");
    }
    let nobodys = JobFacts {
        uid: None,
        ..facts(7, "RUNNING")
    };
    assert_eq!(told("7", 1001, Ok(&[nobodys])), "runs as 7");
}

#[test]
fn what_does_not_run_or_is_several_is_refused_as_it_is_elsewhere() {
    assert!(told("7", 1001, Ok(&[facts(7, "PENDING")])).starts_with("65: "));
    assert!(told("7", 1001, Ok(&[facts(7, "COMPLETED")])).starts_with("66: "));
    assert!(told("7", 1001, Ok(&[])).starts_with("67: no job 7"));
    assert!(told("7", 1002, Ok(&[facts(7, "RUNNING")])).starts_with("77: "));
    assert!(told("7", 0, Err(&silent())).starts_with("67: "));
    let components = [component(137, 137, 0), component(138, 137, 1)];
    let several = "2: 137 means several jobs here, name one of them:\n  137+0\n  137+1";
    assert_eq!(told("137", 0, Ok(&components)), several);
    assert_eq!(told("137+1", 0, Ok(&components[1..])), "runs as 138");
}
