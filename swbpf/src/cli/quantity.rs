//! Sizes and spans of time as they are typed.

use std::time::Duration;

use jiff::SignedDuration;

/// The widest limit that the kernel's page counters hold.
const LARGEST_SIZE: u128 = i64::MAX as u128;

/// Bounds of `--window`.
const WINDOW: std::ops::RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_hours(1);

/// The smallest limit of memory that a process can begin in, on a machine with few CPUs.
const SMALLEST_LIMIT: u64 = 1 << 20;

/// What a size looks like, for whoever typed something else.
const SIZES: &str =
    "a size is a number of bytes, or a number with K, M, G or T (1024-based), as 300M or 1.5G";

/// What a window looks like, for whoever typed something else.
const WINDOWS: &str = "a window is 50ms to 3600s, as 0.5, 200ms, 2s or 1m";

/// Reads `300M`, `1.5G`, `64 KiB`, `4096`: a number, then K, M, G or T (1024-based), then `B` or `iB` if you like.
///
/// A fraction of a byte is cut off.
pub fn size(typed: &str) -> Result<u64, String> {
    let unit_at = typed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(typed.len());
    let (number, unit) = typed.split_at(unit_at);
    let shift = shift(unit.trim_start()).ok_or(SIZES)?;
    let (whole, fraction) = match number.split_once('.') {
        Some((_, fraction)) if fraction.is_empty() || shift == 0 => return Err(SIZES.into()),
        Some(parts) => parts,
        None => (number, ""),
    };
    let bytes = scaled(whole, fraction, shift).ok_or(SIZES)?;
    match u64::try_from(bytes) {
        Ok(0) => Err(format!("a size of 0 is too small: {SIZES}")),
        Ok(bytes) if u128::from(bytes) <= LARGEST_SIZE => Ok(bytes),
        _ => Err(format!("too large: {SIZES}")),
    }
}

/// Reads a number of days, `30` or `30d`.
pub fn days(typed: &str) -> Result<u32, &'static str> {
    let days = typed.strip_suffix(['d', 'D']).unwrap_or(typed);
    let days = days.parse().ok().filter(|days| (1..=36_500).contains(days));
    days.ok_or("it is a number of days, 1 to 36500, as 30 or 30d")
}

/// Reads a limit of memory.
pub fn limit(typed: &str) -> Result<u64, String> {
    match size(typed)? {
        bytes if bytes < SMALLEST_LIMIT => Err(
            "a limit below 1M cannot hold a process: its page tables, its stack and what the kernel keeps of it take some \
             hundred KiB"
                .to_owned(),
        ),
        bytes => Ok(bytes),
    }
}

/// How many bits `unit` shifts a number of bytes.
fn shift(unit: &str) -> Option<u32> {
    match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(10),
        "m" | "mb" | "mib" => Some(20),
        "g" | "gb" | "gib" => Some(30),
        "t" | "tb" | "tib" => Some(40),
        _ => None,
    }
}

/// `whole.fraction << shift`, rounded down; `None` where they are no digits. What is too large saturates.
fn scaled(whole: &str, fraction: &str, shift: u32) -> Option<u128> {
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    // An overflow is the only failure left. Digits beyond the 18th are less than a byte of the largest unit.
    let whole = whole
        .parse::<u64>()
        .map_or(u128::MAX, |whole| u128::from(whole) << shift);
    let fraction = &fraction[..fraction.len().min(18)];
    let part = fraction.parse::<u128>().unwrap_or(0) << shift;
    Some(whole.saturating_add(part / 10_u128.pow(fraction.len() as u32)))
}

/// What a process id looks like, for whoever typed something else.
const PIDS: &str = "a process id is a number from 1 to 2147483647, as `ps -e` lists them";

/// Reads a process id that the kernel may give out.
pub fn pid(typed: &str) -> Result<u32, &'static str> {
    let pid = typed.parse().map_err(|_| PIDS)?;
    if i32::try_from(pid).is_ok_and(|pid| pid > 0) {
        Ok(pid)
    } else {
        Err(PIDS)
    }
}

