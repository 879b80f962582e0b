//! Moments of the monotonic clock as wall-clock time.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::probe::monotonic_ns;

/// Both clocks at one moment. A wall clock that is set later does not move what has been measured.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Clock {
    wall: Timestamp,
    ns: u64,
}

impl Clock {
    /// Both clocks now.
    pub fn now() -> Self {
        Self {
            wall: Timestamp::now(),
            ns: monotonic_ns(),
        }
    }

    /// The same two clocks at the moment `ns`, which has just been.
    #[must_use]
    pub fn at(self, ns: u64) -> Self {
        Self {
            wall: self.wall_at(ns),
            ns,
        }
    }

    /// Monotonic time of that moment.
    pub fn ns(self) -> u64 {
        self.ns
    }

    /// Seconds from that moment to `ns`; negative before it.
    pub fn seconds_to(self, ns: u64) -> f64 {
        (i128::from(ns) - i128::from(self.ns)) as f64 / 1e9
    }

    /// Seconds from a moment of the wall clock to `ns`.
    pub fn seconds_since(self, from: Timestamp, ns: u64) -> f64 {
        self.wall_at(ns).duration_since(from).as_secs_f64()
    }

    /// The moment `ns` in RFC 3339, UTC, to the microsecond.
    pub fn rfc3339(self, ns: u64) -> String {
        format!("{:.6}", self.wall_at(ns))
    }

    fn wall_at(self, ns: u64) -> Timestamp {
        let nanos = i64::try_from(i128::from(ns) - i128::from(self.ns)).unwrap_or(0);
        let span = jiff::SignedDuration::from_nanos(nanos);
        self.wall.checked_add(span).unwrap_or(self.wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_counted_from_the_anchor() {
        let clock = Clock {
            wall: Timestamp::from_second(1_700_000_000).unwrap(),
            ns: 5_000_000_000,
        };
        assert_eq!(clock.rfc3339(6_500_000_000), "2023-11-14T22:13:21.500000Z");
        assert_eq!(clock.rfc3339(4_000_000_000), "2023-11-14T22:13:19.000000Z");
        assert!((clock.seconds_to(4_000_000_000) + 1.0).abs() < 1e-9);
    }
}
