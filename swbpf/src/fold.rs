//! Mean: readings become rates, peaks and bounds; together, a [`Snapshot`](crate::snapshot::Snapshot).

mod base;
mod clock;
mod cpu;
mod levels;
mod looks;
mod memory;
mod overhead;
mod peak;
mod reading;
mod reasons;
mod series;
mod told;
mod whole;

pub use clock::Clock;
pub use overhead::Calibration;
pub use reading::{KernelReading, Kill, Reading, Scan};
pub use whole::{Fold, Subject};

/// For each number that is not known, by its dotted key, the reason.
type Unknown = std::collections::BTreeMap<String, String>;
