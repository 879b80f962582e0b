//! What was measured of one load.

use crate::attach::Variant;
use crate::spread::{Estimate, Spread};

/// One load under all its variants.
pub struct Outcome {
    /// Under which of the aims it falls.
    pub letter: char,
    /// What the load does.
    pub title: String,
    /// Of what the time is told.
    pub unit: &'static str,
    /// One for each variant, that without a program first.
    pub rows: Vec<Row>,
}

/// One variant.
pub struct Row {
    /// Which.
    pub variant: Variant,
    /// Nanoseconds a unit.
    pub ns: Spread,
    /// That, by what it was without a program in the same round.
    pub ratio: Spread,
    /// That, less what it was without a program in the same round.
    pub added_ns: Spread,
}

impl Outcome {
    /// `times` are nanoseconds a unit, by variant, then by round; the first variant is [`Variant::None`].
    pub fn new(
        letter: char,
        title: &str,
        unit: &'static str,
        variants: &[Variant],
        times: &[Vec<f64>],
    ) -> Self {
        let bare = times.first().map(Vec::as_slice).unwrap_or_default();
        let row = |(variant, times): (&Variant, &Vec<f64>)| Row {
            variant: *variant,
            ns: Spread::of(times.iter().copied()),
            ratio: Spread::of(times.iter().zip(bare).map(|(ns, bare)| ns / bare)),
            added_ns: Spread::of(times.iter().zip(bare).map(|(ns, bare)| ns - bare)),
        };
        Self {
            letter,
            title: title.to_owned(),
            unit,
            rows: variants.iter().zip(times).map(row).collect(),
        }
    }

    /// What `row` adds, by what `variant` adds; `None` where that is not clearly above 0.
    pub fn added_by(&self, row: &Row, variant: Variant) -> Option<Estimate> {
        let other = self.rows.iter().find(|row| row.variant == variant)?;
        let other = other.added_ns.median;
        (other.exceeds(0.0) == Some(true)).then(|| row.added_ns.median / other)
    }
}
