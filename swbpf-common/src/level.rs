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

/// Bands in each doubling of the level: an edge is at most 1/16 away.
pub const BANDS_PER_OCTAVE: u64 = 16;
const OCTAVE_BITS: u32 = BANDS_PER_OCTAVE.ilog2();
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
    /// Nanoseconds by band.
    pub ns: [u64; BANDS],
}

/// Number of the band that `pages` falls into.
#[inline(always)]
pub fn band(pages: u64) -> u64 {
    if pages < BANDS_PER_OCTAVE {
        return pages;
    }
    let octave = u64::from(log2(pages) - OCTAVE_BITS) & 31;
    (octave << OCTAVE_BITS) + (pages >> octave)
}

/// The lowest level of `band` and the lowest of the next one, in pages.
#[inline(always)]
pub const fn band_edges(band: u64) -> (u64, u64) {
    if band < BANDS_PER_OCTAVE {
        return (band, band + 1);
    }
    // Masked, so that the verifier of the kernel and a reader of hostile bytes see a shift within the word.
    let octave = ((band >> OCTAVE_BITS) - 1) & 31;
    let step = BANDS_PER_OCTAVE + (band & (BANDS_PER_OCTAVE - 1));
    (step << octave, (step + 1) << octave)
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

    #[test]
    fn bands_join_without_gap_and_hold_their_levels() {
        let mut expected = 0;
        for number in 0..480 {
            let (from, to) = band_edges(number);
            assert_eq!(from, expected, "band {number}");
            assert_eq!(band(from), number);
            assert_eq!(band(to - 1), number);
            expected = to;
        }
    }

    #[test]
    fn highest_level_has_a_band() {
        assert!(band(MASK) < BANDS as u64);
    }

    #[test]
    fn edges_are_within_a_sixteenth() {
        for number in 16..480 {
            let (from, to) = band_edges(number);
            assert!((to - from) * 16 <= from, "band {number}");
        }
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
