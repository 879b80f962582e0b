//! `docs/` is what the code says; `SWBPF_BLESS=1` rewrites it.

#[path = "snapshots/listed.rs"]
mod listed;
#[path = "docs/metrics.rs"]
mod metrics;
mod snapshots;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;
use swbpf::doctor;
use swbpf::error::{EXIT_CODES, EXIT_CODES_OF_DOCTOR, EXIT_CODES_OF_RUN};
use swbpf::out::schema::{all_nodes_schema, json_schema, list_schema};

/// Compares `docs/name` with what it should be.
fn assert_doc(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    if std::env::var_os("SWBPF_BLESS").is_some() {
        fs::write(&path, text).expect("doc");
    }
    let stored = fs::read_to_string(&path).expect("doc; SWBPF_BLESS=1 makes it");
    let differing = stored
        .lines()
        .zip(text.lines())
        .find(|(stored, told)| stored != told);
    assert!(
        stored == text,
        "docs/{name} is stale, `cargo xtask bless` rewrites it: {differing:?}"
    );
}

#[test]
fn the_schemas_are_published() {
    for (name, schema) in [
        ("schema.json", json_schema()),
        ("all-nodes.schema.json", all_nodes_schema()),
        ("list.schema.json", list_schema()),
        ("doctor.schema.json", doctor::json_schema()),
    ] {
        assert_eq!(
            schema.as_value()["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
        assert!(jsonschema::draft202012::meta::is_valid(schema.as_value()));
        let text = serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
        assert_doc(name, &text);
    }
}

/// What of `value` does not fit.
fn faults(validator: &jsonschema::Validator, value: &Value) -> Vec<String> {
    validator
        .iter_errors(value)
        .map(|fault| fault.to_string())
        .collect()
}

#[test]
fn snapshots_fit_the_schema_and_nothing_else_does() {
    let validator = jsonschema::draft202012::new(json_schema().as_value()).expect("schema");
    for (name, snapshot) in snapshots::all() {
        let value = serde_json::to_value(&snapshot).expect("JSON");
        assert_eq!(faults(&validator, &value), [""; 0], "{name}");
    }
    let spoilt = |spoil: fn(&mut Value)| {
        let mut value = serde_json::to_value(snapshots::kernel()).expect("JSON");
        spoil(&mut value);
        value
    };
    for bad in [
        spoilt(|value| value["memory"]["peek_bytes"] = 1.into()),
        spoilt(|value| value["memory"]["needed_bytes"] = (-1).into()),
        spoilt(|value| value["source"] = "guessed".into()),
        spoilt(|value| value["cpu"]["concurrency"]["seconds"]["many"] = 1.0.into()),
        spoilt(|value| drop(value.as_object_mut().expect("object").remove("loss"))),
    ] {
        assert!(!validator.is_valid(&bad), "{bad}");
    }
}

#[test]
fn answers_of_all_nodes_fit_their_schema_and_nothing_else_does() {
    let validator = jsonschema::draft202012::new(all_nodes_schema().as_value()).expect("schema");
    for (name, gathered) in snapshots::all_gathered() {
        let value = serde_json::to_value(&gathered).expect("JSON");
        assert_eq!(faults(&validator, &value), [""; 0], "{name}");
        let spoils: [fn(&mut Value); 5] = [
            |value| value["kind"] = "once".into(),
            |value| value["nodes"][0]["snapshot"] = Value::Object(serde_json::Map::new()),
            |value| value["totals"]["needed_bytes"] = (-1).into(),
            |value| value["totals"]["peak"] = 1.into(),
            |value| drop(value.as_object_mut().expect("object").remove("missing")),
        ];
        for spoil in spoils {
            let mut bad = value.clone();
            spoil(&mut bad);
            assert!(!validator.is_valid(&bad), "{bad}");
        }
    }
}

#[test]
fn lists_fit_their_schema_and_nothing_else_does() {
    let validator = jsonschema::draft202012::new(list_schema().as_value()).expect("schema");
    for (name, listing) in listed::all_listings() {
        let value = serde_json::to_value(&listing).expect("JSON");
        assert_eq!(faults(&validator, &value), [""; 0], "{name}");
        for entry in value["jobs"].as_array().expect("jobs") {
            assert_reasons(entry);
        }
        let mut bad = value.clone();
        bad["kind"] = "once".into();
        assert!(!validator.is_valid(&bad), "{bad}");
    }
}

/// That what is not known of an entry has a reason, and nothing else has.
fn assert_reasons(entry: &Value) {
    let unknown = entry["unknown"].as_object().expect("reasons");
    for (key, value) in entry.as_object().expect("an entry") {
        let is_unknown = value.is_null() || (key == "state" && value == "unknown");
        assert!(
            key == "record" || is_unknown == unknown.contains_key(key),
            "{key}: {entry}"
        );
    }
}

#[test]
fn the_fields_are_listed() {
    assert_doc("fields.md", &fields());
}

#[test]
fn every_topic_of_the_doctor_is_described() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/doctor.md");
    let text = fs::read_to_string(path).expect("docs/doctor.md");
    let schema = doctor::json_schema().to_value();
    for kind in ["Topic", "Verdict"] {
        let words = schema["$defs"][kind]["oneOf"].as_array().expect("words");
        for word in words {
            let row = format!("| `{}` |", word["const"].as_str().expect("a word"));
            assert!(text.contains(&row), "{row}");
        }
    }
}

#[test]
fn the_exit_codes_are_listed() {
    let mut text = format!(
        "# Exit codes\n\n{EXIT_CODES_OF_RUN}\n\n{EXIT_CODES_OF_DOCTOR}\n\n| Code | Meaning |\n|---:|---|\n"
    );
    for (code, meaning) in EXIT_CODES {
        line(&mut text, &format!("| {code} | {meaning} |"));
    }
    assert_doc("exit-codes.md", &text);
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a String takes everything");
}

fn fields() -> String {
    let schema = json_schema().to_value();
    let mut text = String::from(
        "# Fields of the snapshot\n\n\
         `sw-bpf --once --json` prints one JSON object on one line; `sw-bpf run --json FILE` writes one a line, the \
         last one the summary. Every key is always there. A number that is not known is `null`, and `unknown` says \
         why under the dotted key. [schema.json](schema.json) is the same for programs.\n\n\
         `[]` stands for each element of a list.\n\n\
         | Key | Unit | Type | Null | Meaning |\n|---|---|---|---|---|\n",
    );
    rows(&mut text, &schema, &schema, "");
    line(&mut text, "\n## Words\n\n| Key | Word | Meaning |\n|---|---|---|");
    words(&mut text, &schema);
    text + &fields_of_all_nodes() + &fields_of_list()
}

fn fields_of_list() -> String {
    let schema = list_schema().to_value();
    let mut text = String::from(
        "\n# Fields of a list\n\n\
         `sw-bpf list --json` prints one JSON object on one line, [list.schema.json](list.schema.json): what each record tells \
         in short. `kind` is `list`; the words of `jobs[].source` are above.\n\n\
         | Key | Unit | Type | Null | Meaning |\n|---|---|---|---|---|\n",
    );
    rows(&mut text, &schema, &schema, "");
    line(&mut text, "\n| State | Meaning |\n|---|---|");
    for word in schema["$defs"]["JobState"]["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let meaning = described("state", word);
        line(
            &mut text,
            &format!("| `{}` | {meaning} |", word["const"].as_str().expect("word")),
        );
    }
    text
}

fn fields_of_all_nodes() -> String {
    let schema = all_nodes_schema().to_value();
    let mut text = String::from(
        "\n# Fields of all nodes\n\n\
         `sw-bpf --once --all-nodes --json` prints one JSON object on one line, \
         [all-nodes.schema.json](all-nodes.schema.json): the snapshot of each node of a job, and their sums. \
         `kind` is `all_nodes`; the keys of a snapshot, and the words of `totals.source`, are above.\n\n\
         sw-bpf runs on each node as a step of the job, through one `srun --overlap`, by the path that it has on the host \
         where it is typed. Slurm lets the job's own user alone start a step. A node without an answer within the window and \
         30 s is in `missing`, and the exit code is 76. Where the daemon of a node hangs, Slurm ends the step on every node \
         after twice its `MessageTimeout`, mostly 20 s: with a longer window no node answers then.\n\n\
         | Key | Unit | Type | Null | Meaning |\n|---|---|---|---|---|\n",
    );
    let mut keys = String::new();
    rows(&mut keys, &schema, &schema, "");
    // They are above.
    let of_snapshot = |key: &&str| key.starts_with("| `nodes[].snapshot.");
    for key in keys.lines().filter(|key| !of_snapshot(key)) {
        line(&mut text, key);
    }
    text
}

/// Calls `visit` with the dotted key, the property and its type resolved, for each property of `object`.
fn each<'a>(
    schema: &'a Value,
    object: &'a Value,
    at: &str,
    visit: &mut dyn FnMut(&str, &'a Value, &'a Value),
) {
    for (key, property) in object["properties"].as_object().into_iter().flatten() {
        visit(&format!("{at}{key}"), property, resolved(schema, property));
    }
}

