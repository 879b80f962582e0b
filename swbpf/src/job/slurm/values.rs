//! Numbers, times and lists as `scontrol` writes them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::{Gres, NodeShare, TimeLimit};
use crate::job::id::number;

/// Longest name, comment and the like that is kept.
const MAX_TEXT: usize = 1024;

/// Most indices and kinds of things that are kept.
const MAX_ITEMS: usize = 65_536;

/// A text that says something, cut where it is too long.
pub(super) fn text(value: &str) -> Option<String> {
    let is_none = ["", "(null)", "N/A", "None", "Unknown"].contains(&value);
    (!is_none).then(|| value.chars().take(MAX_TEXT).collect())
}

/// `2026-11-30T07:55:55`, in UTC since the program was told so.
pub(super) fn time(value: &str) -> Option<Timestamp> {
    let time: DateTime = value.parse().ok()?;
    time.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// `1-02:30:00`, `02:30:00`, `30:00`, `UNLIMITED`.
pub(super) fn time_limit(value: &str) -> Option<TimeLimit> {
    if ["UNLIMITED", "INFINITE"].contains(&value) {
        return Some(TimeLimit::Unlimited);
    }
    let (days, clock) = match value.split_once('-') {
        Some((days, clock)) => (digits(days)?, clock),
        None => (0, value),
    };
    let parts: Vec<u64> = clock.split(':').map(digits).collect::<Option<_>>()?;
    let seconds = match parts[..] {
        [hours, minutes, seconds] => hours.checked_mul(3600)?.checked_add(minutes * 60 + seconds)?,
        [minutes, seconds] if days == 0 => minutes.checked_mul(60)?.checked_add(seconds)?,
        _ => return None,
    };
    let seconds = days.checked_mul(86_400)?.checked_add(seconds)?;
    Some(TimeLimit::Limited(Duration::from_secs(seconds)))
}

/// A number of at most nine digits.
fn digits(text: &str) -> Option<u64> {
    let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// `4`, or `2-2`; `None` for a range, which says that the number is not settled.
pub(super) fn count(value: &str) -> Option<u32> {
    match value.split_once('-') {
        Some((least, most)) if least == most => number(least),
        Some(_) => None,
        None => number(value),
    }
}

/// `100M`, `1.50G` as bytes; `None` for a plain number, which has no unit, and 0, which stands for no request.
pub(super) fn memory(value: &str) -> Option<u64> {
    let unit = value.chars().last()?;
    let shift = 10 * (1 + "KMGTPE".find(unit)?);
    let (whole, fraction) = match value[..value.len() - 1].split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (&value[..value.len() - 1], ""),
    };
    let (is_digits, whole) = (fraction.bytes().all(|c| c.is_ascii_digit()), number_u64(whole)?);
    let fraction = &fraction[..fraction.len().min(9)];
    let part =
        (u128::from(fraction.parse::<u64>().unwrap_or(0)) << shift) / 10_u128.pow(fraction.len() as u32);
    let bytes = (u128::from(whole) << shift).checked_add(part)?;
    u64::try_from(bytes).ok().filter(|&bytes| is_digits && bytes > 0)
}

fn number_u64(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// `cpu=1,mem=100M,gres/gpu:a100=2`.
pub(super) fn tres(value: &str) -> Option<BTreeMap<String, u64>> {
    let things: BTreeMap<_, _> = value
        .split(',')
        .take(MAX_ITEMS)
        .filter_map(|item| {
            let (name, amount) = item.rsplit_once('=')?;
            let amount = number_u64(amount).filter(|&amount| name != "mem" || amount == 0);
            Some((text(name)?, amount.or_else(|| memory(item.rsplit_once('=')?.1))?))
        })
        .collect();
    (!things.is_empty()).then_some(things)
}

/// `0-2,5` written out.
pub(super) fn ids(value: &str) -> Option<Vec<u32>> {
    let mut ids = Vec::new();
    for range in value.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number(first)?, number(last)?);
        let count = u64::from(last.checked_sub(first)?) + 1;
        if ids.len() as u64 + count > MAX_ITEMS as u64 {
            return None;
        }
        ids.extend(first..=last);
    }
    Some(ids)
}

