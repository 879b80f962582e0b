//! What is read from answers.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{job, one, word};
use crate::job::slurm::facts::family;
use crate::job::slurm::*;

fn limited(seconds: u64) -> TimeLimit {
    TimeLimit::Limited(Duration::from_secs(seconds))
}

#[test]
fn a_running_job_is_read_whole() {
    let facts = one(stored!("running.txt"));
    let share = NodeShare {
        nodes: vec!["node1".into()],
        cpu_ids: Some(vec![1]),
        cpus: Some(1),
        memory_bytes: Some(100 << 20),
        gres: vec![Gres {
            name: "gpu".into(),
            kind: Some("a100".into()),
            count: Some(1),
            indices: Some(vec![0]),
        }],
    };
    let time = |text: &str| Some(text.parse().expect("a time"));
    let expected = JobFacts {
        job_id: 1,
        array: None,
        het: None,
        sluid: None,
        name: Some("plain".into()),
        user: Some("alice".into()),
        uid: Some(1001),
        account: Some("test".into()),
        partition: Some("main".into()),
        state: facts.state.clone(),
        reason: None,
        dependency: None,
        submitted: time("2026-11-30T07:55:55Z"),
        eligible: time("2026-11-30T07:55:55Z"),
        start: time("2026-11-30T07:55:56Z"),
        end: time("2026-11-30T08:15:56Z"),
        time_limit: Some(limited(1200)),
        nodes: Some(vec!["node1".into()]),
        batch_host: Some("node1".into()),
        num_nodes: Some(1),
        cpus: Some(1),
        tasks: Some(1),
        cpus_per_task: Some(1),
        memory: Some(MemoryRequest::PerNode(100 << 20)),
        tres_requested: None,
        tres_allocated: Some(BTreeMap::from(
            [("billing", 1), ("cpu", 1), ("mem", 100 << 20), ("node", 1)]
                .map(|(name, n)| (name.to_owned(), n)),
        )),
        shares: vec![share.clone()],
    };
    assert_eq!(facts, expected);
    assert_eq!(
        (word(&facts).as_str(), facts.phase()),
        ("RUNNING", Some(Phase::Running))
    );
    assert_eq!(facts.share_of("node1"), Some(&share));
    assert_eq!(facts.share_of("node11"), None);
}

#[test]
fn each_node_has_its_share() {
    let facts = one(stored!("two_nodes.txt"));
    assert_eq!(
        facts.nodes.as_deref(),
        Some(&["node1".to_owned(), "node2".to_owned()][..])
    );
    assert_eq!(facts.memory, Some(MemoryRequest::PerCpu(70 << 20)));
    let told = |node| {
        let share = facts.share_of(node).expect(node);
        (share.cpu_ids.clone().expect("ids"), share.memory_bytes)
    };
    assert_eq!(told("node1"), (vec![0, 1], Some(140 << 20)));
    assert_eq!(told("node2"), (vec![0], Some(70 << 20)));
}

#[test]
fn the_text_of_newer_versions_is_read() {
    let facts = one(stored!("text_26.05.txt"));
    assert_eq!(
        facts.sluid.map(|sluid| sluid.to_string()).as_deref(),
        Some("sFNDM35NQ39R00")
    );
    assert_eq!(facts.name.as_deref(), Some("multi"));
    assert_eq!(
        (facts.num_nodes, facts.tasks, facts.cpus_per_task),
        (Some(4), None, None)
    );
    assert_eq!(facts.batch_host.as_deref(), Some("cn01"));
    assert_eq!(facts.time_limit, Some(limited(172_800)));
    let gpus = |tres: &Option<BTreeMap<String, u64>>| {
        tres.as_ref().and_then(|tres| tres.get("gres/gpu:a100").copied())
    };
    assert_eq!(
        (gpus(&facts.tres_requested), gpus(&facts.tres_allocated)),
        (None, Some(4))
    );
    assert_eq!(facts.share_of("cn03").expect("a share").cpu_ids, Some(vec![0, 1]));
    assert_eq!(
        facts.share_of("cn04").expect("a share").gres[0].indices,
        Some(vec![3])
    );
}

#[test]
fn waiting_jobs_say_why() {
    let told = |answer: &[u8]| {
        let facts = one(answer);
        assert_eq!(facts.phase(), Some(Phase::Pending));
        assert_eq!((facts.nodes.as_deref(), facts.shares.len()), (Some(&[][..]), 0));
        assert_eq!((&facts.batch_host, &facts.tres_allocated), (&None, &None));
        assert!(facts.tres_requested.is_some());
        (
            facts.reason.expect("a reason"),
            facts.start.map(|start| start.to_string()),
        )
    };
    for (answer, reason, start) in [
        (&stored!("pending_resources.txt")[..], "Resources", None),
        (stored!("pending_priority.txt"), "Priority", None),
        (stored!("pending_dependency.txt"), "Dependency", None),
        (stored!("pending_partition_limit.txt"), "PartitionTimeLimit", None),
        (stored!("pending_partition_down.txt"), "PartitionDown", None),
        (stored!("pending_held.txt"), "JobHeldUser", None),
        (
            stored!("pending_begin.txt"),
            "BeginTime",
            Some("2026-11-30T09:56:14Z"),
        ),
        (
            stored!("pending_assoc.txt"),
            "AssocGrpCpuLimit",
            Some("2026-11-30T08:56:00Z"),
        ),
    ] {
        assert_eq!(told(answer), (reason.into(), start.map(Into::into)));
    }
    let dependent = one(stored!("pending_dependency.txt"));
    assert_eq!(dependent.dependency.as_deref(), Some("afterok:1(unfulfilled)"));
    assert_eq!(
        one(stored!("unlimited.txt")).time_limit,
        Some(TimeLimit::Unlimited)
    );
    assert_eq!(one(stored!("pending_resources.txt")).num_nodes, Some(2));
}

