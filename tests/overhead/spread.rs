//! What some figures have in common, and how far they are apart.

use std::ops::Div;

/// The standard error of a median, by the median distance from it and the root of how many figures there are: so it is
/// where errors are normal, and wild figures do not change it.
const ERROR_BY_DISTANCE: f64 = 1.858;

/// Of fewer figures the median distance says nothing, since it is small at times by chance.
const FEW: usize = 5;

/// The error of few, by their range: that of two, by Student's distribution.
const ERROR_BY_RANGE: f64 = 3.0;

/// A figure and its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// How far off it is, in two of three cases at most.
    pub error: f64,
}

/// The middle of some figures, and their ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// As many are above it as below.
    pub median: Estimate,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Spread {
    /// Of at least two figures.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        let value = median(&mut figures);
        let least = figures.first().copied().unwrap_or(f64::NAN);
        let most = figures.last().copied().unwrap_or(f64::NAN);
        let mut distances: Vec<f64> = figures.iter().map(|figure| (figure - value).abs()).collect();
        let error = if figures.len() < FEW {
            ERROR_BY_RANGE * (most - least)
        } else {
            ERROR_BY_DISTANCE * median(&mut distances) / (figures.len() as f64).sqrt()
        };
        Self {
            median: Estimate { value, error },
            least,
            most,
        }
    }
}

impl Estimate {
    /// Whether it is above `limit` (`Some(true)`) or not; `None` where twice its error does not tell.
    pub fn exceeds(self, limit: f64) -> Option<bool> {
        let is_clear = (self.value - limit).abs() > 2.0 * self.error;
        is_clear.then_some(self.value > limit)
    }
}

impl Div for Estimate {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        let error = (self.error / other.value).hypot(value * other.error / other.value);
        Self { value, error }
    }
}

/// Sorts, and takes the one in the middle, or the mean of the two there.
fn median(figures: &mut [f64]) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    let half = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => figures[half],
        _ => f64::midpoint(figures[half - 1], figures[half]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSE: f64 = 1e-9;

    #[test]
    fn one_wild_figure_moves_nothing_but_the_ends() {
        let wild = Spread::of([3.0, 1.0, 2.0, 100.0, 4.0]);
        let tame = Spread::of([3.0, 1.0, 2.0, 5.0, 4.0]);
        assert_eq!(wild.median, tame.median);
        assert!((wild.median.value - 3.0).abs() < CLOSE);
        assert!((wild.median.error - ERROR_BY_DISTANCE / 5_f64.sqrt()).abs() < CLOSE);
        assert!((wild.least - 1.0).abs() < CLOSE && (wild.most - 100.0).abs() < CLOSE);
    }

    #[test]
    fn an_even_number_has_its_middle_between_two() {
        let median = Spread::of([1.0, -1.0]).median;
        assert!(median.value.abs() < CLOSE);
        assert!((median.error - 2.0 * ERROR_BY_RANGE).abs() < CLOSE);
    }

    #[test]
    fn a_limit_within_twice_the_error_is_undecided() {
        let estimate = Estimate {
            value: 1.1,
            error: 0.04,
        };
        assert_eq!(estimate.exceeds(1.0), Some(true));
        assert_eq!(estimate.exceeds(1.2), Some(false));
        assert_eq!(estimate.exceeds(1.15), None);
    }

    #[test]
    fn errors_of_a_quotient_add_up_as_squares() {
        let of = |value, error| Estimate { value, error };
        let quotient = of(8.0, 0.8) / of(4.0, 0.0);
        assert!((quotient.value - 2.0).abs() < CLOSE && (quotient.error - 0.2).abs() < CLOSE);
        let quotient = of(8.0, 0.0) / of(4.0, 0.4);
        assert!((quotient.error - 0.2).abs() < CLOSE);
    }
}