/// `gpu:a100:2(IDX:0-1),shard:4`.
pub(super) fn gres(value: &str) -> Vec<Gres> {
    let mut depth = 0_usize;
    let items = value.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    items.filter_map(one_gres).take(256).collect()
}

fn one_gres(item: &str) -> Option<Gres> {
    let item = item.strip_prefix("gres:").unwrap_or(item);
    let (what, behind) = item.split_at(item.find('(').unwrap_or(item.len()));
    let indices = behind
        .strip_prefix("(IDX:")
        .and_then(|behind| behind.split_once(')'))
        .and_then(|(indices, _)| ids(indices));
    let mut parts: Vec<&str> = what.split(':').collect();
    // Without a number it is one; before Slurm 19.05 only indices are told.
    let count = parts.last().and_then(|last| number_u64(last));
    if count.is_some() {
        parts.pop();
    }
    let name = text(parts.first()?)?;
    let kind = parts.get(1).and_then(|kind| text(kind));
    let count = count.or_else(|| indices.as_ref().map(|indices| indices.len() as u64));
    Some(Gres {
        name,
        kind,
        count,
        indices,
    })
}

/// `Nodes=node1 CPU_IDs=0-1 Mem=140 GRES=gpu:1(IDX:0)`, the memory in MiB.
pub(super) fn share(line: &str) -> Option<NodeShare> {
    let field = |key: &str| line.split(' ').find_map(|word| word.strip_prefix(key));
    let cpu_ids = field("CPU_IDs=").and_then(ids);
    Some(NodeShare {
        nodes: super::expand(field("Nodes=")?).ok()?,
        cpus: cpu_ids.as_ref().map(|ids| ids.len() as u32),
        cpu_ids,
        memory_bytes: field("Mem=").and_then(number_u64).and_then(mebibytes),
        gres: field("GRES=")
            .or_else(|| field("GRES_IDX="))
            .map(gres)
            .unwrap_or_default(),
    })
}

