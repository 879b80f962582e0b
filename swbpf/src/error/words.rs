//! Texts on one line, and on several.

/// Each of `items` on a line of its own.
pub fn lines(items: &[String]) -> String {
    let mut lines = String::new();
    for item in items {
        lines.push_str("\n  ");
        lines.push_str(item);
    }
    lines
}

/// `error` with its causes on one line, whatever they hold. A cause that the text before it ends with is not told again.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if told.is_empty() {
            told = cause;
        } else if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}
