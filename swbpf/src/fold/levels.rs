//! Time by level of memory, and time near the peak.

use swbpf_common::level::Band;

use crate::snapshot::{High, Level};

/// The bands that were visited. `add` pages and then bytes turn an edge of the slot into one of the target.
pub fn levels(ns: &[u64], to_bytes: impl Fn(i64) -> u64) -> Vec<Level> {
    (0..)
        .zip(ns)
        .filter(|(_, ns)| **ns > 0)
        .map(|(band, ns)| {
            let (from, to) = Band::of_number(band).edges();
            Level {
                from_bytes: to_bytes(from as i64),
                to_bytes: to_bytes(to as i64),
                seconds: *ns as f64 / 1e9,
            }
        })
        .collect()
}

/// Time at or above the edge at or just below 90 % of `peak_bytes`.
pub fn high(levels: &[Level], peak_bytes: u64) -> Option<High> {
    let wanted = (peak_bytes as f64 * 0.9) as u64;
    let first = levels.iter().find(|level| level.to_bytes > wanted)?;
    // Where no time was spent around 90 %, the next band visited begins above it.
    let threshold_bytes = first.from_bytes.min(wanted);
    let seconds = levels
        .iter()
        .filter(|level| level.to_bytes > wanted)
        .map(|level| level.seconds)
        .sum();
    Some(High {
        threshold_bytes,
        seconds,
    })
}

/// Least `k` such that at least `share` of the time was spent at most at `k`.
pub fn quantile(seconds: &std::collections::BTreeMap<u32, f64>, share: f64) -> u32 {
    let wanted = seconds.values().sum::<f64>() * share;
    let mut sum = 0.0;
    for (k, spent) in seconds {
        sum += spent;
        if sum >= wanted {
            return *k;
        }
    }
    seconds.keys().next_back().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_near_the_peak_begins_at_a_band_edge() {
        let level = |from_bytes, to_bytes, seconds| Level {
            from_bytes,
            to_bytes,
            seconds,
        };
        let levels = [level(0, 10, 5.0), level(80, 95, 0.25), level(95, 110, 0.5)];
        assert_eq!(
            high(&levels, 100),
            Some(High {
                threshold_bytes: 80,
                seconds: 0.75
            })
        );
        assert_eq!(high(&levels[..1], 100), None);
        let apart = [level(0, 10, 5.0), level(96, 110, 0.5)];
        assert_eq!(
            high(&apart, 100),
            Some(High {
                threshold_bytes: 90,
                seconds: 0.5
            })
        );
    }

    #[test]
    fn quantiles_are_of_time() {
        let seconds = [(0, 1.0), (2, 8.0), (5, 1.0)].into();
        assert_eq!((quantile(&seconds, 0.5), quantile(&seconds, 0.95)), (2, 5));
        assert_eq!(quantile(&seconds, 0.1), 0);
    }
}
