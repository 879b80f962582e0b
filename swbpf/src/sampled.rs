//! The other readers: numbers from the kernel's files, at the moment of reading.
//!
//! What happens between two readings is not seen here; that is what the kernel programs are for. These files give the
//! base to count from, the kernel's own counters to compare with, the limits, and all there is without privilege.

pub mod cgroupfs;
pub mod procfs;
