//! Whose record has a line at a look: of very many jobs not all can, and who has waited longest comes first.

use std::time::{Duration, Instant};

use crate::{probe::SlotId, verb::agent::allowance::Allowance};

/// Lines that are due by the age of their jobs may take one part in this many of the time.
const DUE_SHARE: u32 = 300;
/// The same of those that have news.
const NEWS_SHARE: u32 = 50;

/// A job that is to have a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// When it had its last.
    pub last: Instant,
    /// Whether it has news.
    pub has_news: bool,
    /// Its slot.
    pub slot: SlotId,
}

/// Gives the turns.
#[derive(Debug)]
pub struct Turns {
    due: Allowance,
    news: Allowance,
}

impl Turns {
    /// Nobody has had one.
    pub fn begin() -> Self {
        let now = Instant::now();
        Self {
            due: Allowance::new(DUE_SHARE, now),
            news: Allowance::new(NEWS_SHARE, now),
        }
    }

    /// A look begins, at which these want one.
    pub fn look(&mut self, now: Instant, turns: &mut [Turn]) {
        self.due.grow(now);
        self.news.grow(now);
        turns.sort_unstable();
    }

    /// Whether this one has it.
    pub fn has(&self, turn: Turn) -> bool {
        if turn.has_news {
            self.news.has_left()
        } else {
            self.due.has_left()
        }
    }

    /// It took so long.
    pub fn took(&mut self, turn: Turn, time: Duration) {
        if turn.has_news {
            self.news.spend(time);
        } else {
            self.due.spend(time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_waited_longest_comes_first_and_none_is_left_out() {
        let begin = Instant::now();
        let mut turns = Turns::begin();
        let slot = |number: u64| serde_json::from_value(number.into()).expect("a slot");
        let mut lines = [begin; 100];
        let mut written = 0;
        for second in 1..=100 {
            let now = begin + Duration::from_secs(second);
            let mut wanted: Vec<Turn> = (0..100)
                .map(|number| Turn {
                    last: lines[number as usize],
                    has_news: false,
                    slot: slot(number),
                })
                .collect();
            turns.look(now, &mut wanted);
            for turn in wanted {
                if turns.has(turn) {
                    turns.took(turn, Duration::from_micros(500));
                    lines[turn.slot.number() as usize] = now;
                    written += 1;
                }
            }
        }
        let waited = lines
            .iter()
            .map(|last| (begin + Duration::from_secs(100)).duration_since(*last));
        assert!(waited.max() < Some(Duration::from_secs(20)));
        let most = 100 * 1_000_000 / 500 / u64::from(DUE_SHARE) + 100;
        assert!((100..=most).contains(&written), "{written}");
    }
}
