//! What a node answered, read and added up.

use proptest::prelude::*;
use serde_json::Value;
use swbpf::snapshot::{Gathered, NodeAnswer, Source};

use super::MIB;
use super::snapshots::gathered::on;
use super::snapshots::{all, all_gathered};

fn refused(answer: impl Into<Vec<u8>>) -> String {
    let read = NodeAnswer::read("cn1", 77, Ok(answer.into()));
    assert_eq!(read.snapshot, None);
    read.reason.expect("a reason")
}

#[test]
fn an_answer_that_is_not_the_nodes_is_none() {
    let spoilt = |spoil: fn(&mut Value)| {
        let mut value = serde_json::to_value(on("cn1", MIB, MIB)).expect("JSON");
        spoil(&mut value);
        refused(value.to_string())
    };
    for (answer, reason) in [
        (
            spoilt(|value| value["schema_version"] = 2.into()),
            "schema_version 2, and 1 is understood",
        ),
        (spoilt(|value| value["job"]["job_id"] = 78.into()), "about job 78"),
        (
            spoilt(|value| value["job"]["here"]["node"] = "cn2".into()),
            "says that it is node cn2",
        ),
        (
            spoilt(|value| value["kind"] = "summary".into()),
            "not that of --once",
        ),
        (
            spoilt(|value| value["memory"]["needed_bytes"] = (-1).into()),
            "not understood: ",
        ),
        (
            spoilt(|value| drop(value.as_object_mut().expect("object").remove("memory"))),
            "not understood: ",
        ),
        (refused(""), "not understood: "),
        (refused("{}{}"), "not understood: "),
        (refused("{".repeat(100_000)), "not understood: "),
        (refused([b'{', 0xff]), "not understood: "),
    ] {
        assert!(answer.contains(reason), "{reason}: {answer}");
        assert!(answer.chars().count() < 300, "{answer}");
    }
    for (name, snapshot) in all() {
        let line = serde_json::to_string(&snapshot).expect("JSON");
        assert!(
            !refused(line).is_empty(),
            "{name} is no answer of --once about this job"
        );
    }
    // Where a node does not know which one it is, its label says so.
    let mut unaware = on("cn1", MIB, MIB);
    unaware.job = None;
    let line = serde_json::to_vec(&unaware).expect("JSON");
    assert_eq!(NodeAnswer::read("cn1", 77, Ok(line)).reason, None);
}

#[test]
fn what_one_node_does_not_know_no_sum_knows() {
    for (name, gathered) in all_gathered() {
        let sums = [
            ("needed_bytes", gathered.totals.needed_bytes.is_none()),
            (
                "needed_peak_sum_bytes",
                gathered.totals.needed_peak_sum_bytes.is_none(),
            ),
            ("error_bound_bytes", gathered.totals.error_bound_bytes.is_none()),
            ("busy_cores", gathered.totals.busy_cores.is_none()),
        ];
        for (key, is_null) in sums {
            let why = gathered.unknown.get(&format!("totals.{key}"));
            assert_eq!(is_null, why.is_some_and(|why| !why.is_empty()), "{name}: {key}");
        }
    }
}

proptest! {
    #[test]
    fn sums_are_those_of_the_nodes_that_answered(
        nodes in prop::collection::vec((any::<bool>(), 0..1_u64 << 50, 0..1_u64 << 50, 0..4_000_u32), 0..8),
        sampled in any::<bool>(),
    ) {
        let answers = nodes.iter().enumerate().map(|(index, &(answers, needed, peak, cores))| {
            let node = format!("cn{index}");
            let mut snapshot = on(&node, needed, peak);
            snapshot.cpu.busy_cores = Some(f64::from(cores) / 8.0);
            if sampled {
                snapshot.memory.source = Source::Sampled;
            }
            let answer = serde_json::to_vec(&snapshot).expect("JSON");
            NodeAnswer::read(&node, 77, if answers { Ok(answer) } else { Err("hung".into()) })
        });
        let gathered = Gathered::of("77".into(), 1.0, String::new(), answers.collect());
        let answered: Vec<_> = nodes.iter().filter(|node| node.0).collect();
        prop_assert_eq!(gathered.missing.len(), nodes.len() - answered.len());
        let totals = gathered.totals;
        if answered.is_empty() {
            prop_assert_eq!((totals.needed_bytes, totals.source), (None, Source::Unavailable));
        } else {
            prop_assert_eq!(totals.needed_bytes, Some(answered.iter().map(|node| node.1).sum()));
            prop_assert_eq!(totals.needed_peak_sum_bytes, Some(answered.iter().map(|node| node.2).sum()));
            let cores: u32 = answered.iter().map(|node| node.3).sum();
            prop_assert_eq!(totals.busy_cores, Some(f64::from(cores) / 8.0));
            prop_assert_eq!(totals.source, if sampled { Source::Sampled } else { Source::Kernel });
        }
    }

    #[test]
    fn no_answer_makes_it_panic(bytes: Vec<u8>, at in any::<prop::sample::Index>(), byte: u8) {
        let _ = NodeAnswer::read("cn1", 77, Ok(bytes));
        let mut near = serde_json::to_vec(&on("cn1", MIB, MIB)).expect("JSON");
        let at = at.index(near.len());
        near[at] = byte;
        let _ = NodeAnswer::read("cn1", 77, Ok(near));
    }
}
