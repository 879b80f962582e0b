//! `sw-bpf` as a user has it: what it answers, and whether what it answers is whole.
//!
//! All JSON that a test reads goes through [`snapshot`], which holds it against the published schema, and holds what is
//! not known against the reasons that are given for it.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use crate::measure::program;

/// The published form of one line.
static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema.json");
    let text = fs::read_to_string(&path).expect("docs/schema.json");
    let schema = serde_json::from_str(&text).expect("a schema");
    jsonschema::validator_for(&schema).expect("a valid schema")
});

/// Names the source, by its option, that is to be measured with where a test does not care: to try another than the best.
const SOURCE: &str = "SWBPF_TEST_SOURCE";
const FORCE_SOURCE: &str = "--force-source";

/// The source that the tests are to measure with, where it is not the best.
#[must_use]
pub fn source() -> Option<String> {
    env::var(SOURCE).ok()
}

/// `sw-bpf` with these arguments.
#[must_use]
pub fn sw_bpf(arguments: &[&str]) -> Command {
    let mut command = Command::new(program("sw-bpf"));
    let is_free = !arguments
        .iter()
        .any(|word| [FORCE_SOURCE, "doctor", "show", "list"].contains(word));
    if let Some(source) = source().filter(|_| is_free) {
        command.args([FORCE_SOURCE, &source]);
    }
    command.args(arguments);
    command
}

/// Runs a command to its end.
///
/// # Panics
///
/// Where it cannot be started.
pub fn output(command: &mut Command) -> Output {
    command.output().expect("the command starts")
}

/// What a command said on standard error.
#[must_use]
pub fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The one line in which `sw-bpf` told a failure, and its exit code.
///
/// # Panics
///
/// Where it said more, or less, or nothing that can be shown as it is.
#[must_use]
pub fn failure(output: &Output) -> (Option<i32>, String) {
    let told = told(output);
    let line = told
        .strip_suffix('\n')
        .unwrap_or_else(|| panic!("no line: {told:?}"));
    assert!(line.starts_with("sw-bpf: "), "{told:?}");
    assert!(!line.chars().any(char::is_control), "{told:?}");
    (output.status.code(), line.to_owned())
}

/// The answer of `--once --json`.
///
/// # Panics
///
/// Where it failed, or its answer is not whole.
#[must_use]
pub fn answer(output: &Output) -> Value {
    assert!(output.status.success(), "{}: {}", output.status, told(output));
    let text = std::str::from_utf8(&output.stdout).expect("text");
    snapshot(text.strip_suffix('\n').expect("a line"))
}

/// The lines of a record.
///
/// # Panics
///
/// Where one is not whole, or the last one alone is not the summary.
#[must_use]
pub fn record(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a record");
    let lines: Vec<_> = text.lines().map(snapshot).collect();
    let (last, others) = lines.split_last().expect("a line");
    assert_eq!(last["kind"], "summary");
    assert!(others.iter().all(|line| line["kind"] == "progress"), "{text}");
    lines
}

/// One line of JSON that keeps what is promised: it has the published form, every `null` has a reason, and nothing else
/// has.
///
/// # Panics
///
/// Where it does not.
#[must_use]
pub fn snapshot(line: &str) -> Value {
    let snapshot: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let faults: Vec<_> = SCHEMA
        .iter_errors(&snapshot)
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
    let reasons = snapshot["unknown"].as_object().expect("reasons");
    let unfounded: Vec<_> = reasons.iter().filter(|(_, reason)| *reason == "").collect();
    assert!(unfounded.is_empty(), "reasons without a word: {unfounded:?}");
    let mut nulls = BTreeSet::new();
    note_nulls(&snapshot, "", &mut nulls);
    let reasons: BTreeSet<_> = reasons.keys().cloned().collect();
    assert_eq!(nulls, reasons, "left: null; right: with a reason");
    snapshot
}

/// The dotted keys of all that is `null` in `value`, the elements of a list together as `list[]`.
fn note_nulls(value: &Value, key: &str, nulls: &mut BTreeSet<String>) {
    match value {
        Value::Null => drop(nulls.insert(key.to_owned())),
        Value::Object(members) => {
            let prefix = if key.is_empty() {
                String::new()
            } else {
                format!("{key}.")
            };
            for (name, value) in members {
                note_nulls(value, &format!("{prefix}{name}"), nulls);
            }
        }
        Value::Array(elements) => {
            for value in elements {
                note_nulls(value, &format!("{key}[]"), nulls);
            }
        }
        _ => {}
    }
}
