//! The time between two tries.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// The first pause, and the longest.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);

/// Pauses that grow, so that very many who wait do not keep busy what they wait for, each a part of it by chance, so that they do
/// not come all at once.
#[derive(Debug)]
pub struct Pauses {
    longest: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { longest: FIRST }
    }
}

impl Pauses {
    /// The next one: half of what it may be at most, or more.
    pub fn next(&mut self) -> Duration {
        let longest = self.longest;
        self.longest = (longest * 2).min(LONGEST);
        // The keys of each state differ.
        let chance = RandomState::new().hash_one(()) % 1024;
        longest / 2 + longest / 2 * u32::try_from(chance).unwrap_or(0) / 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_second_and_are_never_none() {
        let mut pauses = Pauses::default();
        for most in [100, 200, 400, 800, 1_000, 1_000, 1_000] {
            let most = Duration::from_millis(most);
            let pause = pauses.next();
            assert!(pause >= most / 2 && pause <= most, "{pause:?} of {most:?}");
        }
    }

    #[test]
    fn those_of_two_who_wait_differ() {
        let of_one = || {
            let mut pauses = Pauses::default();
            [(); 8].map(|()| pauses.next())
        };
        assert_ne!(of_one(), of_one());
    }
}
