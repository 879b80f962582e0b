//! How much of the time something may take, however much of it there is to do.

use std::time::{Duration, Instant};

/// What is not used is kept for so long.
const KEPT: Duration = Duration::from_secs(10);

/// One part in so many of the time.
#[derive(Debug)]
pub struct Allowance {
    part: u32,
    left: Duration,
    grown: Instant,
}

impl Allowance {
    /// Begins with what can be kept.
    pub fn new(part: u32, now: Instant) -> Self {
        Self {
            part,
            left: KEPT / part,
            grown: now,
        }
    }

    /// Adds what the time since the last call is worth.
    pub fn grow(&mut self, now: Instant) {
        let more = now.duration_since(self.grown) / self.part;
        self.left = (self.left + more).min(KEPT / self.part);
        self.grown = now;
    }

    /// Whether something may be begun.
    pub fn has_left(&self) -> bool {
        !self.left.is_zero()
    }

    /// It took so long. What it took more than was left is no debt: one that takes very long does not keep all others waiting.
    pub fn spend(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }
}

/// One part in so many of the time, of which nothing can be had beyond it: what took more is waited for by whoever comes next.
#[derive(Debug)]
pub struct Debt {
    part: u32,
    /// When all that was spent is paid back.
    paid: Option<Instant>,
}

impl Debt {
    /// Begins with what can be kept.
    pub fn new(part: u32) -> Self {
        Self { part, paid: None }
    }

    /// How long to wait until something may be begun.
    pub fn wait(&self, now: Instant) -> Duration {
        let paid = self.paid.unwrap_or(now);
        paid.saturating_duration_since(now).saturating_sub(KEPT)
    }

    /// It took so long.
    pub fn spend(&mut self, time: Duration, now: Instant) {
        let paid = self.paid.map_or(now, |paid| paid.max(now));
        self.paid = Some(paid + time * self.part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_owed_is_waited_for() {
        let begin = Instant::now();
        let (mut debt, mut now, mut spent) = (Debt::new(5), begin, Duration::ZERO);
        for number in 1..=1000 {
            now += debt.wait(now);
            // Some take very long.
            let time = Duration::from_millis(if number % 100 == 0 { 5000 } else { 20 });
            debt.spend(time, now);
            now += time;
            spent += time;
        }
        now += debt.wait(now);
        let part = (now - begin) / 5;
        assert!((part..=part + KEPT / 5).contains(&spent), "{spent:?} of {part:?}");
        // What is not used is kept for so long, and no longer.
        now += Duration::from_hours(1);
        debt.spend(KEPT / 5, now);
        assert_eq!(debt.wait(now), Duration::ZERO);
        debt.spend(Duration::from_millis(1), now);
        assert_eq!(debt.wait(now), Duration::from_millis(5));
    }

    #[test]
    fn what_is_spent_is_at_most_its_part_of_the_time() {
        let begin = Instant::now();
        let mut allowance = Allowance::new(100, begin);
        let one = Duration::from_millis(1);
        let mut spent = Duration::ZERO;
        for second in 1..=1000 {
            allowance.grow(begin + Duration::from_secs(second));
            while allowance.has_left() {
                allowance.spend(one);
                spent += one;
            }
        }
        let part = Duration::from_secs(1000) / 100;
        assert!((part..=part + KEPT / 100).contains(&spent), "{spent:?}");
    }

    #[test]
    fn one_that_takes_long_delays_the_next_to_the_next_turn_alone() {
        let begin = Instant::now();
        let mut allowance = Allowance::new(100, begin);
        allowance.spend(Duration::from_mins(1));
        assert!(!allowance.has_left());
        allowance.grow(begin + Duration::from_secs(1));
        assert!(allowance.has_left());
    }
}
