//! Imports run forward only: a room of `swbpf/src` may use those above it, never one below.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::tree;

/// The rooms, from what knows nothing of the others to what ties them together.
const ROOMS: [&str; 11] = [
    "error", "snapshot", "cli", "job", "kernel", "probe", "sampled", "fold", "out", "verb", "main",
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
        for (index, line) in text.lines().enumerate() {
            let used = imports(line).filter(|used| !may_use(name, used));
            faults.extend(used.map(|used| format!("{}:{}: {name} uses {used}", path.display(), index + 1)));
        }
    }
    tree::none(&faults)
}

/// The room that a file belongs to: `job` for both `swbpf/src/job.rs` and `swbpf/src/job/id.rs`.
fn room(path: &Path) -> Option<&str> {
    let first = path.components().nth(2)?.as_os_str().to_str()?;
    Some(first.strip_suffix(".rs").unwrap_or(first))
}

/// The rooms that a line names by `crate::`; comments may name any.
fn imports(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices("crate::").map(move |(at, found)| {
        let rest = &code[at + found.len()..];
        rest.split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()
            .unwrap_or_default()
    })
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
        assert_eq!(imports("use crate::error::Error;").collect::<Vec<_>>(), ["error"]);
        assert_eq!(
            imports("let x = crate::a::f(crate::b::C);").collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert_eq!(imports("/// See [`x`](crate::out::x).").count(), 0);
    }
}
