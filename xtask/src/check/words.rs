//! Nothing of the machine that built the project stays in it.

use std::fs;

use anyhow::{Context as _, Result};

use super::tree;
use crate::command::root;

/// Beginnings of paths that only one machine has; in two parts, so that this file holds none.
const FOREIGN: [(&str, &str); 4] = [("/ro", "ot/"), ("/ho", "me/"), ("/wo", "rk/"), ("/us", "ers/")];

/// Fails with each file that holds such a path, the object among them.
pub fn check() -> Result<()> {
    let foreign = FOREIGN.map(|(begin, end)| format!("{begin}{end}"));
    let mut faults = Vec::new();
    for path in tree::files("")? {
        let bytes = fs::read(root().join(&path)).with_context(|| path.display().to_string())?;
        for (index, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            for word in foreign.iter().filter(|word| line.contains(*word)) {
                faults.push(format!(
                    "{}:{}: a path of one machine: {word}",
                    path.display(),
                    index + 1
                ));
            }
        }
    }
    tree::none(&faults)
}
