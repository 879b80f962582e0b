//! Types shared by the kernel programs of sw-bpf and their reader.
//!
//! Everything is `repr(C)`, made of whole 64-bit or paired 32-bit words so that no padding hides in it, and asserted at
//! compile time. [`ABI`] changes with any of it.

#![no_std]

pub mod health;
pub mod level;
pub mod notice;
pub mod offsets;
pub mod running;
pub mod slot;

/// Number of this layout.
pub const ABI: u64 = 4;

#[cfg(feature = "user")]
mod pod {
    // SAFETY: each of these is `repr(C)`, without padding, and made of integers alone: any bytes are a value of it.
    unsafe impl aya::Pod for crate::slot::Slot {}
    // SAFETY: as above.
    unsafe impl aya::Pod for crate::slot::Watched {}
    // SAFETY: as above.
    unsafe impl aya::Pod for crate::slot::Timeline {}
    // SAFETY: as above.
    unsafe impl aya::Pod for crate::level::Levels {}
    // SAFETY: as above.
    unsafe impl aya::Pod for crate::running::Concurrency {}
    // SAFETY: as above.
    unsafe impl aya::Pod for crate::health::Health {}
    // SAFETY: as above.
    unsafe impl aya::Pod for crate::health::Clocks {}
    // SAFETY: as above.
    unsafe impl aya::Pod for crate::health::Check {}
    // SAFETY: as above.
    unsafe impl aya::Pod for crate::offsets::Offsets {}
}
