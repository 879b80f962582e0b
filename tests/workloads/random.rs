//! Random numbers that are the same on every machine for the same seed.

/// The `SplitMix64` generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// At least 0, less than 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Between the two, both among it, each equally likely.
    pub fn uniform(&mut self, min: u64, max: u64) -> u64 {
        let spread = (max - min + 1) as f64;
        (min + (self.fraction() * spread) as u64).min(max)
    }

    /// Between the two, both among it, each order of magnitude equally likely.
    pub fn log_uniform(&mut self, min: u64, max: u64) -> u64 {
        let ratio = max as f64 / min as f64;
        ((min as f64 * ratio.powf(self.fraction())).round() as u64).clamp(min, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        assert_eq!(
            [random.next(), random.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn uniform_reaches_both_bounds_and_nothing_beyond() {
        let mut random = Random::new(1);
        let mut seen = [false; 4];
        for _ in 0..1000 {
            seen[random.uniform(0, 3) as usize] = true;
        }
        assert_eq!(seen, [true; 4]);
        assert_eq!(random.uniform(7, 7), 7);
    }

    #[test]
    fn log_uniform_fills_every_octave_alike() {
        let (min, max) = (16, 16 << 10);
        let mut random = Random::new(2);
        let mut octaves = [0; 10];
        for _ in 0..10_000 {
            let value = random.log_uniform(min, max);
            assert!((min..=max).contains(&value), "{value}");
            octaves[(value / min).ilog2().min(9) as usize] += 1;
        }
        assert!(
            octaves.iter().all(|count| (800..1200).contains(count)),
            "{octaves:?}"
        );
    }
}
