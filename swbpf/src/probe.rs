//! Listen: the programs in the kernel and what they hold.

mod drain;
mod load;
mod notice;
mod syscall;
mod ticks;
mod track;

pub use drain::{BucketReading, Histograms, Losses, PeakReading, Peek, SlotReading};
pub use load::{Floor, Probe};
pub use notice::{Notice, What};
pub use syscall::ProgramStats;
pub use track::{SlotId, Start, monotonic_ns};
