//! A document that holds measured tables, between two markers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file, and what stands before and after the tables.
#[derive(Debug)]
pub struct Document {
    path: PathBuf,
    before: String,
    tables: String,
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
        let [before, tables, after] = parts(&text, &begin, &end)
            .with_context(|| format!("{} has no {begin} and {end}", path.display()))?
            .map(str::to_owned);
        Ok(Self {
            path: path.to_owned(),
            before,
            tables,
            after,
        })
    }

    /// The tables that it has.
    #[must_use]
    pub fn tables(&self) -> &str {
        &self.tables
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

/// What stands up to the first marker, between the two, and from the second on: the markers are not between.
fn parts<'a>(text: &'a str, begin: &str, end: &str) -> Option<[&'a str; 3]> {
    let after_begin = text.find(begin)? + begin.len();
    let end = after_begin + text[after_begin..].find(end)?;
    Some([&text[..after_begin], &text[after_begin..end], &text[end..]])
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
        assert_eq!(document.tables(), "\nold\n");
        document.write("new\n").expect("written");
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(text, format!("# A\n{BEGIN}\nnew\n{END}\n# B\n"));
    }

    #[test]
    fn without_both_markers_in_order_it_is_refused() {
        assert!(parts(BEGIN, BEGIN, END).is_none());
        assert!(parts(&format!("{END}{BEGIN}"), BEGIN, END).is_none());
    }
}
