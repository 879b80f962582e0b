//! How many threads of a slot are on a CPU at once: one word holds the count and the time of its last change, so that a
//! single compare-exchange moves both and the span before it belongs to exactly one count.

/// Bits of time in the word: the span between two changes is right up to 52 days.
pub const TIME_BITS: u32 = 52;
/// Selects the time.
pub const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
/// Number of counts that are told apart; the last one holds all above it.
pub const COUNTS: usize = 512;

/// Time in nanoseconds spent with each number of threads on a CPU.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Concurrency {
    /// Nanoseconds by number of threads.
    pub ns: [u64; COUNTS],
}

/// Joins a count and a time of the monotonic clock.
#[inline(always)]
pub const fn pack(count: u64, ns: u64) -> u64 {
    (count << TIME_BITS) | (ns & TIME_MASK)
}

/// The count of a word.
#[inline(always)]
pub const fn count_of(word: u64) -> u64 {
    word >> TIME_BITS
}

/// Nanoseconds from the word's time to `ns`. A reading of another CPU's clock that is a little behind counts as no time
/// at all, and the later of the two stays: the spans of a slot always sum to its elapsed time.
#[inline(always)]
pub const fn span(word: u64, ns: u64) -> u64 {
    let span = ns.wrapping_sub(word) & TIME_MASK;
    if span >> (TIME_BITS - 1) != 0 { 0 } else { span }
}

/// Nanoseconds by which `ns` lies before the word's time; 0 where it does not.
#[inline(always)]
pub const fn lateness(word: u64, ns: u64) -> u64 {
    span(ns & TIME_MASK, word & TIME_MASK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_clock_gives_no_span() {
        let word = pack(3, 1_000);
        assert_eq!(span(word, 1_500), 500);
        assert_eq!(span(word, 900), 0);
        assert_eq!((lateness(word, 900), lateness(word, 1_500)), (100, 0));
        assert_eq!(count_of(word), 3);
    }

    #[test]
    fn spans_survive_the_wrap() {
        assert_eq!(span(pack(0, TIME_MASK - 9), TIME_MASK + 11), 20);
    }
}
