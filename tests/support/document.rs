//! The document that holds the tables, between two markers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const BEGIN: &str = "<!-- overhead: begin -->";
const END: &str = "<!-- overhead: end -->";

/// A file, and what stands before and after the tables.
pub struct Document {
    path: PathBuf,
    before: String,
    after: String,
}

impl Document {
    /// Reads it: that it has no markers is better told before the measurement than after.
    pub fn open(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let (before, after) =
            around(&text).with_context(|| format!("{} has no {BEGIN} and {END}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
        })
    }

    /// Writes it with these tables.
    pub fn write(&self, tables: &str) -> Result<()> {
        let text = format!("{}{BEGIN}\n{tables}{END}{}", self.before, self.after);
        fs::write(&self.path, text).with_context(|| format!("write {}", self.path.display()))
    }
}

/// What stands before the first marker and after the second.
fn around(text: &str) -> Option<(&str, &str)> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some((before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_the_markers_is_replaced() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("overhead.md");
        fs::write(&path, format!("# A\n{BEGIN}\nold\n{END}\n# B\n")).expect("a file");
        let document = Document::open(&path).expect("markers");
        document.write("new\n").expect("written");
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(text, format!("# A\n{BEGIN}\nnew\n{END}\n# B\n"));
    }

    #[test]
    fn without_both_markers_in_order_it_is_refused() {
        assert!(around(BEGIN).is_none());
        assert!(around(&format!("{END}{BEGIN}")).is_none());
    }
}
