//! The test programs, built here and laid where a virtual machine sees them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::command::{cargo, output, run, target_dir};
use crate::test::{PACKAGE, STARTED};

/// What they start, and what looks at the kernel programs.
const BINS: [&str; 3] = ["sw-bpf", "workload", "kernels"];

/// Builds the test programs `names`, and puts each into `share`, as `deps/NAME`, and what they start beside them.
pub fn lay(names: &[String], share: &Path) -> Result<()> {
    let release = ["--quiet", "--release", "--package", PACKAGE];
    run(cargo().arg("build").args(release).args(STARTED).arg("--bins"))?;
    let mut build = cargo();
    build
        .arg("test")
        .args(release)
        .args(["--no-run", "--message-format=json"]);
    build.args(names.iter().flat_map(|name| ["--test", name]));
    let messages = output(&mut build)?;
    let deps = share.join("deps");
    fs::create_dir_all(&deps).with_context(|| deps.display().to_string())?;
    for name in names {
        let program = messages.lines().find_map(|line| executable(line, name));
        let program = program.with_context(|| format!("cargo built no {name}"))?;
        link(&program, &deps.join(name))?;
    }
    for name in BINS {
        link(&target_dir().join("release").join(name), &share.join(name))?;
    }
    Ok(())
}

/// The program of the test `name`, where a message of cargo tells of it.
fn executable(message: &str, name: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_it = message["target"]["name"] == name && message["profile"]["test"] == true;
    is_it.then(|| message["executable"].as_str().map(PathBuf::from))?
}

/// The same file, not another one: they are large.
fn link(from: &Path, to: &Path) -> Result<()> {
    ensure!(from.exists(), "{} is missing", from.display());
    fs::hard_link(from, to).with_context(|| format!("cannot make {}", to.display()))
}
