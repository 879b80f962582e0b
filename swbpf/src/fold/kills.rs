//! Kills for want of memory.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    Fold, Unknown,
    memory::{page_bytes, to_bytes},
};
use crate::{
    job::{
        cgroup::{saved_path, slurm::Role},
        id::StepName,
    },
    probe::{LimitHit, Notice},
    snapshot::{LimitOf, OomKill, Task},
};

/// A limit was hit where less than one part in this many of it was left at the kill, or less than 1 MiB: a charge had just
/// failed at it, but other CPUs may have freed memory since.
const NEAR: u64 = 256;

const NO_BOUND: &str = "events were lost, and nothing could be compared with the kernel's files since";

/// Whether a charge can have failed at this limit.
pub fn is_hit(limit: &LimitHit) -> bool {
    let near = (limit.pages / NEAR).max((1 << 20) / page_bytes());
    limit.left <= near as i64
}

/// A kill, and what is known of where it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kill {
    /// What the kernel told.
    pub notice: Notice,
    /// The nearest row of the victim.
    pub victim: Option<Role>,
    /// The row whose level the notice tells; none where it is the target's.
    pub measured: Option<u64>,
    /// Whose limit was hit.
    pub limit_of: LimitOf,
    /// Directory of that cgroup.
    #[serde(with = "saved_path::optional")]
    pub limit_dir: Option<PathBuf>,
}

impl Kill {
    fn step(&self) -> Option<StepName> {
        self.victim.and_then(Role::step)
    }

    fn task(&self) -> Option<u32> {
        self.victim.and_then(Role::task)
    }

    /// The limit in pages, where one was hit.
    fn limit_pages(&self) -> Option<u64> {
        self.notice.limit.filter(is_hit).map(|limit| limit.pages)
    }

    /// Pages that were charged at it.
    fn charged_pages(&self) -> Option<u64> {
        let limit = self.notice.limit.filter(is_hit)?;
        limit.pages.checked_sub_signed(limit.left)
    }
}

impl Fold {
    /// A process was killed for want of memory.
    pub fn killed(&mut self, kill: Kill) {
        let base = match kill.measured {
            Some(row) => self.below.base_of(row),
            None => self.base.pages(),
        };
        self.kills.push((kill, base));
    }

    /// All kills as they are told.
    pub(super) fn oom_kills(&self) -> Vec<OomKill> {
        self.kills
            .iter()
            .map(|(kill, base)| self.oom_kill(kill, *base))
            .collect()
    }

    /// Kills that the slot counted, and no notice told.
    pub(super) fn kills_untold(&self) -> Option<u64> {
        let counted = self.last.kernel.as_ref()?.slot.oom_kills;
        Some(counted.saturating_sub(self.kills.len() as u64))
    }

    fn oom_kill(&self, kill: &Kill, base: Option<i64>) -> OomKill {
        let task = |(pid, comm): &(u32, String)| Task {
            pid: *pid,
            comm: comm.clone(),
        };
        let notice = &kill.notice;
        let base = base.or(self.base.pages()).unwrap_or(0);
        let until_ns = kill
            .step()
            .and_then(|step| self.below.step_until(step, self.last.ns));
        OomKill {
            at: self.begin.rfc3339(notice.ns),
            at_seconds: self.begin.seconds_to(notice.ns),
            victim: task(&notice.victim),
            trigger: task(&notice.by),
            step_id: kill.step().map(|step| step.to_string()),
            task_id: kill.task(),
            victim_is_main: notice.victim_is_first,
            went_on_seconds: until_ns.unwrap_or(self.last.ns).saturating_sub(notice.ns) as f64 / 1e9,
            needed_bytes: to_bytes(notice.level + base),
            needed_peak_bytes: to_bytes(notice.peak + base),
            error_bound_bytes: self.bound_of_kill(kill, base),
            limit_of: kill.limit_of,
            limit_bytes: kill.limit_pages().map(|pages| pages * page_bytes()),
            limit_charged_bytes: kill.charged_pages().map(|pages| pages * page_bytes()),
            limit_cgroup: kill
                .limit_dir
                .as_ref()
                .map(|path| path.to_string_lossy().into_owned()),
        }
    }

    /// A row's own, while it is there; what was lost for the target was lost for all.
    fn bound_of_kill(&self, kill: &Kill, base: i64) -> Option<u64> {
        let of_row = kill.measured.and_then(|row| self.below.bound_of(row, base));
        let of_target = || match kill.measured {
            Some(_) => self.base.bound(),
            None => self.base.bound_of(base),
        };
        let pages = of_row.or_else(of_target).filter(|_| !self.is_too_deep())?;
        Some((pages + self.subject.batch_bound_pages) * page_bytes())
    }

    /// The reason of what is not known of a kill: one for all of them.
    pub(super) fn note_kills(&self, unknown: &mut Unknown) {
        if self.last.kernel.is_none() {
            unknown.insert(
                "oom_kills_untold".to_owned(),
                "only the kernel programs see kills".to_owned(),
            );
        }
        if self
            .oom_kills()
            .iter()
            .any(|kill| kill.error_bound_bytes.is_none())
        {
            unknown.insert("oom_kills[].error_bound_bytes".to_owned(), NO_BOUND.to_owned());
        }
        let mut unless_all = |key: &str, is_known: fn(&Kill) -> bool, reason: &str| {
            if !self.kills.iter().all(|(kill, _)| is_known(kill)) {
                unknown.insert(format!("oom_kills[].{key}"), reason.to_owned());
            }
        };
        let no_limit = "no limit was near: the machine ran out of memory, or memory is not counted";
        unless_all("limit_bytes", |kill| kill.limit_pages().is_some(), no_limit);
        unless_all(
            "limit_charged_bytes",
            |kill| kill.charged_pages().is_some(),
            no_limit,
        );
        unless_all(
            "limit_cgroup",
            |kill| kill.limit_dir.is_some(),
            "no limit was near, or its cgroup is neither above the target nor has it a row below",
        );
        unless_all(
            "step_id",
            |kill| kill.step().is_some(),
            "the victim was in no step",
        );
        unless_all(
            "task_id",
            |kill| kill.task().is_some(),
            "the victim was in no task that has a cgroup of its own",
        );
    }
}
