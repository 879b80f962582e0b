//! Metrics, compared with `tests/golden/`; `SWBPF_BLESS=1` rewrites what is there.

#![allow(clippy::float_cmp, reason = "a number is told as it is")]

#[allow(dead_code, unused_imports, reason = "other tests use the rest")]
mod snapshots;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use swbpf::out::openmetrics::{
    AgentSample, Format, JobSample, Kind, NUMBERED_STEPS, SlotUse, Whose, described, text,
};
use swbpf::snapshot::{Loss, Snapshot};

const FORMATS: [Format; 2] = [Format::OpenMetrics, Format::Prometheus];

fn agent() -> AgentSample {
    AgentSample {
        version: "0.1.0".into(),
        kernel: "6.18.44".into(),
        rung: "btf_tracepoint".into(),
        started_seconds: 1_795_999_923.25,
        jobs: 2,
        jobs_left_out: 0,
        records_failing: 0,
        window_seconds: 15.001,
        slots: vec![
            SlotUse {
                of: "job",
                used: 2,
                room: 1024,
            },
            SlotUse {
                of: "below",
                used: 7,
                room: 16_384,
            },
        ],
        loss: Loss {
            kernel_memory_misses: Some(3),
            lru_misses: None,
            other_misses: 1,
            ..Loss::default()
        },
        without_target: 0,
        timed_run_seconds: 0.000_074,
        timed_runs: 1000,
        timed_seconds: 0.2,
        cpu_seconds: 1.5,
        resident_bytes: Some(9 << 20),
    }
}

fn jobs() -> Vec<JobSample> {
    let mut unbounded = snapshots::attached();
    unbounded.memory.error_bound_bytes = None;
    vec![
        JobSample::new(&Whose::Job("77".into()), snapshots::job()).with_window_peak(Some(700 << 20)),
        JobSample::new(&Whose::Cgroup("/sys/fs/cgroup/batch.slice/a".into()), unbounded),
        JobSample::new(&Whose::Job("78".into()), snapshots::nothing()),
    ]
}

#[test]
fn metrics_are_as_they_were_approved() {
    for (format, name) in FORMATS.into_iter().zip(["metrics.txt", "metrics.prom"]) {
        let told = text(&jobs(), &agent(), format);
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/golden")
            .join(name);
        if std::env::var_os("SWBPF_BLESS").is_some() {
            fs::write(&path, &told).expect("golden file");
        }
        let approved = fs::read_to_string(&path).expect("golden file; SWBPF_BLESS=1 makes it");
        assert_eq!(told, approved, "{name}: SWBPF_BLESS=1 approves it");
        read(&told, format);
    }
}

/// Value and labels of a sample, by its name.
type Samples = BTreeMap<String, Vec<(BTreeMap<String, String>, f64)>>;

/// Reads a text as the formats have it, and fails with what does not fit.
fn read(text: &str, format: Format) -> Samples {
    let mut samples = Samples::new();
    let mut seen = BTreeSet::new();
    let mut families = BTreeSet::new();
    let (mut sample_name, mut unit) = (String::new(), None);
    let body = text.strip_suffix("# EOF\n").expect("an end");
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (what, name, rest) = (words.next(), words.next().expect("a name"), words.next());
            match (what, rest) {
                (Some("TYPE"), Some(kind)) => {
                    assert!(families.insert(name.to_owned()), "{name} twice");
                    sample_name = match (format, kind) {
                        (Format::OpenMetrics, "counter") => format!("{name}_total"),
                        (_, "counter" | "gauge") => name.to_owned(),
                        _ => panic!("{line}"),
                    };
                    assert_eq!(kind == "counter", sample_name.ends_with("_total"), "{line}");
                }
                (Some("UNIT"), Some(of)) => unit = Some((name.to_owned(), of.to_owned())),
                (Some("HELP"), Some(help)) => assert!(!help.contains('\\'), "{line}"),
                _ => panic!("{line}"),
            }
            if let Some((name, unit)) = &unit {
                assert!(name.ends_with(&format!("_{unit}")), "{name} is in {unit}");
            }
            continue;
        }
        let (name, rest) = line.split_at(line.find(['{', ' ']).expect("a value"));
        assert_eq!(name, sample_name, "{line}");
        let (labels, value) = labels(rest);
        assert!(seen.insert((name.to_owned(), labels.clone())), "twice: {line}");
        let value: f64 = value.strip_prefix(' ').expect("a space").parse().expect(line);
        assert!(value.is_finite() && value >= 0.0, "{line}");
        samples.entry(name.to_owned()).or_default().push((labels, value));
    }
    samples
}

