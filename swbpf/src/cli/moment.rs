//! Moments in the past as they are typed, those that `sacct --starttime` takes among them (sacct(1)).

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};

/// Longest text that is looked at.
const MAX_BYTES: usize = 64;
/// Seconds of a day, and of an hour.
const DAY: i64 = 86_400;
const HOUR: i64 = 3600;

/// What a moment looks like, for whoever typed something else.
const MOMENTS: &str = "a moment is a span back from now as 90m, 2h, 7d or now-1day, a time of day as 10:00 or noon, a day as 11/30 or \
                       2026-11-30, or 2026-11-30T01:52:03, all in UTC as `list` tells them, or with a zone, 2026-11-30T01:52:03+01:00";

/// Reads the moment since when.
pub fn since(typed: &str) -> Result<Timestamp, &'static str> {
    moment(typed, Timestamp::now()).ok_or(MOMENTS)
}

/// A moment before `now`, or as it stands. What has no zone is in UTC; of what comes again, it is the last one.
fn moment(typed: &str, now: Timestamp) -> Option<Timestamp> {
    if typed.len() > MAX_BYTES {
        return None;
    }
    let lower = typed.to_ascii_lowercase();
    let back = |span| now.checked_sub(span).ok();
    if lower == "now" {
        return Some(now);
    }
    if let Some(count) = lower.strip_prefix("now-") {
        return back(counted(count, Some(1))?);
    }
    if let Some(span) = counted(&lower, None) {
        return back(span);
    }
    // With colons it would be a span too, and is a time of day.
    if !typed.contains(':')
        && let Ok(span) = typed.parse::<SignedDuration>()
    {
        return back(span).filter(|_| !span.is_negative());
    }
    if let Ok(moment) = typed.parse::<Timestamp>() {
        return Some(moment);
    }
    let today = TimeZone::UTC.to_datetime(now);
    let at = match time_of_day(&lower) {
        Some(time) => last_time(time, today)?,
        None => day_and_time(&lower, today)?,
    };
    TimeZone::UTC.to_timestamp(at).ok()
}

/// `2h`, `7days`: a number and its unit, which is so many seconds where there is none.
fn counted(text: &str, plain: Option<i64>) -> Option<SignedDuration> {
    let (number, unit) = split_number(text);
    let seconds = match unit {
        "" => plain?,
        "s" | "sec" | "secs" | "second" | "seconds" => 1,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => HOUR,
        "d" | "day" | "days" => DAY,
        "w" | "week" | "weeks" => 7 * DAY,
        _ => return None,
    };
    let count: i64 = number.parse::<u32>().ok()?.into();
    Some(SignedDuration::from_secs(count * seconds))
}

fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// `HH:MM[:SS][AM|PM]`, or a word for one.
fn time_of_day(text: &str) -> Option<Time> {
    let hour = match text {
        "today" | "midnight" => 0,
        "noon" => 12,
        "fika" => 15,
        "teatime" => 16,
        _ => return clock(text),
    };
    Time::new(hour, 0, 0, 0).ok()
}

fn clock(text: &str) -> Option<Time> {
    let halves = [("am", 0), ("pm", 12)];
    let half =
        { halves.iter() }.find_map(|(half, hours)| Some((text.strip_suffix(half)?.trim_end(), *hours)));
    let mut parts = half.map_or(text, |(text, _)| text).split(':');
    let (hour, minute) = (small(parts.next()?)?, small(parts.next()?)?);
    let second = parts.next().map_or(Some(0), small)?;
    let hour = match half {
        None => hour,
        Some((_, hours)) => hours + (1..=12).contains(&hour).then_some(hour % 12)?,
    };
    let is_whole = parts.next().is_none();
    Time::new(hour, minute, second, 0).ok().filter(|_| is_whole)
}

