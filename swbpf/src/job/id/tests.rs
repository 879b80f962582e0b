//! Every form read, written and refused.

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> JobId {
    text.parse().expect(text)
}

fn id(job: JobRef, step: Option<StepName>) -> JobId {
    JobId { job, step }
}

#[test]
fn every_form_is_understood() {
    let task = JobRef::ArrayTask { array: 123, task: 4 };
    let component = JobRef::Component {
        leader: 123,
        offset: 1,
    };
    let step_of_two = StepName::Number {
        id: 0,
        component: Some(1),
    };
    for (text, expected) in [
        ("123", JobId::raw(123)),
        ("4294967293", JobId::raw(NO_VAL - 1)),
        ("123_4", id(task.clone(), None)),
        ("123_4.0", id(task, Some(StepName::number(0)))),
        ("123+1", id(component.clone(), None)),
        ("123+1.extern", id(component, Some(StepName::Extern))),
        ("7.batch", id(JobRef::Raw(7), Some(StepName::Batch))),
        ("7.interactive", id(JobRef::Raw(7), Some(StepName::Interactive))),
        (
            "7.4294967280",
            id(JobRef::Raw(7), Some(StepName::number(MAX_NORMAL))),
        ),
        ("7.0+1", id(JobRef::Raw(7), Some(step_of_two))),
    ] {
        assert_eq!(parse(text), expected, "{text}");
        assert_eq!(expected.to_string(), text);
    }
}

/// As Slurm's header has it.
const MAX_NORMAL: u32 = 0xffff_fff0;

#[test]
fn lists_of_tasks_hold_what_they_say() {
    let JobRef::ArrayTasks { array: 9, tasks } = parse("9_[1,3,5-7,10-20:5%2]").job else {
        panic!("a list of tasks");
    };
    let held: Vec<u32> = (0..30).filter(|&task| tasks.contains(task)).collect();
    assert_eq!(held, [1, 3, 5, 6, 7, 10, 15, 20]);
    assert_eq!((tasks.at_once(), tasks.single()), (Some(2), None));
    assert_eq!(TaskSet::one(8), "8".parse().expect("one"));
    assert_eq!("8-8:3".parse::<TaskSet>().expect("one").single(), Some(8));
}

#[test]
fn an_sluid_is_read_as_slurm_reads_it() {
    let sluid = parse("sFNDM35NQ39R00.0");
    assert_eq!(sluid, parse("SFNDM35nq39rOo.0"));
    assert_eq!(sluid.to_string(), "sFNDM35NQ39R00.0");
    assert_eq!(parse("s00000000000IL"), parse("s0000000000011"));
    assert_eq!(Sluid::from_bits(33).expect("bits").to_string(), "s0000000000011");
    assert_eq!(Sluid::from_canonical("sfndm35nq39r00"), None);
    assert_eq!(
        Sluid::from_canonical("sFNDM35NQ39R00")
            .map(|s| s.to_string())
            .as_deref(),
        Some("sFNDM35NQ39R00")
    );
}

