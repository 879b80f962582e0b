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

#[cfg(test)]
mod tests {
    use super::*;

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
