//! What the programs may cost, and whether they cost no more.

use crate::attach::Variant;
use crate::outcome::{Outcome, Row};
use crate::spread::Estimate;

/// What is held against the limit.
enum Figure {
    /// Time by that without a program.
    Ratio,
    /// What is added, by what another variant adds.
    AddedBy(Variant),
}

struct Aim {
    letter: char,
    text: &'static str,
    figure: Figure,
    most: f64,
}

const AIMS: [Aim; 5] = [
    Aim {
        letter: 'a',
        text: "adds at most 1.3 times what the empty program adds",
        figure: Figure::AddedBy(Variant::Empty),
        most: 1.3,
    },
    Aim {
        letter: 'b',
        text: "at most 1.01 times as long as with none",
        figure: Figure::Ratio,
        most: 1.01,
    },
    Aim {
        letter: 'c',
        text: "at most 1.05 times as long as with none",
        figure: Figure::Ratio,
        most: 1.05,
    },
    Aim {
        letter: 'd',
        text: "at most 1.01 times as long as with none",
        figure: Figure::Ratio,
        most: 1.01,
    },
    Aim {
        letter: 'e',
        text: "adds at most 1.1 times what it adds with one cgroup tracked",
        figure: Figure::AddedBy(Variant::Tracked(1)),
        most: 1.1,
    },
];

/// An aim and what was measured.
pub struct Verdict<'a> {
    /// What was measured.
    pub outcome: &'a Outcome,
    /// Under which variant.
    pub variant: Variant,
    /// The aim.
    pub text: &'static str,
    /// What is held against it; `None` where the noise hides it.
    pub figure: Option<Estimate>,
    /// Whether it is met; `None` where the noise hides that.
    pub met: Option<bool>,
}

/// Holds the last variant of each load, which tracks the most cgroups, against its aim.
pub fn judge(outcomes: &[Outcome]) -> impl Iterator<Item = Verdict<'_>> {
    outcomes.iter().filter_map(|outcome| {
        let aim = AIMS.iter().find(|aim| aim.letter == outcome.letter)?;
        let row = outcome.rows.last()?;
        let figure = aim.figure.of(outcome, row);
        Some(Verdict {
            outcome,
            variant: row.variant,
            text: aim.text,
            figure,
            met: figure
                .and_then(|figure| figure.exceeds(aim.most))
                .map(|exceeds| !exceeds),
        })
    })
}

impl Figure {
    fn of(&self, outcome: &Outcome, row: &Row) -> Option<Estimate> {
        match self {
            Self::Ratio => Some(row.ratio.median),
            Self::AddedBy(variant) => outcome.added_by(row, *variant),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(letter: char, times: &[[f64; 4]]) -> Vec<Option<bool>> {
        let variants = [
            Variant::None,
            Variant::Empty,
            Variant::Untracked,
            Variant::Tracked(1),
        ];
        let by_variant: Vec<Vec<f64>> = (0..4)
            .map(|variant| times.iter().map(|round| round[variant]).collect())
            .collect();
        let outcome = Outcome::new(letter, "load", "page", &variants, &by_variant);
        judge(&[outcome]).map(|verdict| verdict.met).collect()
    }

    #[test]
    fn what_is_added_is_held_against_the_empty_program() {
        assert_eq!(met('a', &[[100.0, 110.0, 110.0, 112.0]; 3]), [Some(true)]);
        assert_eq!(met('a', &[[100.0, 110.0, 110.0, 114.0]; 3]), [Some(false)]);
    }

    #[test]
    fn noise_decides_nothing() {
        let noisy = [
            [100.0, 90.0, 0.0, 120.0],
            [100.0, 130.0, 0.0, 80.0],
            [100.0, 101.0, 0.0, 101.0],
        ];
        assert_eq!(met('a', &noisy), [None]);
        assert_eq!(met('b', &noisy), [None]);
    }

    #[test]
    fn disturbance_that_lasts_a_round_is_cancelled() {
        let drifting = [
            [100.0, 100.0, 100.0, 104.0],
            [200.0, 200.0, 200.0, 208.0],
            [400.0, 400.0, 400.0, 416.0],
        ];
        assert_eq!(met('c', &drifting), [Some(true)]);
        assert_eq!(met('d', &drifting), [Some(false)]);
    }
}