#[test]
fn nonsense_is_refused_with_the_forms() {
    for text in [
        "",
        " ",
        "0",
        "-1",
        "+1",
        "007",
        "4294967294",
        "99999999999",
        "1_",
        "1_4000001",
        "1__2",
        "_1",
        "1_[",
        "1_[]",
        "1_[1",
        "1_[2-1]",
        "1_[1-2:0]",
        "1_[1:2]",
        "1_[1%0]",
        "1_[1,]",
        "1_2+3",
        "1+",
        "1+129",
        "1+2_3",
        "1.",
        "1.0.0",
        "1.TBD",
        "1.4294967281",
        "1.batch+1",
        "1.0+128",
        "1 ",
        "1\n",
        "job_1",
        "1;2",
        "s",
        "s0000000000000",
        "sG000000000000",
        "sU000000000001",
        "s000000000001",
        "s\u{e9}00000000000",
        "\u{661}",
        "1.\u{661}",
    ] {
        let error = text.parse::<JobId>().expect_err(text).to_string();
        assert!(error.contains("123_[1-9]") && error.contains(".batch"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let long = format!("1_[{}]", "1,".repeat(9000));
    assert!(long.parse::<JobId>().expect_err("too long").to_string().len() < 400);
}

#[test]
fn names_of_cgroups_are_exact() {
    assert_eq!(StepName::from_dir("step_batch"), Some(StepName::Batch));
    assert_eq!(StepName::from_dir("step_12"), Some(StepName::number(12)));
    for name in [
        "step_",
        "step",
        "step_01",
        "step_-1",
        "step_batch ",
        "Step_0",
        "step_TBD",
        "step_0.1",
    ] {
        assert_eq!(StepName::from_dir(name), None, "{name}");
    }
    assert_eq!(TaskName::from_dir("task_0"), Some(TaskName::Number(0)));
    assert_eq!(TaskName::from_dir("task_special"), Some(TaskName::Special));
    for name in ["task_", "task_00", "task_x", "task", "task_4294967296"] {
        assert_eq!(TaskName::from_dir(name), None, "{name}");
    }
}

prop_compose! {
    fn any_range()(first in 0..=MAX_TASK, length in 0_u32..100, step in 1_u32..10) -> String {
        let last = first.saturating_add(length).min(MAX_TASK);
        match (first == last, step) {
            (true, _) => format!("{first}"),
            (false, 1) => format!("{first}-{last}"),
            (false, step) => format!("{first}-{last}:{step}"),
        }
    }
}

prop_compose! {
    /// Any set of tasks.
    pub(crate) fn any_tasks()(
        ranges in prop::collection::vec(any_range(), 1..5),
        at_once in prop::option::of(1_u32..100),
    ) -> TaskSet {
        let at_once = at_once.map(|at_once| format!("%{at_once}")).unwrap_or_default();
        (ranges.join(",") + &at_once).parse().expect("tasks")
    }
}

/// Any step.
pub(crate) fn any_step() -> impl Strategy<Value = StepName> {
    prop_oneof![
        Just(StepName::Batch),
        Just(StepName::Extern),
        Just(StepName::Interactive),
        (0..=MAX_NORMAL, prop::option::of(0_u32..128))
            .prop_map(|(id, component)| StepName::Number { id, component }),
    ]
}

/// Any job.
pub(crate) fn any_job() -> impl Strategy<Value = JobRef> {
    let id = || 1..NO_VAL;
    prop_oneof![
        id().prop_map(JobRef::Raw),
        (id(), 0..=MAX_TASK).prop_map(|(array, task)| JobRef::ArrayTask { array, task }),
        (id(), any_tasks()).prop_map(|(array, tasks)| JobRef::ArrayTasks { array, tasks }),
        (id(), 0_u32..=128).prop_map(|(leader, offset)| JobRef::Component { leader, offset }),
        (1_u64..).prop_map(|bits| JobRef::Sluid(Sluid::from_bits(bits).expect("not 0"))),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(job in any_job(), step in prop::option::of(any_step())) {
        let id = JobId { job, step };
        prop_assert_eq!(id.to_string().parse::<JobId>(), Ok(id.clone()));
    }

    #[test]
    fn a_step_is_found_by_its_directory(step in any_step()) {
        prop_assert_eq!(StepName::from_dir(&format!("step_{step}")), Some(step));
    }

    #[test]
    fn sluids_do_not_care_for_case(bits in 1_u64..) {
        let sluid = Sluid::from_bits(bits).expect("not 0");
        let text = sluid.to_string();
        prop_assert_eq!(text.to_ascii_lowercase().parse(), Ok(sluid));
        prop_assert_eq!(Sluid::from_canonical(&text), Some(sluid));
    }

    #[test]
    fn no_text_makes_it_panic(text in "(?s).{0,60}", near in "[0-9sS_+.\\[\\],:%a-z-]{0,30}") {
        let _ = (text.parse::<JobId>(), near.parse::<JobId>());
        let _ = (StepName::from_dir(&text), TaskName::from_dir(&near));
    }
}
