//! How far the counters of a slot are from the truth.
//!
//! A slot counts changes. What the cgroup held before is entered from the kernel's files, which lag: a file is right up to
//! the changes that the kernel has not flushed into its statistics. The truth is constant, so every comparison of slot and
//! file narrows it down, and one with nothing unflushed settles it. A cgroup that was tracked from its birth needs none.

use serde::{Deserialize, Serialize};

/// Changes that one CPU keeps from the statistics files, in pages: `MEMCG_CHARGE_BATCH`, once on the CPU and once in the
/// threshold of `memcg_vmstats_needs_flush`.
const UNFLUSHED_PAGES_PER_CPU: i64 = 2 * 64;

/// How far the statistics files can be off on so many CPUs, in pages.
pub fn lag_pages(cpus: usize) -> i64 {
    UNFLUSHED_PAGES_PER_CPU * cpus as i64
}

/// What a comparison of slot and files found: pages that the files have more than the slot.
///
/// The slot may change while the files are read; by how much at most, its bucket of time tells.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Evidence {
    /// Of anonymous and shared memory.
    pub lru: Option<i64>,
    /// Of kernel memory.
    pub kernel: Option<i64>,
    /// How far the slot can have been off while the files were read.
    pub spread: i64,
    /// Whether the files were up to date.
    pub is_flushed: bool,
    /// Whether the file on kernel memory is a counter of its own that never lags, as on version 1.
    pub kernel_never_lags: bool,
}

/// What is to be added to a slot's level, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    lru: Part,
    kernel: Part,
    lag_pages: i64,
    rebased: u64,
    /// The programs were not called for a time: no comparison tells what went by then.
    is_deaf: bool,
}

/// An interval that holds the truth, and the hull of all that held it before events were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    now: Option<(i64, i64)>,
    hull: Option<(i64, i64)>,
    /// Events were lost and nothing has been compared since: `now` is the best that is known, with no bound.
    is_lost: bool,
}

impl Part {
    const EXACT: Self = Self {
        now: Some((0, 0)),
        ..Self::UNKNOWN
    };
    const UNKNOWN: Self = Self {
        now: None,
        hull: None,
        is_lost: false,
    };

    /// Narrows the interval. Where nothing is left of it, events were lost: it begins anew, and says so. Where events may have
    /// been lost and it stands nevertheless, they hide in what the comparison cannot tell.
    fn learn(&mut self, low: i64, high: i64) -> bool {
        let (was_low, was_high) = self.now.unwrap_or((low, high));
        let narrowed = (was_low.max(low), was_high.min(high));
        let agrees = narrowed.0 <= narrowed.1;
        if !agrees {
            self.hull = union(self.now, self.hull);
            self.now = Some((low, high));
        } else if self.is_lost {
            self.hull = union(Some((low, high)), self.hull);
            self.now = Some((was_low, was_high));
        } else {
            self.now = Some(narrowed);
        }
        self.is_lost = false;
        agrees
    }

    fn middle(&self) -> Option<i64> {
        self.now.map(|(low, high)| low.midpoint(high))
    }

    /// All that the truth may have been since the begin.
    fn range(&self) -> Option<(i64, i64)> {
        union(self.now, self.hull).filter(|_| !self.is_lost)
    }

    /// How far the middle can be from the truth at any time since the begin.
    fn bound(&self) -> Option<u64> {
        Some(farthest(self.range()?, self.middle()?))
    }
}

/// How far the ends of an interval are from a number at most.
fn farthest((low, high): (i64, i64), from: i64) -> u64 {
    low.abs_diff(from).max(high.abs_diff(from))
}

