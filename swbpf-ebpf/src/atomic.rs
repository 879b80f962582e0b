//! Atomic operations on words of maps.
//!
//! All are sequentially consistent: with a relaxed fetch-add whose result is used, LLVM emits a plain `lock add` and
//! takes the operand for the old value.

use core::intrinsics::{AtomicOrdering::SeqCst, atomic_cxchg, atomic_xadd};

/// Adds `value` and returns what was there before; wraps.
#[inline(always)]
pub unsafe fn fetch_add(word: *mut u64, value: u64) -> u64 {
    // SAFETY: the caller's pointer is to a word of a map.
    unsafe { atomic_xadd::<u64, u64, { SeqCst }>(word, value) }
}

/// Puts `new` where `old` still stands; tells whether it did.
#[inline(always)]
pub unsafe fn compare_exchange(word: *mut u64, old: u64, new: u64) -> bool {
    // SAFETY: as above.
    unsafe { atomic_cxchg::<u64, { SeqCst }, { SeqCst }>(word, old, new).1 }
}

/// One load that the compiler neither repeats nor leaves out.
#[inline(always)]
pub unsafe fn load(word: *const u64) -> u64 {
    // SAFETY: as above.
    unsafe { word.read_volatile() }
}

/// One store.
#[inline(always)]
pub unsafe fn store(word: *mut u64, value: u64) {
    // SAFETY: as above.
    unsafe { word.write_volatile(value) }
}
