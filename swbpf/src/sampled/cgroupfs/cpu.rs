//! The CPU time of a cgroup, and how much of the processors it may use.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Unknown;
use super::files::Files;
use crate::job::cgroup::{Cgroup, CgroupDir, Controller, Version};
use crate::job::kernfile;

/// More processors than any kernel runs on: a list that reaches further is not taken.
const MAX_CPUS: u64 = 1 << 16;

/// The CPU time of a cgroup and all below it at one moment. What is not known is `None`, with the reason in `unknown`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuFiles {
    /// CPU time since the cgroup was made.
    pub usage_ns: Option<u64>,
    /// The same for each processor, in the order of their numbers; version 2 does not tell it.
    pub per_cpu_usage_ns: Option<Vec<u64>>,
    /// Time that its threads were held back by a quota of its own.
    pub throttled_ns: Option<u64>,
    /// How many periods it was held back in.
    pub throttled_periods: Option<u64>,
    /// The lowest quota that holds for it, in processors; `None` where none does.
    pub quota_cores: Option<f64>,
    /// How many processors it may run on.
    pub cpus: Option<u64>,
    /// For each field that is `None` and should not be the reason, by the field's name.
    pub unknown: Unknown,
}

impl CpuFiles {
    /// Reads the files of `cgroup` once.
    pub fn read(cgroup: &Cgroup) -> Self {
        let mut read = match cgroup.dir(Controller::Cpuacct) {
            Some(dir) if dir.version == Version::V1 => Self::usage_v1(&dir.path),
            Some(dir) => Self::usage_v2(&dir.path),
            None => Self::no_usage(),
        };
        read.add_throttling(cgroup.dir(Controller::Cpu));
        read.quota_cores = cgroup.nearest_dir(Controller::Cpu).and_then(lowest_quota);
        read.cpus = cgroup
            .nearest_dir(Controller::Cpuset)
            .and_then(cpus_allowed)
            .or_else(cpus_online);
        if read.cpus.is_none() {
            read.unknown.insert(
                "cpus".into(),
                "neither a cpuset nor the list of online processors could be read".to_owned(),
            );
        }
        read
    }

    /// As of a cgroup that has not used any.
    pub fn empty(&mut self) {
        let times = [
            &mut self.usage_ns,
            &mut self.throttled_ns,
            &mut self.throttled_periods,
        ];
        times.into_iter().flatten().for_each(|time| *time = 0);
        self.per_cpu_usage_ns
            .iter_mut()
            .flatten()
            .for_each(|time| *time = 0);
    }

    /// Processors that the cgroup may use, by its cpuset and its quota.
    pub fn cores_allocated(&self) -> Option<f64> {
        let cpus = self.cpus.map(|cpus| cpus as f64)?;
        Some(self.quota_cores.map_or(cpus, |quota| quota.min(cpus)))
    }

    fn usage_v1(dir: &Path) -> Self {
        let mut files = Files::new(dir);
        let usage_ns = files.number("cpuacct.usage");
        let per_cpu = files.text("cpuacct.usage_percpu").and_then(|text| {
            parse_per_cpu(&text)
                .ok_or_else(|| "cpuacct.usage_percpu holds something else than numbers".to_owned())
        });
        Self {
            usage_ns: files.keep("usage_ns", usage_ns),
            per_cpu_usage_ns: files.keep("per_cpu_usage_ns", per_cpu),
            unknown: files.unknown,
            ..Self::default()
        }
    }

    fn usage_v2(dir: &Path) -> Self {
        let mut files = Files::new(dir);
        let usage = files
            .keyed("cpu.stat")
            .get("usage_usec")
            .map(|usec| usec.saturating_mul(1000));
        files.unknown.insert(
            "per_cpu_usage_ns".into(),
            "cgroup version 2 does not tell CPU time per processor".to_owned(),
        );
        Self {
            usage_ns: files.keep("usage_ns", usage),
            unknown: files.unknown,
            ..Self::default()
        }
    }