/// Reads `0.5` and `2` as seconds, and `200ms`, `2s`, `1m`, `1m 30s`.
pub fn window(typed: &str) -> Result<Duration, String> {
    let is_number = typed.bytes().all(|c| c.is_ascii_digit() || c == b'.');
    let span = if is_number {
        typed
            .parse()
            .ok()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    } else {
        typed
            .parse::<SignedDuration>()
            .ok()
            .and_then(|span| Duration::try_from(span).ok())
    };
    span.filter(|span| WINDOW.contains(span))
        .ok_or_else(|| WINDOWS.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_are_numbers() {
        for typed in ["7", "7d", "7D"] {
            assert_eq!(days(typed), Ok(7), "{typed}");
        }
        for typed in [
            "",
            "d",
            "0",
            "0d",
            "-1",
            "1.5d",
            "36501",
            "7dd",
            "1w",
            "99999999999d",
        ] {
            assert!(days(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn sizes_are_1024_based_with_or_without_a_suffix() {
        for (typed, bytes) in [
            ("300M", 300 << 20),
            ("1G", 1 << 30),
            ("1.5G", 3 << 29),
            ("4096", 4096),
            ("4096B", 4096),
            ("64KiB", 64 << 10),
            ("64 kb", 64 << 10),
            ("2TiB", 2 << 40),
            ("0.5k", 512),
            ("0.000000000000000000000000000001T", 0),
            ("8388607T", 8_388_607 << 40),
        ] {
            assert_eq!(
                size(typed).ok(),
                Some(bytes).filter(|&bytes| bytes > 0),
                "{typed}"
            );
        }
    }

    #[test]
    fn a_limit_has_room_for_a_process() {
        assert_eq!(limit("1M"), Ok(1 << 20));
        for typed in ["1", "1K", "1048575"] {
            assert!(
                limit(typed).is_err_and(|told| told.contains("below 1M")),
                "{typed}"
            );
        }
        assert!(limit("much").is_err_and(|told| told.contains("300M")));
    }

    #[test]
    fn nonsense_is_refused_with_what_is_accepted() {
        for typed in [
            "",
            " ",
            "M",
            "-1",
            "+1",
            "1e3",
            "1.5",
            "1.5B",
            "1.M",
            ".5M",
            "1..5M",
            "1.5.0M",
            "1P",
            "1MiBs",
            "1 M ",
            "NaN",
            "inf",
            "0",
            "0M",
            "0x10",
            "1_000",
            "1,5G",
            "\u{661}M",
            "8388608T",
            "18446744073709551615",
            "99999999999999999999999999999999999999999999999T",
        ] {
            let refusal = size(typed).expect_err(typed);
            assert!(refusal.contains("300M or 1.5G"), "{typed}: {refusal}");
        }
    }

    #[test]
    fn windows_are_seconds_or_carry_their_unit() {
        for (typed, millis) in [
            ("1", 1_000),
            ("0.05", 50),
            ("0.5", 500),
            ("3600", 3_600_000),
            ("200ms", 200),
            ("2s", 2_000),
            ("1.5s", 1_500),
            ("1m", 60_000),
            ("1m 30s", 90_000),
        ] {
            assert_eq!(window(typed), Ok(Duration::from_millis(millis)), "{typed}");
        }
    }

    #[test]
    fn windows_out_of_bounds_are_refused_with_the_bounds() {
        for typed in [
            "", "0", "0.049", "49ms", "3601", "61m", "-1", "-1s", "1s ago", "1d", "NaN", "inf", "1e3", ".",
            "x",
        ] {
            assert_eq!(window(typed).expect_err(typed), WINDOWS);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(typed in ".{0,40}") {
            let _ = (size(&typed), window(&typed));
        }

        #[test]
        fn whole_numbers_of_each_unit_are_exact(number in 1_u64..8_388_608, unit in 0_usize..5, suffix in 0_usize..3) {
            let letter = ["", "K", "M", "G", "T"][unit];
            let suffix = if unit == 0 { "" } else { ["", "B", "iB"][suffix] };
            prop_assert_eq!(size(&format!("{number}{letter}{suffix}")), Ok(number << (10 * unit)));
        }

        #[test]
        fn a_fraction_is_as_exact_as_a_byte(whole in 0_u64..1000, thousandths in 0_u64..1000) {
            prop_assume!(whole + thousandths > 0);
            let exact = ((whole * 1000 + thousandths) << 30) / 1000;
            prop_assert_eq!(size(&format!("{whole}.{thousandths:03}G")), Ok(exact));
        }

        #[test]
        fn bytes_beyond_the_kernel_counters_are_refused(bytes in (1_u128 << 63)..u128::MAX) {
            prop_assert!(size(&bytes.to_string()).is_err());
        }
    }
}
