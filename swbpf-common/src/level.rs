//! Levels of needed memory, in pages, and the log-linear bands that time is counted in.
//!
//! A *biased level* is a count of pages plus [`BIAS`]: it stays positive where a job that was attached to late gives back
//! memory that was not known of.

/// Bits of a biased level: 2^34 pages of 4 KiB are 64 TiB.
pub const BITS: u32 = 34;
/// The biased level of 0 pages.
pub const BIAS: u64 = 1 << (BITS - 1);
/// Selects the biased level in a packed word.
pub const MASK: u64 = (1 << BITS) - 1;

/// Selects a bucket number: it wraps after 2^30 buckets of some 8 ms, 100 days.
pub const BUCKET_MASK: u64 = u64::MAX >> BITS;
/// A CPU whose clock reading is at most this many buckets behind another's is late, not a wrap ahead.
pub const BUCKETS_LATE: u64 = 8;

/// Number of the bucket of time that the kernel's `tick` (jiffies) falls into; a bucket is 2^`shift` ticks.
#[inline(always)]
pub const fn bucket(tick: u64, shift: u32) -> u64 {
    (tick >> (shift & 63)) & BUCKET_MASK
}

/// Joins a bucket number and a biased level into one word.
#[inline(always)]
pub const fn pack(bucket: u64, level: u64) -> u64 {
    (bucket << BITS) | (level & MASK)
}

/// The bucket number of a packed word.
#[inline(always)]
pub const fn bucket_of(word: u64) -> u64 {
    word >> BITS
}

/// The biased level of a packed word.
#[inline(always)]
pub const fn level_of(word: u64) -> u64 {
    word & MASK
}

/// Number of bands, enough for every level.
pub const BANDS: usize = 512;
/// Bits of time in a band word: the span between two changes of band is right up to 208 days.
pub const BAND_TIME_BITS: u32 = 54;
/// Selects the time in a band word.
pub const BAND_TIME_MASK: u64 = (1 << BAND_TIME_BITS) - 1;

/// Time in nanoseconds spent in each band.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Levels {
    /// Nanoseconds by [number](Band::number) of the band.
    pub ns: [u64; BANDS],
}

/// A band of levels: those whose pages, shifted right, leave the same prefix of at most 5 bits. From 32 pages on there are
/// 16 bands to each doubling, so that an edge is at most 1/16 away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Band {
    shift: u64,
    prefix: u64,
}

const PREFIX_BITS: u32 = 5;
const BANDS_PER_OCTAVE: u64 = 16;

impl Band {
    /// The band that `pages` falls into.
    #[inline(always)]
    pub fn of(pages: u64) -> Self {
        // `pages | 16`: below 32 pages nothing is shifted out.
        let shift = u64::from(log2(pages | BANDS_PER_OCTAVE) + 1 - PREFIX_BITS) & 31;
        Self {
            shift,
            prefix: pages >> shift,
        }
    }

    /// The band of a band word.
    #[inline(always)]
    pub const fn of_word(word: u64) -> Self {
        Self {
            shift: word >> (BAND_TIME_BITS + PREFIX_BITS),
            prefix: word >> BAND_TIME_BITS & 31,
        }
    }

    /// Joins the band and the time since when, on the monotonic clock.
    #[inline(always)]
    pub const fn since(self, ns: u64) -> u64 {
        self.shift << (BAND_TIME_BITS + PREFIX_BITS) | self.prefix << BAND_TIME_BITS | (ns & BAND_TIME_MASK)
    }

    /// Whether `pages` falls into it.
    #[inline(always)]
    pub const fn holds(self, pages: u64) -> bool {
        pages >> self.shift == self.prefix
    }

    /// Its number, counted from the lowest.
    #[inline(always)]
    pub const fn number(self) -> usize {
        (self.shift * BANDS_PER_OCTAVE + self.prefix) as usize & (BANDS - 1)
    }

    /// The band of a number.
    pub const fn of_number(number: usize) -> Self {
        let number = number as u64 & (BANDS as u64 - 1);
        let shift = (number / BANDS_PER_OCTAVE).saturating_sub(1);
        Self {
            shift,
            prefix: number - shift * BANDS_PER_OCTAVE,
        }
    }

    /// The lowest level in it and the lowest above it, in pages.
    pub const fn edges(self) -> (u64, u64) {
        (self.prefix << self.shift, (self.prefix + 1) << self.shift)
    }
}

/// Every 6-bit word occurs once in it, so that a multiplication by a power of 2 brings a number of its own to the top.
const DE_BRUIJN: u64 = 0x022f_dd63_cc95_386d;

static POSITIONS: [u8; 64] = positions();

const fn positions() -> [u8; 64] {
    let mut table = [0; 64];
    let mut position = 0;
    while position < 64 {
        table[((DE_BRUIJN << position) >> 58) as usize] = position as u8;
        position += 1;
    }
    table
}

/// Position of the highest bit of `value`, without a branch: the machine of the kernel programs cannot count leading
/// zeros, and its verifier follows each branch on its own.
#[inline(always)]
fn log2(value: u64) -> u32 {
    let mut smeared = value;
    smeared |= smeared >> 1;
    smeared |= smeared >> 2;
    smeared |= smeared >> 4;
    smeared |= smeared >> 8;
    smeared |= smeared >> 16;
    smeared |= smeared >> 32;
    let highest = smeared - (smeared >> 1);
    u32::from(POSITIONS[(highest.wrapping_mul(DE_BRUIJN) >> 58) as usize & 63])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More numbers than levels have.
    const NUMBERS: usize = 480;

    #[test]
    fn bands_join_without_gap_and_hold_their_levels() {
        let mut expected = 0;
        for number in 0..NUMBERS {
            let band = Band::of_number(number);
            let (from, to) = band.edges();
            assert_eq!(from, expected, "band {number}");
            for pages in [from, to - 1] {
                assert_eq!(Band::of(pages), band);
                assert!(band.holds(pages));
            }
            assert!(!band.holds(to) && (from == 0 || !band.holds(from - 1)));
            assert_eq!(band.number(), number);
            expected = to;
        }
    }

    #[test]
    fn highest_level_has_a_band() {
        let band = Band::of(MASK);
        assert_eq!(Band::of_number(band.number()), band);
    }

    #[test]
    fn edges_are_within_a_sixteenth() {
        for number in 16..NUMBERS {
            let (from, to) = Band::of_number(number).edges();
            assert!((to - from) * 16 <= from, "band {number}");
        }
    }

    #[test]
    fn words_keep_band_and_time() {
        let band = Band::of(77_777);
        let word = band.since(123_456_789);
        assert_eq!(Band::of_word(word), band);
        assert_eq!(word & BAND_TIME_MASK, 123_456_789);
    }

    #[test]
    fn packing_keeps_both_parts() {
        let word = pack(BUCKET_MASK, BIAS + 77);
        assert_eq!((bucket_of(word), level_of(word)), (BUCKET_MASK, BIAS + 77));
    }

    #[test]
    fn log2_agrees_with_the_library() {
        for position in 0..64 {
            for value in [1 << position, (1 << position) | 1, u64::MAX >> position] {
                assert_eq!(log2(value), value.ilog2());
            }
        }
    }
}