    fn no_usage() -> Self {
        let reason = "the target has no cgroup of its own in a hierarchy that counts CPU time";
        let unknown = ["usage_ns", "per_cpu_usage_ns"].map(|field| (field.into(), reason.to_owned()));
        Self {
            unknown: Unknown::from(unknown),
            ..Self::default()
        }
    }

    fn add_throttling(&mut self, dir: Option<&CgroupDir>) {
        let none =
            || Err("the target has no cgroup of its own in a hierarchy that limits CPU time".to_owned());
        let (time, periods) = dir.map_or_else(|| (none(), none()), throttling);
        self.throttled_ns = time
            .map_err(|reason| self.unknown.insert("throttled_ns".into(), reason))
            .ok();
        self.throttled_periods = periods
            .map_err(|reason| self.unknown.insert("throttled_periods".into(), reason))
            .ok();
    }
}

/// For how long and in how many periods threads were held back.
fn throttling(dir: &CgroupDir) -> (Result<u64, String>, Result<u64, String>) {
    let stat = Files::new(&dir.path).keyed("cpu.stat");
    let time = match dir.version {
        Version::V1 => stat.get("throttled_time"),
        Version::V2 => stat.get("throttled_usec").map(|usec| usec.saturating_mul(1000)),
    };
    (time, stat.get("nr_throttled"))
}

/// The lowest quota from the directory up to the mount point, in processors.
fn lowest_quota(dir: &CgroupDir) -> Option<f64> {
    let quotas = dir.ancestors().filter_map(|path| match dir.version {
        Version::V1 => {
            let files = Files::new(path);
            // -1 is not an unsigned number: no quota.
            quota(
                files.number("cpu.cfs_quota_us").ok()?,
                files.number("cpu.cfs_period_us").ok()?,
            )
        }
        Version::V2 => parse_cpu_max(&Files::new(path).text("cpu.max").ok()?),
    });
    quotas.min_by(f64::total_cmp)
}

fn quota(quota_us: u64, period_us: u64) -> Option<f64> {
    (period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

/// `QUOTA PERIOD`, the quota being `max` where there is none.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota_us, period_us) = text.trim_ascii().split_once(' ')?;
    quota(kernfile::number(quota_us)?, kernfile::number(period_us)?)
}

/// How many processors the nearest cpuset allows; version 2 shows it only where the controller is on.
fn cpus_allowed(dir: &CgroupDir) -> Option<u64> {
    let name = match dir.version {
        Version::V1 => "cpuset.effective_cpus",
        Version::V2 => "cpuset.cpus.effective",
    };
    dir.ancestors()
        .find_map(|path| count_cpus(&Files::new(path).text(name).ok()?))
}

fn cpus_online() -> Option<u64> {
    count_cpus(&kernfile::read_text(Path::new("/sys/devices/system/cpu/online")).ok()?)
}

/// How many processors a list such as `0-3,8` has; `None` where it is none, or empty.
fn count_cpus(ranges: &str) -> Option<u64> {
    let mut count = 0_u64;
    for range in ranges.trim_ascii().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MAX_CPUS {
            return None;
        }
        count = count.saturating_add(last - first + 1);
    }
    Some(count)
}

fn parse_per_cpu(text: &str) -> Option<Vec<u64>> {
    text.split_ascii_whitespace()
        .map(|word| word.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_of_processors_are_counted() {
        assert_eq!(count_cpus("0-3,8,10-11\n"), Some(7));
        assert_eq!(count_cpus("5"), Some(1));
        for odd in ["", "\n", "3-1", "0-", "a", "0-99999999", "0,,1"] {
            assert_eq!(count_cpus(odd), None, "{odd}");
        }
    }

    #[test]
    fn quotas_are_in_processors() {
        assert_eq!(parse_cpu_max("150000 100000\n"), Some(1.5));
        for odd in ["max 100000\n", "1 0\n", "5", ""] {
            assert_eq!(parse_cpu_max(odd), None, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_them_panic(text in "(?s)[0-9, \n-]{0,60}|.{0,40}") {
            count_cpus(&text);
            parse_cpu_max(&text);
            parse_per_cpu(&text);
        }
    }
}
