//! No file is too long to be read at one sitting. Functions are clippy's: `too-many-lines-threshold`.

use anyhow::Result;

use super::tree;

const MOST_LINES: usize = 400;

/// Fails with each file that is too long.
pub fn check() -> Result<()> {
    let mut faults = Vec::new();
    for (path, text) in tree::rust("")? {
        let lines = text.lines().count();
        if lines > MOST_LINES {
            faults.push(format!(
                "{}: {lines} lines, more than {MOST_LINES}",
                path.display()
            ));
        }
    }
    tree::none(&faults)
}
