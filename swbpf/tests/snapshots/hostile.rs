use super::*;

/// Names that try to take the terminal over.
pub fn hostile() -> Snapshot {
    with_names(
        kernel(),
        "\u{1b}[2J\u{202e}evil\n\\\u{fffd}",
        "/cg/\u{1b}]0;x\u{7}/a b",
    )
}