fn rows(text: &mut String, schema: &Value, object: &Value, at: &str) {
    each(schema, object, at, &mut |key, property, kind| {
        let meaning = described(key, property);
        let null = if nullable(property) { "yes" } else { "" };
        let name = name(schema, kind);
        line(
            text,
            &format!("| `{key}` | {} | {name} | {null} | {meaning} |", unit(key, &name)),
        );
        rows(text, schema, kind, &format!("{key}."));
        rows(
            text,
            schema,
            resolved(schema, &kind["items"]),
            &format!("{key}[]."),
        );
    });
}

/// The words that each key may hold, keys with the same words together.
fn words(text: &mut String, schema: &Value) {
    let mut found: Vec<(&Value, Vec<String>)> = Vec::new();
    collect_words(&mut found, schema, schema, "");
    for (words, keys) in found {
        for word in words.as_array().into_iter().flatten() {
            let meaning = described(&keys[0], word);
            line(
                text,
                &format!(
                    "| {} | `{}` | {meaning} |",
                    keys.join(", "),
                    word["const"].as_str().expect("word")
                ),
            );
        }
    }
}

fn collect_words<'a>(
    found: &mut Vec<(&'a Value, Vec<String>)>,
    schema: &'a Value,
    object: &'a Value,
    at: &str,
) {
    each(schema, object, at, &mut |key, _, kind| {
        let key_of = format!("`{key}`");
        match found.iter_mut().find(|(words, _)| **words == kind["oneOf"]) {
            Some((_, keys)) => keys.push(key_of),
            None if kind["oneOf"].is_array() => found.push((&kind["oneOf"], vec![key_of])),
            None => {}
        }
        collect_words(found, schema, kind, &format!("{key}."));
    });
}

