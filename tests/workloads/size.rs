//! Sizes as people write them: `64K`, `300M`, `1G`.

use std::fmt;
use std::str::FromStr;

/// The unit in which memory is touched and spikes are measured. Where the pages of a machine are larger, touching every
/// 4 KiB touches them all as well.
pub const PAGE: usize = 4096;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub usize);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, shift) = match text.as_bytes().last() {
            Some(b'K') => (&text[..text.len() - 1], 10),
            Some(b'M') => (&text[..text.len() - 1], 20),
            Some(b'G') => (&text[..text.len() - 1], 30),
            _ => (text, 0),
        };
        let number: usize = digits
            .parse()
            .map_err(|_| format!("`{text}` is no size: write bytes, 64K, 300M or 1G"))?;
        number
            .checked_mul(1 << shift)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is too large"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{} bytes", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64K", 64 << 10),
            ("300M", 300 << 20),
            ("1G", 1 << 30),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "K",
            "-1",
            "1.5G",
            "1k",
            "1T",
            "1 M",
            "é",
            "99999999999999999999",
            "18446744073709551615G",
        ] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
