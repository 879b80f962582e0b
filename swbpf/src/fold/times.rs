//! Time by number: what a histogram got between two readings. Its sum is the time between them, and stays so.

/// Takes `ns` off `times`, of each in this order all that it has until nothing is left to take. What is named twice, or is not
/// there, has nothing.
pub fn take_off(times: &mut [u64], order: impl Iterator<Item = usize>, mut ns: u64) {
    for number in order {
        if ns == 0 {
            return;
        }
        if let Some(time) = times.get_mut(number) {
            let taken = ns.min(*time);
            *time -= taken;
            ns -= taken;
        }
    }
}

/// What each of `after` has more than in `before`. Time of before can have gone to another number since, as where a switch is
/// found late: what a number has less then is taken off those next to it, the lower ones first.
pub fn added(before: &[u64], after: &[u64]) -> Vec<u64> {
    let had = |number: usize| before.get(number).copied().unwrap_or(0);
    let numbers = 0..before.len().max(after.len());
    let has = |number: usize| after.get(number).copied().unwrap_or(0);
    let mut added: Vec<u64> = { numbers.clone() }
        .map(|number| has(number).saturating_sub(had(number)))
        .collect();
    for number in numbers.clone() {
        let short = had(number).saturating_sub(has(number));
        take_off(
            &mut added,
            (0..number).rev().chain(number + 1..numbers.end),
            short,
        );
    }
    added
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_short_in_one_is_taken_off_the_next() {
        let mut times = [5, 1, 7];
        take_off(&mut times, [1, 2, 0].into_iter(), 10);
        assert_eq!(times, [3, 0, 0]);
    }

    #[test]
    fn time_that_went_to_another_number_is_not_told_twice() {
        // Of the 10 that were at 1, 4 were found to be at 0; 6 came to 2.
        assert_eq!(added(&[0, 10], &[4, 6, 6]), [0, 0, 6]);
        assert_eq!(added(&[3], &[3, 2]), [0, 2]);
    }

    proptest! {
        #[test]
        fn the_sum_is_the_time_between(
            before in proptest::collection::vec(0..1000_u64, 0..9),
            after in proptest::collection::vec(0..1000_u64, 0..9),
        ) {
            let sum = |times: &[u64]| times.iter().sum::<u64>();
            let between = sum(&after).saturating_sub(sum(&before));
            prop_assert_eq!(sum(&added(&before, &after)), between);
        }
    }
}
