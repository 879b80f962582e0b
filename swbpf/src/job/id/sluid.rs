//! SLUID: the id that no other job of a cluster ever has, from Slurm 25.11 on.

use std::fmt;
use std::str::FromStr;

/// Crockford's base 32.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// How many digits hold 64 bits.
const LENGTH: usize = 13;

/// A unique id of a job: 64 bits, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sluid(u64);

impl Sluid {
    /// The id of these bits; `None` for 0, which stands for none.
    pub fn from_bits(bits: u64) -> Option<Self> {
        (bits != 0).then_some(Self(bits))
    }

    /// The SLUID of a text in exactly the form in which Slurm writes it, as the name of a directory is.
    pub fn from_canonical(text: &str) -> Option<Self> {
        text.parse().ok().filter(|sluid: &Self| sluid.to_string() == text)
    }
}

impl FromStr for Sluid {
    /// What is wrong.
    type Err = &'static str;

    /// As Slurm reads it: in either case, `O` for 0, `I` and `L` for 1.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let digits = text
            .strip_prefix(['s', 'S'])
            .filter(|digits| digits.len() == LENGTH)
            .ok_or("an SLUID is s and 13 characters")?;
        let bits = digits.bytes().try_fold(0_u128, |bits, digit| {
            let value = value(digit)?;
            Some(bits << 5 | value)
        });
        bits.and_then(|bits| u64::try_from(bits).ok())
            .and_then(Self::from_bits)
            .ok_or("it is no SLUID that Slurm gives")
    }
}

/// Value of a digit.
fn value(digit: u8) -> Option<u128> {
    let digit = match digit.to_ascii_uppercase() {
        b'O' => b'0',
        b'I' | b'L' => b'1',
        other => other,
    };
    DIGITS
        .iter()
        .position(|&known| known == digit)
        .map(|value| value as u128)
}

impl fmt::Display for Sluid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("s")?;
        (0..LENGTH).rev().try_for_each(|place| {
            let value = u128::from(self.0) >> (5 * place) & 31;
            write!(f, "{}", char::from(DIGITS[value as usize]))
        })
    }
}
