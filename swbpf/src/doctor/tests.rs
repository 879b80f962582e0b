//! What is told of made facts: the text, the JSON, the exit code.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::Value;

use super::rules::tests::good;
use super::*;
use crate::job::slurm::Unknown;

fn diagnosed(facts: &Facts) -> Diagnosis {
    diagnose(facts, Timestamp::UNIX_EPOCH)
}

/// Spoils a part of a good host with a text that others chose.
fn hostile(text: &str) -> Facts {
    let mut facts = good();
    let reason = || text.to_owned();
    facts.machine.hostname = reason();
    facts.machine.release = reason();
    facts.machine.clock = Ok(reason());
    facts.bpf.btf = Err(reason());
    facts.bpf.lockdown = Ok(reason());
    facts.bpf.file_systems = Ok(vec![reason().into()]);
    facts.programs.plan = Err(reason());
    facts.cgroups = Err(reason());
    facts.run = Err(facts::Refusal {
        reason: reason(),
        way: None,
    });
    facts.slurm = Err(Unknown::Failed {
        program: "scontrol",
        told: reason(),
    });
    facts.gpus.library = facts::Library::Answers {
        driver: reason(),
        names: vec![reason(); 64],
    };
    facts.agent.socket = reason().into();
    facts.agent.met = Err(reason());
    facts
}

#[test]
fn the_exit_code_is_that_of_the_worst_verdict() {
    let mut facts = good();
    let code = |facts: &Facts| diagnosed(facts).verdict.exit_code();
    assert_eq!(code(&facts), 0);
    facts.machine.architecture = "riscv64".to_owned();
    assert_eq!((diagnosed(&facts).verdict, code(&facts)), (Verdict::Unknown, 1));
    facts.bpf.btf = Err("none".to_owned());
    assert_eq!((diagnosed(&facts).verdict, code(&facts)), (Verdict::Degraded, 1));
    facts.cgroups = Err("none".to_owned());
    assert_eq!((diagnosed(&facts).verdict, code(&facts)), (Verdict::Broken, 2));
}

#[test]
fn a_person_reads_verdict_topic_and_what_is_told_of_it() {
    let mut facts = good();
    facts.bpf.btf = Err("there is no /sys/kernel/btf/vmlinux here".to_owned());
    let told = text::text(&diagnosed(&facts));
    let begin = "\
sw-bpf doctor: node1

ok        kernel        Linux 6.18.0 on x86_64
                        sw-bpf is tested on this architecture
degraded  BTF           there is no /sys/kernel/btf/vmlinux here
                        numbers are sampled from the kernel's files: what
                        happens between two looks is not seen
                        -> use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as
                        those of all distributions are
                        -> if something is mounted over that file (`findmnt -R
                        /sys`), unmount it
ok        BPF           bpf(2), with JIT
";
    assert_eq!(&told[..begin.len()], begin);
    assert!(told.ends_with("\n\ndegraded: BTF\n"), "{told}");
}

#[test]
fn the_last_line_names_what_is_not_well() {
    let mut facts = good();
    let last = |facts: &Facts| {
        let told = text::text(&diagnosed(facts));
        told.rsplit_once("\n\n").expect("a last line").1.to_owned()
    };
    assert_eq!(last(&facts), "ok: every number is exact\n");
    facts.machine.architecture = "riscv64".to_owned();
    assert_eq!(last(&facts), "unknown: kernel\n");
    facts.bpf.btf = Err("none".to_owned());
    facts.bpf.jit = Ok(0);
    assert_eq!(last(&facts), "degraded: BTF (unknown: kernel)\n");
    facts.cgroups = Err("none".to_owned());
    let whole = "broken: cgroups (degraded: BTF; unknown: kernel, jobs here)\n";
    assert_eq!(last(&facts), whole);
}

static SCHEMA: LazyLock<jsonschema::Validator> =
    LazyLock::new(|| jsonschema::draft202012::new(json_schema().as_value()).expect("a schema"));

#[test]
fn the_json_fits_the_schema_and_nothing_else_does() {
    let value = serde_json::to_value(diagnosed(&good())).expect("JSON");
    assert!(SCHEMA.is_valid(&value), "{value}");
    let spoils: [fn(&mut Value); 4] = [
        |value| value["kind"] = "once".into(),
        |value| value["checks"][0]["verdict"] = "fine".into(),
        |value| value["checks"][0]["topic"] = "weather".into(),
        |value| value["checks"][0]["more"] = 1.into(),
    ];
    for spoil in spoils {
        let mut bad = value.clone();
        spoil(&mut bad);
        assert!(!SCHEMA.is_valid(&bad), "{bad}");
    }
}

proptest! {
    #[test]
    fn whatever_others_wrote_stays_plain_within_80_columns_and_bounded(text in "(?s).{0,300}") {
        let diagnosis = diagnosed(&hostile(&text));
        let told = text::text(&diagnosis);
        prop_assert!(told.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
        prop_assert!(told.lines().all(|line| line.len() <= 80));
        prop_assert!(told.lines().count() < 400);
        let line = json::line(&diagnosis).expect("JSON");
        prop_assert_eq!(line.matches('\n').count(), 1);
        let value: Value = serde_json::from_str(&line).expect("JSON");
        prop_assert!(SCHEMA.is_valid(&value));
    }
}
