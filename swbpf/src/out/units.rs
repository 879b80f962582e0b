//! Numbers for people.

use jiff::Timestamp;

use crate::out::escape;

/// What stands for a number that is not known.
pub const UNKNOWN: &str = "unknown";

/// `value` as `show` puts it, or [`UNKNOWN`].
pub fn known<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), show)
}

/// `300.0 MiB`: 1024-based, one decimal.
pub fn bytes(count: u64) -> String {
    if count < 1024 {
        return format!("{count} B");
    }
    let mut scaled = count as f64 / 1024.0;
    for unit in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        // What rounds to 1024.0 belongs to the next unit.
        if scaled < 1023.95 {
            return format!("{scaled:.1} {unit}");
        }
        scaled /= 1024.0;
    }
    format!("{scaled:.1} EiB")
}

/// `830 us`, `5.3 ms`, `412 ms`, `4.1 s`, `2 m 03 s`, `1 h 02 m`, `3 d 04 h`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return UNKNOWN.to_owned();
    }
    // Each bound is where the line above it would round to a full next unit.
    match seconds {
        0.0 => "0 s".to_owned(),
        s if s < 0.000_000_5 => "< 1 us".to_owned(),
        s if s < 0.000_999_5 => format!("{:.0} us", s * 1e6),
        s if s < 0.099_95 => format!("{:.1} ms", s * 1e3),
        s if s < 0.999_5 => format!("{:.0} ms", s * 1e3),
        s if s < 59.95 => format!("{s:.1} s"),
        s => long((s.round() as u64).max(60)),
    }
}

/// A minute or more.
fn long(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..3600 => format!("{minutes} m {:02} s", seconds % 60),
        3600..86_400 => format!("{hours} h {:02} m", minutes % 60),
        _ => format!("{days} d {:02} h", hours % 24),
    }
}

/// `12.9 %`; what is neither none nor all is not rounded to it.
pub fn percent(value: f64) -> String {
    match value {
        v if !v.is_finite() => UNKNOWN.to_owned(),
        v if v > 0.0 && v < 0.05 => "< 0.1 %".to_owned(),
        v if (99.95..100.0).contains(&v) => "> 99.9 %".to_owned(),
        v => format!("{v:.1} %"),
    }
}

/// `1.37 x`: how many times another number.
pub fn ratio(value: f64) -> String {
    match value {
        v if !v.is_finite() => UNKNOWN.to_owned(),
        v if v < 99.995 => format!("{v:.2} x"),
        v => format!("{v:.0} x"),
    }
}

/// `2026-11-30 01:52:03.390 UTC` of an RFC 3339 timestamp; what is none stands as it is.
pub fn moment(rfc3339: &str) -> String {
    rfc3339.parse::<Timestamp>().map_or_else(
        |_| escape::head(rfc3339, 40),
        |moment| moment.strftime("%Y-%m-%d %H:%M:%S.%3f UTC").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_carry_over_to_the_next_unit() {
        for (count, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (300 << 20, "300.0 MiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(count), shown);
        }
    }

    #[test]
    fn durations_take_the_unit_that_suits() {
        for (seconds, shown) in [
            (0.0, "0 s"),
            (1e-9, "< 1 us"),
            (830e-6, "830 us"),
            (0.000_999_9, "1.0 ms"),
            (0.0053, "5.3 ms"),
            (0.412, "412 ms"),
            (0.9999, "1.0 s"),
            (4.1, "4.1 s"),
            (59.96, "1 m 00 s"),
            (123.0, "2 m 03 s"),
            (3599.7, "1 h 00 m"),
            (3720.0, "1 h 02 m"),
            (273_600.0, "3 d 04 h"),
            (-1.0, UNKNOWN),
            (f64::NAN, UNKNOWN),
        ] {
            assert_eq!(duration(seconds), shown);
        }
    }

    #[test]
    fn percentages_do_not_round_to_none_or_all() {
        for (value, shown) in [
            (0.0, "0.0 %"),
            (0.01, "< 0.1 %"),
            (12.94, "12.9 %"),
            (99.97, "> 99.9 %"),
            (100.0, "100.0 %"),
            (f64::INFINITY, UNKNOWN),
        ] {
            assert_eq!(percent(value), shown);
        }
    }

    #[test]
    fn ratios_and_moments() {
        assert_eq!(
            [ratio(1.0), ratio(0.014), ratio(1234.5)],
            ["1.00 x", "0.01 x", "1234 x"]
        );
        assert_eq!(moment("2026-11-30T01:52:03.39Z"), "2026-11-30 01:52:03.390 UTC");
        assert_eq!(moment("yester\u{1b}day"), r"yester\u{1b}day");
    }

    #[test]
    fn what_is_not_known_is_not_zero() {
        assert_eq!(known(None, bytes), UNKNOWN);
        assert_eq!(known(Some(0), bytes), "0 B");
    }

    proptest! {
        #[test]
        fn any_number_is_short_ascii(count: u64, seconds: f64, share in 0.0..1e6) {
            for shown in [bytes(count), duration(seconds.min(1e9)), percent(share), ratio(share)] {
                prop_assert!(shown.len() <= 12 && shown.is_ascii(), "{shown}");
            }
        }
    }
}