/// The labels at the begin of `text`, and the rest.
fn labels(text: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    let Some(mut rest) = text.strip_prefix('{') else {
        return (labels, text);
    };
    loop {
        let (name, quoted) = rest.split_once("=\"").expect("a label");
        let mut value = String::new();
        let mut chars = quoted.char_indices();
        let end = loop {
            match chars.next().expect("an end") {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next().expect("what is escaped").1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    c => panic!("\\{c}"),
                }),
                (_, c) => value.push(c),
            }
        };
        assert!(labels.insert(name.to_owned(), value).is_none(), "{name} twice");
        rest = &quoted[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (labels, rest.strip_prefix('}').expect("an end")),
        }
    }
}

#[test]
fn what_is_not_known_has_no_series() {
    let mut nothing = snapshots::nothing();
    nothing.oom_kills_untold = None;
    let nothing = JobSample::new(&Whose::Job("9".into()), nothing);
    let samples = read(
        &text(&[nothing], &agent(), Format::OpenMetrics),
        Format::OpenMetrics,
    );
    let of_job: Vec<_> = samples
        .iter()
        .filter(|(name, _)| name.starts_with("swbpf_job_"))
        .map(|(name, samples)| (name.as_str(), samples[0].1))
        .collect();
    for absent in [
        "swbpf_job_needed_bytes",
        "swbpf_job_needed_window_peak_bytes",
        "swbpf_job_cpu_seconds_total",
        "swbpf_job_oom_kills_total",
    ] {
        assert!(!samples.contains_key(absent), "{of_job:?}");
    }
    assert_eq!(samples["swbpf_job_info"][0].0["source"], "unavailable");
    let reasons: Vec<_> = samples["swbpf_losses_total"]
        .iter()
        .map(|(labels, _)| labels["reason"].as_str())
        .collect();
    assert!(reasons.contains(&"kernel_memory_misses") && !reasons.contains(&"lru_misses"));
    let mut infinite = agent();
    infinite.cpu_seconds = f64::NAN;
    let samples = read(&text(&[], &infinite, Format::OpenMetrics), Format::OpenMetrics);
    assert!(!samples.contains_key("swbpf_agent_cpu_seconds_total"));
}

#[test]
fn numbers_are_those_of_the_snapshot() {
    let snapshot = snapshots::job();
    let samples = read(&text(&jobs(), &agent(), Format::Prometheus), Format::Prometheus);
    let of = |name: &str| {
        let all = &samples[name];
        let own = all
            .iter()
            .find(|(labels, _)| labels.get("jobid").is_some_and(|id| id == "77"));
        own.expect(name).1
    };
    let memory = &snapshot.memory;
    assert_eq!(
        of("swbpf_job_needed_peak_bytes"),
        memory.needed_peak_bytes.expect("known") as f64
    );
    assert_eq!(of("swbpf_job_needed_window_peak_bytes"), (700_u64 << 20) as f64);
    assert_eq!(
        of("swbpf_job_limit_bytes"),
        memory.limit_bytes.expect("known") as f64
    );
    assert_eq!(
        of("swbpf_job_cpu_seconds_total"),
        snapshot.cpu.busy_seconds.expect("known")
    );
    assert_eq!(of("swbpf_job_oom_kills_total"), 1.0);
    let steps: Vec<_> = samples["swbpf_step_needed_peak_bytes"]
        .iter()
        .map(|(labels, _)| labels["step"].as_str())
        .collect();
    assert_eq!(steps, ["batch", "0", "1"], "a number that is too large has none");
    assert_eq!(of("swbpf_job_steps_left_out"), 1.0);
}

#[test]
fn series_are_bounded_however_many_steps_and_targets_of_one_name() {
    let mut snapshot = snapshots::job();
    let step = snapshot.steps.as_ref().expect("steps")[1].clone();
    let steps = (0..5_000).map(|number| {
        let mut step = step.clone();
        step.step_id = (number % 2_500).to_string();
        step.usage.needed_peak_bytes = Some(number);
        step
    });
    snapshot.steps = Some(steps.collect());
    let job = JobSample::new(&Whose::Job("77".into()), snapshot);
    let samples = read(
        &text(&[job.clone(), job], &agent(), Format::OpenMetrics),
        Format::OpenMetrics,
    );
    let peaks = &samples["swbpf_step_needed_peak_bytes"];
    assert_eq!(peaks.len(), NUMBERED_STEPS as usize);
    assert_eq!(peaks[0].1, 2_500.0, "the last one of a name counts");
    let left_out = 5_000.0 - f64::from(NUMBERED_STEPS);
    assert_eq!(samples["swbpf_job_steps_left_out"][0].1, left_out);
    assert_eq!(samples["swbpf_agent_jobs_left_out"][0].1, 1.0);
}