/// The least interval that holds both.
fn union(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

impl Base {
    /// Of a cgroup that was tracked from its birth: nothing to add.
    pub fn from_birth(cpus: usize) -> Self {
        Self {
            lru: Part::EXACT,
            kernel: Part::EXACT,
            ..Self::unknown(cpus)
        }
    }

    /// Of a cgroup that existed before.
    pub fn unknown(cpus: usize) -> Self {
        Self {
            lru: Part::UNKNOWN,
            kernel: Part::UNKNOWN,
            lag_pages: lag_pages(cpus),
            rebased: 0,
            is_deaf: false,
        }
    }

    /// The programs were not called for a time: nothing is bounded from then on.
    pub fn deafen(&mut self) {
        self.is_deaf = true;
    }

    /// Whether that was so.
    pub fn is_deaf(&self) -> bool {
        self.is_deaf
    }

    /// Events may have been lost, and no one knows. What stands is as good as the next comparison.
    pub fn doubt(&mut self) {
        self.kernel.is_lost = true;
        self.lru.is_lost = true;
    }

    /// Events of kernel memory were lost: memory that an interrupt gave back while the same program ran on that CPU.
    ///
    /// Anonymous and shared memory cannot be lost so: the kernel counts them in process context alone, where the mapping
    /// is made or undone (`__folio_add_rmap`, `__folio_remove_rmap`, `shmem_add_to_page_cache`,
    /// `filemap_unaccount_folio`). What the program on LRU pages misses are statistics of slab and page tables.
    ///
    /// That holds for tracepoints, under which no one else comes to the CPU, and for functions that are called under the locks
    /// of page tables, except on kernels for real time.
    pub fn lose(&mut self, lru_too: bool) {
        self.kernel.is_lost = true;
        self.lru.is_lost |= lru_too;
    }

    /// Takes one comparison. What is known exactly is compared only with what is exact.
    pub fn learn(&mut self, evidence: Evidence) {
        let lag = evidence.spread + if evidence.is_flushed { 0 } else { self.lag_pages };
        let kernel_lag = if evidence.kernel_never_lags {
            evidence.spread
        } else {
            lag
        };
        for (part, difference, lag) in [
            (&mut self.lru, evidence.lru, lag),
            (&mut self.kernel, evidence.kernel, kernel_lag),
        ] {
            if let Some(difference) = difference
                && !part.learn(difference - lag, difference + lag)
            {
                self.rebased += 1;
            }
        }
    }

    /// Pages to add to anonymous memory.
    pub fn lru(&self) -> Option<i64> {
        self.lru.middle()
    }

    /// Pages to add to kernel memory.
    pub fn kernel(&self) -> Option<i64> {
        self.kernel.middle()
    }

    /// Pages to add to needed memory.
    pub fn pages(&self) -> Option<i64> {
        Some(self.lru()? + self.kernel()?)
    }

    /// How far the sum can be off, either way, in pages.
    pub fn bound(&self) -> Option<u64> {
        let bound = self.lru.bound()? + self.kernel.bound()?;
        (!self.is_deaf).then_some(bound)
    }

    /// How far off so many pages can be that were added to needed memory.
    pub fn bound_of(&self, pages: i64) -> Option<u64> {
        let (lru, kernel) = (self.lru.range()?, self.kernel.range()?);
        (!self.is_deaf).then(|| farthest((lru.0 + kernel.0, lru.1 + kernel.1), pages))
    }

    /// How often it was taken anew.
    pub fn rebased(&self) -> u64 {
        self.rebased
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(lru: i64, is_flushed: bool) -> Evidence {
        Evidence {
            lru: Some(lru),
            kernel: Some(0),
            spread: 0,
            is_flushed,
            kernel_never_lags: true,
        }
    }

    #[test]
    fn born_under_watch_is_exact() {
        let base = Base::from_birth(2);
        assert_eq!(
            (base.lru(), base.kernel(), base.bound()),
            (Some(0), Some(0), Some(0))
        );
    }

    #[test]
    fn comparisons_narrow_and_a_flushed_one_settles() {
        let mut base = Base::unknown(2);
        assert_eq!(base.bound(), None);
        base.learn(evidence(100, false));
        assert_eq!((base.lru(), base.bound()), (Some(100), Some(256)));
        base.learn(evidence(300, false));
        assert_eq!((base.lru(), base.bound()), (Some(200), Some(156)));
        base.learn(evidence(210, true));
        assert_eq!(
            (base.lru(), base.bound(), base.rebased()),
            (Some(210), Some(0), 0)
        );
    }

    #[test]
    fn a_loss_widens_the_bound_by_what_it_could_hide() {
        let mut base = Base::from_birth(2);
        base.lose(false);
        assert_eq!((base.kernel(), base.bound()), (Some(0), None));
        base.learn(Evidence {
            kernel: Some(3),
            ..evidence(0, false)
        });
        assert_eq!(
            (base.kernel(), base.bound(), base.rebased()),
            (Some(3), Some(3), 1)
        );
    }

    #[test]
    fn a_doubt_leaves_what_stands_and_tells_what_could_hide() {
        let mut base = Base::from_birth(2);
        base.doubt();
        assert_eq!((base.pages(), base.bound()), (Some(0), None));
        base.learn(evidence(100, false));
        assert_eq!(
            (base.lru(), base.bound(), base.rebased()),
            (Some(0), Some(100 + 256), 0)
        );
        base.doubt();
        base.learn(evidence(1_000, true));
        assert_eq!(
            (base.lru(), base.bound(), base.rebased()),
            (Some(1_000), Some(1_156), 1)
        );
    }

    #[test]
    fn what_was_not_heard_has_no_bound_ever_again() {
        let mut base = Base::from_birth(2);
        base.deafen();
        base.learn(evidence(0, true));
        assert_eq!(
            (base.pages(), base.bound(), base.bound_of(0)),
            (Some(0), None, None)
        );
    }

    #[test]
    fn a_contradiction_begins_anew() {
        let mut base = Base::from_birth(2);
        base.learn(evidence(5_000, true));
        assert_eq!(
            (base.lru(), base.bound(), base.rebased()),
            (Some(5_000), Some(5_000), 1)
        );
    }
}
