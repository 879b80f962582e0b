//! Imports run forward only: a room of `swbpf/src` may use those above it, never one below.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::tree;

/// The rooms, from what knows nothing of the others to what ties them together.
const ROOMS: [&str; 14] = [
    "error", "snapshot", "job", "cli", "kernel", "probe", "sampled", "fold", "out", "record", "wire",
    "doctor", "verb", "main",
];

/// What stands after the waist reads the snapshot, and knows nothing of where its numbers come from.
const AFTER_WAIST: [&str; 1] = ["out"];
const WAIST: [&str; 2] = ["error", "snapshot"];

/// Fails with each import that runs backward.
pub fn check() -> Result<()> {
    let mut faults = Vec::new();
    for (path, text) in tree::rust("swbpf/src")? {
        let name = room(&path).with_context(|| path.display().to_string())?;
        if name == "lib" {
            continue;
        }
        let backward = imports(&text)
            .into_iter()
            .filter(|(_, used)| !may_use(name, used));
        faults.extend(backward.map(|(line, used)| format!("{}:{line}: {name} uses {used}", path.display())));
    }
    tree::none(&faults).with_context(|| format!("a room uses only those before it: {}", ROOMS.join(", ")))
}

/// The room that a file belongs to: `job` for both `swbpf/src/job.rs` and `swbpf/src/job/id.rs`.
fn room(path: &Path) -> Option<&str> {
    let first = path.components().nth(2)?.as_os_str().to_str()?;
    Some(first.strip_suffix(".rs").unwrap_or(first))
}

/// The rooms that a text names by `crate::`, one or several in braces, each with its line; comments may name any.
fn imports(text: &str) -> Vec<(usize, String)> {
    let code: Vec<&str> = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        let line = code[..at].matches('\n').count() + 1;
        found.extend(
            first_names(&code[at + path.len()..])
                .into_iter()
                .map(|name| (line, name)),
        );
    }
    found
}

/// `[a]` for `a::B` and `[a, c]` for `{a::{B, C}, c::D}`.
fn first_names(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else {
        return vec![first_name(path)];
    };
    let mut names = vec![first_name(group)];
    let mut depth = 0;
    for (at, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(first_name(&group[at + 1..])),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn first_name(path: &str) -> String {
    path.trim_start()
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

fn may_use(room: &str, used: &str) -> bool {
    let rank = |name| ROOMS.iter().position(|room| *room == name);
    match (rank(used), rank(room)) {
        _ if room == used => true,
        _ if AFTER_WAIST.contains(&room) => WAIST.contains(&used),
        (Some(used), Some(room)) => used < room,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forward_is_allowed_and_backward_is_not() {
        assert!(may_use("fold", "probe"));
        assert!(may_use("job", "job"));
        assert!(!may_use("probe", "fold"));
        assert!(!may_use("out", "kernel"), "out is after the waist");
        assert!(may_use("out", "snapshot"));
        assert!(!may_use("garret", "error"), "a room that the order does not know");
    }

    #[test]
    fn rooms_are_read_from_paths_and_lines() {
        assert_eq!(room(Path::new("swbpf/src/job.rs")), Some("job"));
        assert_eq!(room(Path::new("swbpf/src/job/cgroup/own.rs")), Some("job"));
        let found = |text| {
            imports(text)
                .into_iter()
                .map(|(line, name)| format!("{line} {name}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(found("\nuse crate::error::Error;"), ["2 error"]);
        assert_eq!(found("let x = crate::a::f(crate::b::C, d);"), ["1 a", "1 b"]);
        assert_eq!(
            found("use crate::{\n    a::{b, c},\n    d::E,\n};\nfn f(g: H) {}"),
            ["1 a", "1 d"]
        );
        assert_eq!(found("/// See [`x`](crate::out::x)."), [""; 0]);
    }
}