#[test]
fn help_tells_the_bound_that_holds() {
    let [(_, jobs), ..] = described();
    let left_out = jobs
        .iter()
        .find(|metric| metric.name == "swbpf_job_steps_left_out");
    let help = left_out.expect("described").help;
    assert!(
        help.contains(&format!("numbered {NUMBERED_STEPS} and above")),
        "{help}"
    );
}

#[test]
fn all_that_is_told_is_described_and_all_that_is_described_can_be_told() {
    let samples = read(&text(&jobs(), &agent(), Format::OpenMetrics), Format::OpenMetrics);
    let told: BTreeSet<String> = samples.into_keys().collect();
    let described = described();
    let all: Vec<_> = described.iter().flat_map(|(_, metrics)| metrics).collect();
    let names: BTreeSet<String> = all.iter().map(|metric| metric.name.clone()).collect();
    assert_eq!(told, names);
    assert_eq!(names.len(), all.len(), "a name twice");
    for metric in all {
        assert!(metric.name.starts_with("swbpf_"), "{metric:?}");
        assert_eq!(
            metric.name.ends_with("_total"),
            metric.kind == Kind::Counter,
            "{metric:?}"
        );
        assert!(metric.help.ends_with('.'), "{metric:?}");
    }
}

proptest! {
    #[test]
    fn any_name_leaves_a_text_that_can_be_read(
        name: String, path: String, number: u64, seconds: f64, which in 0_usize..8
    ) {
        let (_, snapshot) = snapshots::all().swap_remove(which);
        let mut snapshot: Snapshot = snapshots::hostile::with_names(snapshot, &name, &path);
        snapshot.job_id = Some(name.clone());
        snapshot.memory.needed_bytes = Some(number);
        snapshot.cpu.busy_seconds = Some(seconds.abs());
        let both = [Whose::Job(name.clone()), Whose::Cgroup(path)];
        let jobs: Vec<JobSample> = both
            .iter()
            .map(|whose| JobSample::new(whose, snapshot.clone()).with_window_peak(Some(number)))
            .collect();
        for format in FORMATS {
            let told = text(&jobs, &agent(), format);
            prop_assert!(told.lines().all(|line| line.len() < 2048));
            let samples = read(&told, format);
            prop_assert_eq!(samples["swbpf_job_info"].len(), 2);
        }
    }
}

/// The panels of the dashboard are whole, have places of their own, and ask for metrics that there are.
#[test]
fn the_dashboard_shows_what_is_told() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/grafana/sw-bpf.json");
    let text = fs::read_to_string(path).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let names: BTreeSet<String> = described()
        .into_iter()
        .flat_map(|(_, metrics)| metrics)
        .map(|metric| metric.name)
        .collect();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let asked = |text: &str| -> Vec<String> {
        text.split(|c| !is_name(c))
            .filter(|word| word.starts_with("swbpf_"))
            .map(str::to_owned)
            .collect()
    };
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        let query = variable["definition"].as_str().unwrap_or_default();
        assert!(asked(query).iter().all(|name| names.contains(name)), "{query}");
    }
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().expect("panels") {
        let title = panel["title"].as_str().expect("a title");
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{title}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().expect("a number"));
        assert!(w > 0 && h > 0 && x + w <= 24, "{title}");
        for (column, line) in (x..x + w).flat_map(|column| (y..y + h).map(move |line| (column, line))) {
            assert!(taken.insert((column, line)), "{title} is where another one is");
        }
        let targets = panel["targets"].as_array();
        assert_eq!(targets.is_none(), panel["type"] == "row", "{title}");
        let mut refs = BTreeSet::new();
        for target in targets.into_iter().flatten() {
            assert!(
                refs.insert(target["refId"].as_str().expect("a letter")),
                "{title}"
            );
            let names_asked = asked(target["expr"].as_str().expect("an expression"));
            assert!(!names_asked.is_empty(), "{title}");
            assert!(
                names_asked.iter().all(|name| names.contains(name)),
                "{title}: {names_asked:?}"
            );
        }
    }
}
