//! One spike, as the workload told it and as it was measured.

use std::ops::RangeInclusive;

/// One spike.
#[derive(Debug)]
pub struct Spike {
    /// Its height above the level between spikes, as the workload told it.
    pub bytes: u64,
    /// The highest level that was counted from just before it.
    pub measured_bytes: u64,
    /// From when to when it was, or a little longer: monotonic clock.
    pub span_ns: RangeInclusive<u64>,
}

impl Spike {
    /// From the line `spike <number> <bytes> <microseconds held>`, and the peak in pages.
    pub fn new(line: &str, peak_pages: i64, span_ns: RangeInclusive<u64>) -> Self {
        let mut words = line.split(' ');
        assert_eq!(words.next(), Some("spike"), "{line}");
        let bytes = words.nth(1).and_then(|word| word.parse().ok());
        let page_bytes = rustix::param::page_size() as u64;
        Self {
            bytes: bytes.unwrap_or_else(|| panic!("no size in `{line}`")),
            measured_bytes: peak_pages.unsigned_abs() * page_bytes,
            span_ns,
        }
    }

    /// 0.1 %, or 64 KiB where that is more: kernel memory of the workload comes and goes beside the spike.
    pub fn tolerance_bytes(&self) -> u64 {
        (self.bytes / 1000).max(64 << 10)
    }

    /// How far the measured height is off.
    pub fn error_bytes(&self) -> u64 {
        self.measured_bytes.abs_diff(self.bytes)
    }

    /// Whether it was seen at its true height.
    pub fn is_captured(&self) -> bool {
        // A spike as small as the tolerance must be seen all the same.
        self.measured_bytes > 0 && self.error_bytes() <= self.tolerance_bytes()
    }
}