/// One digit or two.
fn small(text: &str) -> Option<i8> {
    let is_plain = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// That time of today, or of the day before where it is still to come.
fn last_time(time: Time, now: DateTime) -> Option<DateTime> {
    let today = now.date().to_datetime(time);
    if today <= now {
        return Some(today);
    }
    Some(now.date().yesterday().ok()?.to_datetime(time))
}

/// `YYYY-MM-DD[THH:MM[:SS]]`, `MM/DD[/YY][-HH:MM[:SS]]`, the same with dots, or `MMDD[YY][-HH:MM[:SS]]`.
fn day_and_time(text: &str, now: DateTime) -> Option<DateTime> {
    const ISO: usize = "2026-11-30".len();
    if let Some((day, rest)) = text.split_at_checked(ISO)
        && let Ok(day) = day.parse::<Date>()
    {
        let time = match rest.strip_prefix('t') {
            None if rest.is_empty() => Time::midnight(),
            time => clock(time?)?,
        };
        return Some(day.to_datetime(time));
    }
    let (day, time) = match text.split_once('-') {
        Some((day, time)) => (day, clock(time)?),
        None => (text, Time::midnight()),
    };
    let parts: Vec<&str> = match split_number(day) {
        (digits, "") if [4, 6].contains(&digits.len()) => [0, 2, 4]
            .map(|at| digits.get(at..at + 2))
            .into_iter()
            .flatten()
            .collect(),
        (_, rest) => day
            .split(rest.chars().next().filter(|c| "/.".contains(*c))?)
            .collect(),
    };
    let (month, day, year) = match parts[..] {
        [month, day] => (small(month)?, small(day)?, None),
        [month, day, year] => (
            small(month)?,
            small(day)?,
            Some(small(year)?).filter(|_| year.len() == 2),
        ),
        _ => return None,
    };
    let of = |year| Some(Date::new(year, month, day).ok()?.to_datetime(time));
    match year {
        Some(year) => of(2000 + i16::from(year)),
        None if parts.len() == 3 => None,
        None => of(now.year())
            .filter(|at| *at <= now)
            .or_else(|| of(now.year() - 1)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: &str = "2026-11-30T12:00:00Z";

    fn told(typed: &str) -> Option<String> {
        let now = NOW.parse().expect("a moment");
        moment(typed, now).map(|moment| moment.to_string())
    }

    #[test]
    fn spans_go_back_from_now() {
        for (typed, expected) in [
            ("2h", "2026-11-30T10:00:00Z"),
            ("90m", "2026-11-30T10:30:00Z"),
            ("1h 30m", "2026-11-30T10:30:00Z"),
            ("7d", "2026-11-23T12:00:00Z"),
            ("0d", NOW),
            ("1w", "2026-11-23T12:00:00Z"),
            ("2Weeks", "2026-11-16T12:00:00Z"),
            ("now", NOW),
            ("now-30", "2026-11-30T11:59:30Z"),
            ("now-1day", "2026-11-29T12:00:00Z"),
            ("NOW-2hours", "2026-11-30T10:00:00Z"),
            ("now-5minutes", "2026-11-30T11:55:00Z"),
        ] {
            assert_eq!(told(typed).as_deref(), Some(expected), "{typed}");
        }
    }

    #[test]
    fn what_comes_again_is_the_last_one() {
        for (typed, expected) in [
            ("today", "2026-11-30T00:00:00Z"),
            ("midnight", "2026-11-30T00:00:00Z"),
            ("noon", "2026-11-30T12:00:00Z"),
            ("fika", "2026-11-29T15:00:00Z"),
            ("teatime", "2026-11-29T16:00:00Z"),
            ("10:00", "2026-11-30T10:00:00Z"),
            ("9:05:07", "2026-11-30T09:05:07Z"),
            ("12:01", "2026-11-29T12:01:00Z"),
            ("12:30AM", "2026-11-30T00:30:00Z"),
            ("1:15 pm", "2026-11-29T13:15:00Z"),
            ("11/29", "2026-11-29T00:00:00Z"),
            ("12/1", "2025-12-01T00:00:00Z"),
            ("02/29/24", "2024-02-29T00:00:00Z"),
            ("11.29-08:30", "2026-11-29T08:30:00Z"),
            ("11.29.25-08:30:01", "2025-11-29T08:30:01Z"),
            ("1129", "2026-11-29T00:00:00Z"),
            ("112925-10:00", "2025-11-29T10:00:00Z"),
        ] {
            assert_eq!(told(typed).as_deref(), Some(expected), "{typed}");
        }
    }

    #[test]
    fn days_and_moments_are_what_they_are() {
        for (typed, expected) in [
            ("2026-11-29", "2026-11-29T00:00:00Z"),
            ("2026-11-29T01:52", "2026-11-29T01:52:00Z"),
            ("2026-11-29T01:52:03", "2026-11-29T01:52:03Z"),
            ("2026-11-29T01:52:03Z", "2026-11-29T01:52:03Z"),
            ("2026-11-29T01:52:03+01:00", "2026-11-29T00:52:03Z"),
        ] {
            assert_eq!(told(typed).as_deref(), Some(expected), "{typed}");
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for typed in [
            "",
            "d",
            "-2h",
            "2",
            "yesterday",
            "now+1hour",
            "now-",
            "now-1month",
            "now--1",
            "2026-11-31",
            "2026-11-29T",
            "2026-11-29x",
            "99999999999d",
            "4000000000d",
            "24:00",
            "25:00:00",
            "13:00pm",
            "0:10am",
            "10:00:00:00",
            "13/01",
            "11/29/2025",
            "11/29/5",
            "11.29/25",
            "11/29-",
            "02/30",
            "11",
            "11300",
            "é/é",
        ] {
            assert_eq!(told(typed), None, "{typed}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_moment_or_none(typed in "(?s).{0,80}", near in "(now-)?[-0-9adehmnopswtTZ:+/.é ]{0,30}") {
            let _ = (since(&typed), since(&near));
        }
    }
}