#[test]
fn ended_jobs_have_their_state() {
    let told = |answer: &[u8]| {
        let facts = one(answer);
        assert_eq!(facts.phase(), Some(Phase::Ended));
        (word(&facts), facts.end.expect("an end").to_string())
    };
    assert_eq!(
        told(stored!("completed.txt")),
        ("COMPLETED".into(), "2026-11-30T07:57:36Z".into())
    );
    assert_eq!(
        told(stored!("failed.txt")),
        ("FAILED".into(), "2026-11-30T07:57:37Z".into())
    );
    assert_eq!(
        told(stored!("cancelled.txt")),
        ("CANCELLED".into(), "2026-11-30T07:57:28Z".into())
    );
}

#[test]
fn arrays_and_components_have_both_ids() {
    let shown = |answer: &[u8], id: &str| -> Vec<(u32, String)> {
        let jobs = family(text::jobs(answer), &job(id)).expect("jobs of it");
        jobs.iter()
            .map(|facts| (facts.job_id, facts.shown_id().to_string()))
            .collect()
    };
    let array = stored!("array.txt");
    assert_eq!(shown(array, "4"), [(4, "4_[2-6%1]".into()), (19, "4_1".into())]);
    assert_eq!(shown(array, "4_1"), [(19, "4_1".into())]);
    assert_eq!(shown(array, "4_3"), [(4, "4_[2-6%1]".into())]);
    assert_eq!(
        shown(array, "4_[1,9]"),
        [(4, "4_[2-6%1]".into()), (19, "4_1".into())]
    );
    assert_eq!(shown(stored!("array_task.txt"), "4_1"), [(19, "4_1".into())]);
    assert_eq!(shown(stored!("array_two.txt"), "23").len(), 2);
    assert_eq!(
        shown(stored!("array_pending.txt"), "16"),
        [(16, "16_[1,3,5,7,9,20]".into())]
    );
    let het = stored!("het.txt");
    assert_eq!(shown(het, "2"), [(2, "2+0".into()), (3, "2+1".into())]);
    assert_eq!(shown(het, "2+1"), [(3, "2+1".into())]);
    assert_eq!(shown(stored!("het_component.txt"), "3"), [(3, "2+1".into())]);
    assert_eq!(shown(array, "4_77"), []);
}

#[test]
fn json_of_each_shape_is_read() {
    let jobs = json::jobs(stored!("json_23.11.json")).expect("jobs");
    let facts = &jobs[0];
    assert_eq!(facts.shown_id().to_string(), "4_1");
    assert_eq!(
        facts.name.as_deref(),
        Some("x\n   UserId=root(0)\n\nJobId=7 JobName=y")
    );
    assert_eq!((facts.uid, facts.user.as_deref()), (Some(1001), Some("alice")));
    assert_eq!(
        (facts.cpus, facts.tasks, facts.cpus_per_task, facts.num_nodes),
        (Some(6), Some(3), Some(2), Some(2))
    );
    assert_eq!(facts.memory, Some(MemoryRequest::PerCpu(2 << 30)));
    assert_eq!(facts.time_limit, Some(limited(1200)));
    assert_eq!(
        facts.start.map(|t| t.to_string()).as_deref(),
        Some("2026-11-30T07:56:14Z")
    );
    let second = facts.share_of("cn02").expect("a share");
    assert_eq!(
        (second.memory_bytes, second.gres[0].indices.clone()),
        (Some(8 << 30), Some(vec![1, 2]))
    );
    assert_eq!(
        facts
            .tres_allocated
            .as_ref()
            .and_then(|tres| tres.get("mem").copied()),
        Some(12 << 30)
    );

    let jobs = family(json::jobs(stored!("json_26.05.json")).expect("jobs"), &job("4")).expect("of it");
    let (waiting, ending) = (&jobs[0], &jobs[1]);
    assert_eq!(waiting.shown_id().to_string(), "4_[2-6%1]");
    assert_eq!(
        (waiting.phase(), waiting.time_limit),
        (Some(Phase::Pending), Some(TimeLimit::Unlimited))
    );
    assert_eq!((waiting.start, waiting.shares.len()), (None, 0));
    assert_eq!(
        (ending.phase(), word(ending).as_str()),
        (Some(Phase::Running), "CANCELLED+COMPLETING")
    );
    assert_eq!(
        ending.sluid.map(|sluid| sluid.to_string()).as_deref(),
        Some("sFNDM35NQ39R00")
    );
    assert_eq!(
        ending
            .share_of("cn02")
            .map(|share| (share.cpus, share.memory_bytes)),
        Some((Some(4), Some(8 << 30)))
    );

    let facts = &json::jobs(stored!("json_plain.json")).expect("jobs")[0];
    assert_eq!((facts.array.clone(), facts.het.clone()), (None, None));
    assert_eq!(
        (word(facts).as_str(), facts.time_limit),
        ("RUNNING", Some(TimeLimit::Unlimited))
    );
    assert_eq!(facts.memory, Some(MemoryRequest::PerNode(100 << 20)));
}

#[test]
fn a_partition_has_its_limit() {
    let limit = |answer: &[u8], name| text::partition_limit(answer, name);
    assert_eq!(limit(stored!("partition_short.txt"), "short"), Some(limited(600)));
    assert_eq!(
        limit(stored!("partition_main.txt"), "main"),
        Some(TimeLimit::Unlimited)
    );
    assert_eq!(limit(stored!("partition_main.txt"), "short"), None);
    assert_eq!(limit(b"PartitionName=a", "a"), None);
}
