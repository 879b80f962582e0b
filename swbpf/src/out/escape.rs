//! Names that others chose, made harmless: printable ASCII on a terminal, whatever bytes they hold.

use std::borrow::Cow;

/// What stands where something was cut off.
const CUT: &str = "...";

/// `text` in printable ASCII and at most `columns` wide, its end cut off where it is longer.
///
/// A backslash is doubled; every other byte or character outside printable ASCII becomes `\n`, `\xff` or `\u{202e}`.
pub fn head(text: impl AsRef<[u8]>, columns: usize) -> String {
    cut(pieces(text.as_ref()), columns)
}

/// The same of text that is quoted for a shell, whose backslashes stay as they are.
pub fn quoted_head(text: &str, columns: usize) -> String {
    let plain = |c| if c == '\\' { Cow::from("\\") } else { character(c) };
    cut(text.chars().map(plain), columns)
}

fn cut(pieces: impl Iterator<Item = Cow<'static, str>>, columns: usize) -> String {
    let mut shown = String::new();
    let mut fits = 0;
    for piece in pieces {
        shown.push_str(&piece);
        if shown.len() > columns {
            shown.truncate(fits);
            shown.push_str(CUT);
            shown.truncate(columns);
            break;
        }
        if shown.len() + CUT.len() <= columns {
            fits = shown.len();
        }
    }
    shown
}

/// The same, but a longer text loses its begin: the end of a path says more.
pub fn tail(text: impl AsRef<[u8]>, columns: usize) -> String {
    let pieces: Vec<_> = pieces(text.as_ref()).collect();
    if pieces.iter().map(|piece| piece.len()).sum::<usize>() <= columns {
        return pieces.concat();
    }
    let mut room = columns.saturating_sub(CUT.len());
    let kept = pieces.iter().rev().take_while(|piece| {
        let fits = piece.len() <= room;
        room = room.saturating_sub(piece.len());
        fits
    });
    let shown = CUT.to_owned() + &pieces[pieces.len() - kept.count()..].concat();
    shown[..shown.len().min(columns)].to_owned()
}

/// The characters of `text` and the bytes that are none, each escaped where it must be.
fn pieces(text: &[u8]) -> impl Iterator<Item = Cow<'static, str>> {
    text.utf8_chunks().flat_map(|chunk| {
        let bytes = chunk
            .invalid()
            .iter()
            .map(|byte| Cow::from(format!("\\x{byte:02x}")));
        chunk.valid().chars().map(character).chain(bytes)
    })
}

fn character(c: char) -> Cow<'static, str> {
    match c {
        '\\' => Cow::from("\\\\"),
        ' '..='~' => Cow::from(c.to_string()),
        _ => Cow::from(c.escape_default().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_printable_ascii_is_made_visible() {
        assert_eq!(head("python3 -c 'x'", 40), "python3 -c 'x'");
        assert_eq!(head("a\n\t\u{1b}[31m\u{7f}", 40), r"a\n\t\u{1b}[31m\u{7f}");
        assert_eq!(head("a\u{202e}b\u{200b}\u{e9}", 40), r"a\u{202e}b\u{200b}\u{e9}");
        assert_eq!(head([b'a', 0xff, 0xc3, b'b', 0], 40), r"a\xff\xc3b\u{0}");
        assert_eq!(head(r"C:\x", 40), r"C:\\x");
    }

    #[test]
    fn what_is_too_long_loses_its_end_or_its_begin() {
        assert_eq!(head("0123456789", 10), "0123456789");
        assert_eq!(head("0123456789a", 10), "0123456...");
        assert_eq!(head("01234\u{202e}89", 10), "01234...");
        assert_eq!(tail("0123456789", 10), "0123456789");
        assert_eq!(tail("0123456789a", 10), "...456789a");
        assert_eq!(tail("01\u{202e}56789", 10), "...56789");
        assert_eq!((head("abcd", 2), tail("abcd", 2)), ("..".into(), "..".into()));
    }

    #[test]
    fn what_is_quoted_can_be_pasted() {
        let quoted = r#"sh -c "echo \"a b\" \\ 'c'""#;
        assert_eq!(quoted_head(quoted, 80), quoted);
        assert_eq!(quoted_head("a\u{1b}[31mb", 80), r"a\u{1b}[31mb");
        assert_eq!(quoted_head("0123456789a", 10), "0123456...");
    }

    proptest! {
        #[test]
        fn any_bytes_stay_ascii_and_within_bounds(bytes: Vec<u8>, columns in 0_usize..40) {
            for shown in [head(&bytes, columns), tail(&bytes, columns)] {
                prop_assert!(shown.len() <= columns);
                prop_assert!(shown.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            }
        }

        #[test]
        fn different_names_look_different(a: Vec<u8>, b: Vec<u8>) {
            prop_assert_eq!(a == b, head(&a, usize::MAX) == head(&b, usize::MAX));
        }
    }
}
