//! When a record has a line: each has all that came before it, some 20 kB, and a job may run for weeks.

use std::time::{Duration, Instant};

use crate::snapshot::{Snapshot, Usage};

/// The next line of a record comes when it has become longer by one part in this many: one a second in the first minute.
const PART: u32 = 60;
/// But no later than this: what a crash of the host can take from it.
const LONGEST: Duration = Duration::from_mins(5);
/// Looks come a second apart, more or less.
const HALF_A_LOOK: Duration = Duration::from_millis(500);

/// Lines of one record may take one part in this many of the time: one of thousands of steps takes long.
const SHARE: u32 = 20;

/// When the record has a line.
#[derive(Debug)]
pub struct Pace {
    begin: Instant,
    last: Instant,
    /// Until when there is none, whatever has happened.
    rests_until: Instant,
}

impl Pace {
    /// That of a record whose first line was written at `now`.
    pub fn begin(now: Instant) -> Self {
        Self {
            begin: now,
            last: now,
            rests_until: now,
        }
    }

    /// Whether the last line took so long that there is none at `now`.
    pub fn rests(&self, now: Instant) -> bool {
        now < self.rests_until
    }

    /// A line of `now` took so long.
    pub fn took(&mut self, now: Instant, time: Duration) {
        self.rests_until = now + time * SHARE;
    }

    /// Whether a look at `now` is to have a line.
    pub fn is_due(&self, now: Instant) -> bool {
        let pause = (now.duration_since(self.begin) / PART).min(LONGEST);
        now.duration_since(self.last) + HALF_A_LOOK >= pause
    }

    /// A look at `now` has one.
    pub fn has_line(&mut self, now: Instant) {
        self.last = now;
    }

    /// Whether a look at `now` is to have a line, which it then has.
    pub fn takes_line(&mut self, now: Instant) -> bool {
        let is_due = self.is_due(now);
        if is_due {
            self.has_line(now);
        }
        is_due
    }

    /// When the last line was written.
    pub fn last(&self) -> Instant {
        self.last
    }
}

/// What a record must have at once, since a kill of sw-bpf would lose it.
#[derive(Debug, Default)]
pub struct News {
    kills: u64,
    peak_bytes: u64,
}

impl News {
    /// Whether a step or task has ended since the last look, a process was killed since the last line, or the peak has risen by
    /// 1 % since.
    pub fn are_in(&mut self, snapshot: &Snapshot) -> bool {
        let kills = snapshot.oom_kills.len() as u64 + snapshot.oom_kills_untold.unwrap_or(0);
        let peak_bytes = snapshot.memory.needed_peak_bytes.unwrap_or(0);
        let has_ended = |usage: &Usage| usage.ended_at.is_some();
        let mut steps = snapshot.steps.iter().flatten();
        let any =
            steps.any(|step| has_ended(&step.usage) || step.tasks.iter().any(|task| has_ended(&task.usage)));
        let are = any || kills > self.kills || peak_bytes > self.peak_bytes + self.peak_bytes / 100;
        if are {
            (self.kills, self.peak_bytes) = (kills, peak_bytes);
        }
        are
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds after which a line is written of looks a second apart.
    fn lines(seconds: u64) -> Vec<u64> {
        let begin = Instant::now();
        let mut pace = Pace::begin(begin);
        (1..=seconds)
            .filter(|second| pace.takes_line(begin + Duration::from_secs(*second)))
            .collect()
    }

    #[test]
    fn a_line_that_took_long_is_rested_from() {
        let begin = Instant::now();
        let mut pace = Pace::begin(begin);
        pace.took(begin, Duration::from_millis(100));
        assert!(pace.rests(begin + Duration::from_secs(1)));
        assert!(!pace.rests(begin + Duration::from_secs(2)));
    }

    #[test]
    fn a_record_has_a_line_a_second_at_first_and_never_too_many() {
        assert_eq!(lines(60), (1..=60).collect::<Vec<_>>());
        let week = lines(7 * 24 * 3600);
        assert!((2000..3000).contains(&week.len()), "{}", week.len());
        for pair in week.windows(2) {
            let pause = pair[1] - pair[0];
            assert!(pause <= pair[1] / 60 + 1 && pause <= 300, "{pair:?}");
        }
        assert!(lines(3600).len() < 400);
    }
}
