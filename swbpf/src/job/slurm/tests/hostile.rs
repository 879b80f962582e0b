//! What is not read from answers.

use proptest::prelude::*;

use super::{job, one, word};
use crate::job::slurm::facts::family;
use crate::job::slurm::*;

#[test]
fn names_and_comments_forge_nothing() {
    let facts = one(stored!("name_newline.txt"));
    assert_eq!(
        facts.name.as_deref(),
        Some("new\nJobState=RUNNING UserId=root(0) NodeList=node9")
    );
    assert_eq!(
        (word(&facts).as_str(), facts.uid, facts.nodes),
        ("PENDING", Some(1001), Some(vec![]))
    );
    let facts = one(stored!("name_odd.txt"));
    assert_eq!(
        facts.name.as_deref(),
        Some("a b=c \"q\" 's' | \u{e9} \u{65e5}\u{672c} \\ ESC\u{1b}[31m")
    );
    assert_eq!(facts.uid, Some(1001));
    let facts = one(stored!("comment.txt"));
    assert_eq!((word(&facts).as_str(), facts.uid), ("PENDING", Some(1001)));
    // What cuts the real lines off, but is no begin of a record.
    let cut = String::from_utf8_lossy(stored!("running.txt")).replacen(
        "JobName=plain",
        "JobName=\n   NodeList=\n\nJobId=1",
        1,
    );
    let facts = one(cut.as_bytes());
    assert_eq!((facts.nodes, facts.uid), (None, Some(1001)));
    // Two records, of which neither is as Slurm wrote it.
    let jobs = text::jobs(stored!("forged.txt"));
    assert_eq!(jobs.len(), 2);
    assert!(matches!(family(jobs, &job("25")), Err(Unknown::Odd { .. })));
}

/// The lines of `answer` in which facts stand, each of them forged by what follows `JobName=` or `WorkDir=`.
#[test]
fn a_forged_line_makes_a_fact_unknown_and_no_other() {
    let real = String::from_utf8_lossy(stored!("running.txt"));
    let honest = one(stored!("running.txt"));
    let forged = "UserId=mallory(7) GroupId=x(7)|JobState=COMPLETED Reason=x|NodeList=node9|NumNodes=9 NumCPUs=9|\
        StartTime=2000-01-01T00:00:00|MinCPUsNode=1 MinMemoryNode=9G|RunTime=1 TimeLimit=9-00:00:00|BatchHost=node9|\
        TRES=cpu=9|  Nodes=node9 CPU_IDs=9 Mem=9 GRES=|HetJobIdSet=9|SLUID=sFNDM35NQ39R00|Partition=x|Socks/Node=9";
    for line in forged.split('|') {
        for after in ["JobName=plain", "WorkDir=/scratch/alice"] {
            let facts = one(real.replacen(after, &format!("{after}\n   {line}"), 1).as_bytes());
            let same =
                |is_same: bool, is_unknown: bool| assert!(is_same || is_unknown, "{line} after {after}");
            same(facts.uid == honest.uid, facts.uid.is_none());
            same(facts.state == honest.state, facts.state.is_none());
            same(facts.nodes == honest.nodes, facts.nodes.is_none());
            same(facts.cpus == honest.cpus, facts.cpus.is_none());
            same(facts.start == honest.start, facts.start.is_none());
            same(facts.memory == honest.memory, facts.memory.is_none());
            same(facts.time_limit == honest.time_limit, facts.time_limit.is_none());
            same(facts.batch_host == honest.batch_host, facts.batch_host.is_none());
            same(
                facts.tres_allocated == honest.tres_allocated,
                facts.tres_allocated.is_none(),
            );
            same(facts.shares == honest.shares, facts.shares.is_empty());
            same(facts.partition == honest.partition, facts.partition.is_none());
            assert_eq!((facts.job_id, facts.array, facts.het), (1, None, None));
            // Older versions write no SLUID, so one that stands there alone cannot be told from a real one.
            assert!(facts.sluid.is_none() || line.starts_with("SLUID"), "{line}");
        }
    }
}

#[test]
fn what_is_no_answer_has_no_jobs() {
    for answer in [
        "",
        "[]",
        "{}",
        "{\"jobs\": 7}",
        "{\"jobs\": [7]}",
        "{\"jobs\": [{\"job_id\": 0}]}",
        "[[[[",
        "x",
    ] {
        assert_eq!(json::jobs(answer.as_bytes()), None, "{answer}");
    }
    assert_eq!(json::jobs(b"{\"jobs\": []}"), Some(vec![]));
    for answer in [
        "",
        "JobId=0 JobName=x",
        "JobId=x JobName=x",
        "JobId=1",
        " JobId=1 JobName=x",
        "No jobs in the system\n",
    ] {
        assert_eq!(text::jobs(answer.as_bytes()), [], "{answer}");
    }
}

#[test]
fn an_answer_about_others_is_refused() {
    let refused = |jobs: Vec<JobFacts>| matches!(family(jobs, &job("1")), Err(Unknown::Odd { .. }));
    let own = one(stored!("running.txt"));
    let other = JobFacts {
        job_id: 9,
        ..own.clone()
    };
    assert!(family(vec![own.clone()], &job("1")).is_ok());
    assert!(refused(vec![]));
    assert!(refused(vec![own.clone(), other]));
    assert!(refused(vec![own.clone(), own.clone()]));
    let stranger = JobFacts {
        job_id: 9,
        array: Some(ArrayIds {
            job: 1,
            tasks: "3".parse().expect("tasks"),
        }),
        uid: Some(7),
        ..own.clone()
    };
    assert!(refused(vec![own, stranger]));
}

proptest! {
    #[test]
    fn no_name_changes_a_fact_that_is_known(name in "(?s)(\n|\n   |\n     |UserId=|JobState=|NodeList=|a|=| |\\(7\\)|Nodes=|JobId=|JobId=1| JobName=|\n\n){0,12}") {
        let real = String::from_utf8_lossy(stored!("running.txt"));
        let honest = one(stored!("running.txt"));
        let jobs = text::jobs(real.replacen("JobName=plain", &format!("JobName={name}"), 1).as_bytes());
        // More records than there are jobs are taken for none.
        for facts in family(jobs, &job("1")).unwrap_or_default() {
            prop_assert_eq!(facts.job_id, 1);
            prop_assert!(facts.uid.is_none() || facts.uid == honest.uid);
            prop_assert!(facts.nodes.is_none() || facts.nodes == honest.nodes);
        }
    }

    #[test]
    fn no_bytes_make_them_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0_usize..1300) {
        let _ = (text::jobs(&bytes), json::jobs(&bytes), text::partition_limit(&bytes, "a"));
        let real = stored!("two_nodes.txt");
        text::jobs(&real[..cut.min(real.len())]);
        text::jobs(&[&real[..cut.min(real.len())], &bytes[..]].concat());
        let real = stored!("json_26.05.json");
        json::jobs(&real[..cut.min(real.len())]);
    }

    #[test]
    fn no_value_in_json_makes_it_panic(key in 0_usize..40, value in "(null|-1|1e300|\"x\"|18446744073709551615|\\[\\]|\\{\"set\":true,\"number\":-1\\}|true)") {
        let mut answer: serde_json::Value = serde_json::from_slice(stored!("json_26.05.json")).expect("JSON");
        let job = answer["jobs"][1].as_object_mut().expect("a job");
        let key = job.keys().nth(key % job.len()).cloned().expect("a key");
        job.insert(key, serde_json::from_str(&value).expect("JSON"));
        json::jobs(answer.to_string().as_bytes());
    }
}
