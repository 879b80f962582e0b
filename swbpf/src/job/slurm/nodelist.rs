//! Lists of nodes as Slurm writes them: `cn[001-003,7],gpu1`.

/// Most names that a list is expanded to.
const MAX_NAMES: usize = 65_536;

/// Longest name of a node.
const MAX_CHARS: usize = 255;

/// Why a list of nodes is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NodeListError {
    /// It holds what no list holds.
    #[error("no list of nodes")]
    Odd,
    /// It is too long.
    #[error("more than 65536 nodes")]
    TooMany,
}

/// The names of a list; none where it is empty.
pub fn expand(list: &str) -> Result<Vec<String>, NodeListError> {
    let mut names = Vec::new();
    if list.is_empty() || list == "(null)" || list == "None assigned" {
        return Ok(names);
    }
    for item in items(list) {
        names.extend(expand_item(item, MAX_NAMES - names.len())?);
    }
    Ok(names)
}

/// Whether `name` can be that of one node or partition, and nothing that a program would take for an option or a list.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=MAX_CHARS).contains(&name.len()) && !name.starts_with('-') && name.chars().all(is_plain)
}

/// What stands between commas that are in no brackets.
fn items(list: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    list.split(move |c| {
        match c {
            '[' => is_inside = true,
            ']' => is_inside = false,
            _ => {}
        }
        c == ',' && !is_inside
    })
}

/// `a[1-2]b[3-4]`: each of the first with each of the second.
fn expand_item(item: &str, most: usize) -> Result<Vec<String>, NodeListError> {
    let mut names = vec![String::new()];
    let mut rest = item;
    while !rest.is_empty() {
        let (plain, behind) = rest.split_at(rest.find('[').unwrap_or(rest.len()));
        for name in &mut names {
            if name.len() + plain.len() > MAX_CHARS {
                return Err(NodeListError::Odd);
            }
            name.push_str(plain);
        }
        rest = behind;
        if let Some(open) = rest.strip_prefix('[') {
            let (ranges, behind) = open.split_once(']').ok_or(NodeListError::Odd)?;
            names = product(&names, ranges, most)?;
            rest = behind;
        }
    }
    if names.len() > most {
        Err(NodeListError::TooMany)
    } else if names.iter().all(|name| is_name(name)) {
        Ok(names)
    } else {
        Err(NodeListError::Odd)
    }
}

/// Each of `names` with each number of `ranges`, at most `most`.
fn product(names: &[String], ranges: &str, most: usize) -> Result<Vec<String>, NodeListError> {
    let numbers = numbers(ranges, most)?;
    if names.len().saturating_mul(numbers.len()) > most {
        return Err(NodeListError::TooMany);
    }
    Ok(names
        .iter()
        .flat_map(|name| numbers.iter().map(move |number| format!("{name}{number}")))
        .collect())
}

/// `001-003,7` as written out, zeros kept.
fn numbers(ranges: &str, most: usize) -> Result<Vec<String>, NodeListError> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let width = first.len();
        let (first, last) = (number(first)?, number(last)?);
        let count = last.checked_sub(first).ok_or(NodeListError::Odd)?;
        if count >= (most.saturating_sub(numbers.len())) as u64 {
            return Err(NodeListError::TooMany);
        }
        numbers.extend((first..=last).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

fn number(digits: &str) -> Result<u64, NodeListError> {
    let is_number = !digits.is_empty() && digits.len() <= 18 && digits.bytes().all(|c| c.is_ascii_digit());
    match digits.parse() {
        Ok(number) if is_number => Ok(number),
        _ => Err(NodeListError::Odd),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_are_written_out() {
        for (list, names) in [
            ("", ""),
            ("(null)", ""),
            ("None assigned", ""),
            ("node1", "node1"),
            ("cn[001-003,7],gpu1", "cn001 cn002 cn003 cn7 gpu1"),
            ("a[1-2]b[3-4]", "a1b3 a1b4 a2b3 a2b4"),
            ("x[09-11]-ib,y", "x09-ib x10-ib x11-ib y"),
            ("n[8-10]", "n8 n9 n10"),
            ("n[5]", "n5"),
            ("a.example.org", "a.example.org"),
        ] {
            assert_eq!(expand(list).expect(list).join(" "), names, "{list}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for list in [
            ",", "a,", ",a", "a[", "a[]", "a[1", "a]1[", "a[2-1]", "a[x]", "a[1-]", "a[-1]", "a[1,]", "-a",
            "a b", "a\n", "a;b", "a[[1]]", "a[1-2-3]", "a[0x1]", "é", "a[+1]",
        ] {
            assert_eq!(expand(list), Err(NodeListError::Odd), "{list}");
        }
        assert_eq!(expand(&"a".repeat(256)), Err(NodeListError::Odd));
    }

    #[test]
    fn long_lists_are_bounded() {
        assert_eq!(expand("a[1-65536]").expect("as many as may be").len(), MAX_NAMES);
        for list in [
            "a[0-65536]",
            "a[1-65536],b",
            "a[1-300]b[1-300]",
            "a[0-999999999999999999]",
            "a[1-9]b[1-9]c[1-9]d[1-9]e[1-9]f[1-9]g[1-9]h[1-9]",
        ] {
            assert_eq!(expand(list), Err(NodeListError::TooMany), "{list}");
        }
    }

    proptest! {
        #[test]
        fn a_range_has_as_many_as_it_says(first in 0_u64..2000, count in 1_u64..50, width in 1_usize..6) {
            let list = format!("n[{first:0width$}-{:0width$}]x", first + count - 1);
            let names = expand(&list).expect("a list");
            let expected: Vec<_> = (first..first + count).map(|n| format!("n{n:0width$}x")).collect();
            prop_assert_eq!(names, expected);
        }

        #[test]
        fn plain_names_stay_as_they_are(names in prop::collection::vec("[a-z0-9][a-z0-9_.-]{0,20}", 1..20)) {
            prop_assert_eq!(expand(&names.join(",")).expect("a list"), names);
        }

        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,60}", near in "[a-z0-9\\[\\],-]{0,40}") {
            let _ = (expand(&text), expand(&near));
        }
    }
}