/// The description of `property` on one line.
fn described(key: &str, property: &Value) -> String {
    let meaning = property["description"]
        .as_str()
        .unwrap_or_else(|| panic!("{key} is not described"));
    meaning
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

/// What `property` refers to, `null` aside.
fn resolved<'a>(schema: &'a Value, property: &'a Value) -> &'a Value {
    let some = property["anyOf"]
        .as_array()
        .and_then(|kinds| kinds.iter().find(|kind| kind["type"] != "null"));
    let property = some.unwrap_or(property);
    match property["$ref"].as_str() {
        Some(path) => schema.pointer(path.trim_start_matches('#')).expect("definition"),
        None => property,
    }
}

fn nullable(property: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null" || kind["type"] == "null";
    ["type", "anyOf"].iter().any(|key| {
        property[key]
            .as_array()
            .is_some_and(|kinds| kinds.iter().any(is_null))
    })
}

/// The type in a word or two.
fn name(schema: &Value, kind: &Value) -> String {
    if kind["oneOf"].is_array() {
        return "word".to_owned();
    }
    if let Some(values) = kind["patternProperties"]
        .as_object()
        .and_then(|patterns| patterns.values().next())
    {
        return format!("map of {}", name(schema, values));
    }
    if kind["additionalProperties"].is_object() {
        return format!("map of {}", name(schema, &kind["additionalProperties"]));
    }
    let types = &kind["type"];
    let some = types
        .as_array()
        .and_then(|types| types.iter().find(|&kind| kind != "null"))
        .unwrap_or(types);
    match some.as_str().unwrap_or("anything") {
        "array" => format!("list of {}", name(schema, resolved(schema, &kind["items"]))),
        "boolean" => "true or false".to_owned(),
        other => other.to_owned(),
    }
}

/// The unit, which stands in the name.
fn unit(key: &str, kind: &str) -> &'static str {
    let name = key.rsplit('.').next().unwrap_or(key);
    let is_number = kind.ends_with("number") || kind.ends_with("integer");
    match name {
        "timestamp" | "from" | "to" | "at" => "RFC 3339",
        _ if !is_number => "",
        "ns_per_event" => "ns",
        _ if name.ends_with("_ns") => "ns",
        _ if name.ends_with("bytes") => "bytes",
        _ if name.ends_with("seconds") => "s",
        _ if name.ends_with("percent") => "%",
        _ if name.ends_with("_cores") || name.starts_with("cores_") => "cores",
        _ if name.ends_with("_inflation") => "ratio",
        _ => "",
    }
}
