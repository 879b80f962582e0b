//! What the committed object was made of, so that a stale one is found without a compiler for kernel programs.
//!
//! The record beside the object holds a line for each thing that decides its bytes: the files of the two crates, the
//! flags, and the locked versions of aya's crates for the kernel side. The rest of `Cargo.lock` is left out, because a
//! new version of, say, clap does not change the object, and neither does what aya's macros are written with; `cargo
//! xtask build-ebpf --verify` compares the bytes themselves. Two more lines tell what made the object, and its own hash.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

const CRATES: [&str; 2] = ["swbpf-common", "swbpf-ebpf"];
const KERNEL_SIDE: &str = "aya-ebpf";

/// The line of each source, sorted.
pub fn sources(root: &Path, flags: &[String]) -> Result<Vec<String>> {
    let mut lines = vec![format!("flags: {}", flags.join(" "))];
    let lock = root.join("Cargo.lock");
    let lock = fs::read_to_string(&lock).with_context(|| lock.display().to_string())?;
    lines.extend(locked(&lock));
    for name in CRATES {
        for file in files(&root.join(name))? {
            let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
            let path = file.strip_prefix(root)?.display();
            lines.push(format!("file: {path} {}", sha256(&bytes)));
        }
    }
    lines.sort();
    Ok(lines)
}

/// The record of `object`, made of `sources` by `toolchain`.
pub fn record(sources: &[String], toolchain: &str, object: &[u8]) -> String {
    let mut record = String::new();
    for line in sources {
        let _ = writeln!(record, "{line}");
    }
    let _ = writeln!(record, "made by: {toolchain}\nobject: {}", sha256(object));
    record
}

/// The value of a line of a record, `made by` or `object`.
pub fn value<'a>(record: &'a str, key: &str) -> Option<&'a str> {
    record
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
}

/// The names of what changed between a record and the sources of today.
pub fn changed(record: &str, sources: &[String]) -> Vec<String> {
    let of_sources = |line: &&str| !line.starts_with("made by: ") && !line.starts_with("object: ");
    let then: Vec<&str> = record.lines().filter(of_sources).collect();
    let now: Vec<&str> = sources.iter().map(String::as_str).collect();
    let gone = then.iter().filter(|line| !now.contains(line));
    let come = now.iter().filter(|line| !then.contains(line));
    let mut names: Vec<String> = gone.chain(come).map(|line| name(line)).collect();
    names.sort();
    names.dedup();
    names
}

/// Hexadecimal SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

fn name(line: &str) -> String {
    line.split(' ')
        .take(if line.starts_with("flags") { 1 } else { 2 })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Name, version and checksum of each of aya's crates for the kernel side.
fn locked(lock: &str) -> Vec<String> {
    let entries = lock.split("[[package]]").map(|entry| {
        let value = |key| {
            entry
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
        };
        [value("name"), value("version"), value("checksum")].map(|v| v.unwrap_or_default().trim_matches('"'))
    });
    entries
        .filter(|[name, ..]| name.starts_with(KERNEL_SIDE))
        .map(|[name, version, checksum]| format!("crate: {name} {version} {checksum}"))
        .collect()
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path())?);
        } else if entry
            .path()
            .extension()
            .is_some_and(|ext| ext == "rs" || ext == "toml")
        {
            found.push(entry.path());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "[[package]]\nname = \"aya-ebpf\"\nversion = \"0.2.1\"\nchecksum = \"c0ffee\"\n\n\
                        [[package]]\nname = \"clap\"\nversion = \"4.6.9\"\nchecksum = \"abcdef\"\n";

    #[test]
    fn lock_gives_kernel_side_only() {
        assert_eq!(locked(LOCK), ["crate: aya-ebpf 0.2.1 c0ffee"]);
    }

    #[test]
    fn changed_sources_are_named() {
        let then = ["file: a/lib.rs 1", "file: a/main.rs 1", "flags: -C x"].map(String::from);
        let now = ["file: a/main.rs 2", "file: a/new.rs 1", "flags: -C x"].map(String::from);
        let record = record(&then, "rustc 1.96.0", b"object");
        assert_eq!(changed(&record, &then), Vec::<String>::new());
        assert_eq!(
            changed(&record, &now),
            ["file: a/lib.rs", "file: a/main.rs", "file: a/new.rs"]
        );
        assert_eq!(value(&record, "made by"), Some("rustc 1.96.0"));
    }
}