/// Bytes of so many MiB; `None` for 0, with which Slurm says that it does not hand out memory.
pub(super) fn mebibytes(number: u64) -> Option<u64> {
    number.checked_mul(1 << 20).filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limited(seconds: u64) -> TimeLimit {
        TimeLimit::Limited(Duration::from_secs(seconds))
    }

    #[test]
    fn times_are_read() {
        assert_eq!(
            time("2026-11-30T07:55:55").map(|t| t.to_string()).as_deref(),
            Some("2026-11-30T07:55:55Z")
        );
        for none in [
            "Unknown",
            "None",
            "N/A",
            "",
            "07:55:55",
            "2026-13-01T00:00:00",
            "1796025355",
        ] {
            assert_eq!(time(none), None, "{none}");
        }
        for (text, limit) in [
            ("00:20:00", Some(limited(1200))),
            ("1-02:04:00", Some(limited(93_840))),
            ("365-00:00:00", Some(limited(31_536_000))),
            ("5:00", Some(limited(300))),
            ("UNLIMITED", Some(TimeLimit::Unlimited)),
            ("Partition_Limit", None),
            ("INVALID", None),
            ("", None),
            ("1-", None),
            ("-1:00", None),
            ("1-00:00", None),
            ("1:2:3:4", None),
        ] {
            assert_eq!(time_limit(text), limit, "{text}");
        }
        assert!(time_limit("9999999999-00:00:00").is_none());
    }

    #[test]
    fn quantities_have_their_units() {
        for (text, bytes) in [
            ("100M", Some(100 << 20)),
            ("1.50G", Some(3 << 29)),
            ("1581048K", Some(1_581_048 << 10)),
            ("2T", Some(2 << 40)),
            ("0", None),
            ("0M", None),
            ("200", None),
            ("M", None),
            ("1.M", None),
            ("1.xM", None),
            ("-1M", None),
            ("99999999999999999999E", None),
            ("16E", None),
            ("1\u{e9}", None),
        ] {
            assert_eq!(memory(text), bytes, "{text}");
        }
        assert_eq!(
            (count("4"), count("2-2"), count("1-4"), count("N/A")),
            (Some(4), Some(2), None, None)
        );
        assert_eq!(ids("0-2,5"), Some(vec![0, 1, 2, 5]));
        for none in ["", "x", "2-1", "0-4294967295", "0-65535,1"] {
            assert_eq!(ids(none), None, "{none}");
        }
    }

    #[test]
    fn things_are_counted() {
        let things =
            tres("cpu=3,mem=210M,node=2,billing=3,gres/gpu=2,gres/gpu:a100=2,odd,x=,y=1z").expect("things");
        let told: Vec<_> = things
            .iter()
            .map(|(name, &amount)| (name.as_str(), amount))
            .collect();
        assert_eq!(
            told,
            [
                ("billing", 3),
                ("cpu", 3),
                ("gres/gpu", 2),
                ("gres/gpu:a100", 2),
                ("mem", 210 << 20),
                ("node", 2)
            ]
        );
        assert_eq!((tres("(null)"), tres("")), (None, None));
        let gpu = |kind: Option<&str>, count, indices| Gres {
            name: "gpu".into(),
            kind: kind.map(Into::into),
            count,
            indices,
        };
        for (text, expected) in [
            (
                "gpu:a100:2(IDX:0-1)",
                vec![gpu(Some("a100"), Some(2), Some(vec![0, 1]))],
            ),
            ("gpu:1(IDX:3)", vec![gpu(None, Some(1), Some(vec![3]))]),
            ("gpu(IDX:0,2)", vec![gpu(None, Some(2), Some(vec![0, 2]))]),
            ("gres:gpu:2", vec![gpu(None, Some(2), None)]),
            ("gpu", vec![gpu(None, None, None)]),
            (
                "gpu:a:1(IDX:0,4),gpu:b:1(S:0-1)",
                vec![
                    gpu(Some("a"), Some(1), Some(vec![0, 4])),
                    gpu(Some("b"), Some(1), None),
                ],
            ),
            ("", vec![]),
            ("(null)", vec![]),
        ] {
            assert_eq!(gres(text), expected, "{text}");
        }
    }

    #[test]
    fn a_share_names_its_nodes() {
        let share = share("Nodes=node[1-2] CPU_IDs=0-1 Mem=140 GRES=gpu:a100:1(IDX:0)").expect("a share");
        assert_eq!(share.nodes, ["node1", "node2"]);
        assert_eq!((share.cpus, share.memory_bytes), (Some(2), Some(140 << 20)));
        assert_eq!(share.gres[0].indices, Some(vec![0]));
        assert_eq!(super::share("CPU_IDs=0"), None);
        assert_eq!(
            super::share("Nodes=a CPU_IDs=x Mem=0").map(|share| (share.cpus, share.memory_bytes)),
            Some((None, None))
        );
    }

    proptest! {
        #[test]
        fn limits_are_read_back(seconds in 0_u64..40_000_000) {
            let limit = TimeLimit::Limited(Duration::from_secs(seconds));
            prop_assert_eq!(time_limit(&limit.to_string()), Some(limit));
        }

        #[test]
        fn no_text_makes_them_panic(value in "(?s).{0,60}", near in "[0-9a-zKMGT=,:.()/-]{0,40}") {
            for value in [&value, &near] {
                let _ = (time(value), time_limit(value), count(value), memory(value), tres(value), ids(value));
                let _ = (gres(value), share(value), share(&format!("Nodes=a GRES={value}")), text(value));
            }
        }
    }
}
