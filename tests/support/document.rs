//! A document that holds measured tables, between two markers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file, and what stands before and after the tables.
#[derive(Debug)]
pub struct Document {
    path: PathBuf,
    before: String,
    after: String,
}

impl Document {
    /// Reads it, up to the comment `NAME: begin` and from the comment `NAME: end` on. That it has none is better told
    /// before a measurement than after.
    ///
    /// # Errors
    ///
    /// Where it cannot be read, or has no such comments.
    pub fn open(path: &Path, name: &str) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let [begin, end] = ["begin", "end"].map(|what| format!("<!-- {name}: {what} -->"));
        let (before, after) = around(&text, &begin, &end)
            .with_context(|| format!("{} has no {begin} and {end}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
        })
    }

    /// Writes it with these tables.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn write(&self, tables: &str) -> Result<()> {
        let text = format!("{}\n{tables}{}", self.before, self.after);
        fs::write(&self.path, text).with_context(|| format!("write {}", self.path.display()))
    }
}

/// What stands up to the first marker, and from the second on, the markers among it.
fn around<'a>(text: &'a str, begin: &str, end: &str) -> Option<(&'a str, &'a str)> {
    let after_begin = text.find(begin)? + begin.len();
    let end = after_begin + text[after_begin..].find(end)?;
    Some((&text[..after_begin], &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- overhead: begin -->";
    const END: &str = "<!-- overhead: end -->";

    #[test]
    fn what_is_between_the_markers_is_replaced() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("overhead.md");
        fs::write(&path, format!("# A\n{BEGIN}\nold\n{END}\n# B\n")).expect("a file");
        let document = Document::open(&path, "overhead").expect("markers");
        document.write("new\n").expect("written");
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(text, format!("# A\n{BEGIN}\nnew\n{END}\n# B\n"));
    }

    #[test]
    fn without_both_markers_in_order_it_is_refused() {
        assert!(around(BEGIN, BEGIN, END).is_none());
        assert!(around(&format!("{END}{BEGIN}"), BEGIN, END).is_none());
    }
}
