//! The files of the project.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::command::root;

/// What git and cargo keep beside the project's own files.
const NOT_OURS: [&str; 2] = [".git", "target"];

/// Every file below the directory `dir` of the workspace, sorted, by its path from the root.
pub fn files(dir: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(&root().join(dir), &mut found)?;
    found.sort();
    found
        .into_iter()
        .map(|path| Ok(path.strip_prefix(root())?.to_owned()))
        .collect()
}

/// As [`files`], those of Rust alone, with their text.
pub fn rust(dir: &str) -> Result<Vec<(PathBuf, String)>> {
    let files = files(dir)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ext| ext == "rs"));
    files
        .map(|path| {
            let text = fs::read_to_string(root().join(&path)).with_context(|| path.display().to_string())?;
            Ok((path, text))
        })
        .collect()
}

/// Fails with `faults`, where there are any.
pub fn none(faults: &[String]) -> Result<()> {
    ensure!(faults.is_empty(), "\n  {}", faults.join("\n  "));
    Ok(())
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let kind = entry.file_type()?;
        // In a second work tree, `.git` is a file.
        if NOT_OURS.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if kind.is_file() {
            found.push(entry.path());
        } else if kind.is_dir() {
            collect(&entry.path(), found)?;
        }
    }
    Ok(())
}
