//! What `sw-bpf doctor --json` says, held against the published schema.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use crate::command::{output, told};

/// The published form.
static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/doctor.schema.json");
    let text = fs::read_to_string(&path).expect("docs/doctor.schema.json");
    let schema = serde_json::from_str(&text).expect("a schema");
    jsonschema::validator_for(&schema).expect("a valid schema")
});

/// A diagnosis, and the exit code that it came with.
#[derive(Debug)]
pub struct Diagnosis {
    /// The exit code.
    pub code: Option<i32>,
    value: Value,
}

/// One check of it.
#[derive(Debug)]
pub struct Check<'a> {
    /// `ok`, `unknown`, `degraded` or `broken`.
    pub verdict: &'a str,
    /// What was found.
    pub found: &'a str,
    /// The same, one by one.
    pub list: Vec<&'a str>,
    /// What it means for the numbers.
    pub means: &'a str,
    /// What to change, one thing a line.
    pub changes: String,
}

impl Diagnosis {
    /// Runs `sw-bpf doctor --json`.
    ///
    /// # Panics
    ///
    /// Where it says something that is not of the published form, or anything beside it.
    #[must_use]
    pub fn of(command: &mut Command) -> Self {
        let output = output(command);
        Self::read(&output)
    }

    fn read(output: &Output) -> Self {
        assert_eq!(told(output), "");
        let text = std::str::from_utf8(&output.stdout).expect("text");
        let line = text.strip_suffix('\n').expect("a line");
        assert!(!line.contains('\n'), "{line}");
        let value: Value = serde_json::from_str(line).expect("JSON");
        let faults: Vec<_> = SCHEMA
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path))
            .collect();
        assert!(faults.is_empty(), "{faults:#?}");
        Self {
            code: output.status.code(),
            value,
        }
    }

    /// The worst verdict.
    ///
    /// # Panics
    ///
    /// Where there is none.
    #[must_use]
    pub fn verdict(&self) -> &str {
        self.value["verdict"].as_str().expect("a verdict")
    }

    /// The check of a topic.
    ///
    /// # Panics
    ///
    /// Where there is none.
    #[must_use]
    pub fn check(&self, topic: &str) -> Check<'_> {
        let checks = self.value["checks"].as_array().expect("checks");
        let check = checks
            .iter()
            .find(|check| check["topic"] == topic)
            .unwrap_or_else(|| panic!("no check of {topic}: {checks:#?}"));
        let text = |key: &str| check[key].as_str().expect("a text");
        let texts = |key: &str| {
            check[key]
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(Value::as_str)
        };
        Check {
            verdict: text("verdict"),
            found: text("found"),
            list: texts("list").collect(),
            means: text("means"),
            changes: texts("changes").collect::<Vec<_>>().join("\n"),
        }
    }

    /// That a check has this verdict, and that these words are found, and these to be changed.
    ///
    /// # Panics
    ///
    /// Where it has not.
    #[track_caller]
    pub fn assert(&self, topic: &str, verdict: &str, found: &str, change: &str) {
        let check = self.check(topic);
        assert_eq!(check.verdict, verdict, "{topic}: {check:?}");
        assert!(check.found.contains(found), "{topic}: {check:?}");
        assert!(check.changes.contains(change), "{topic}: {check:?}");
    }
}
