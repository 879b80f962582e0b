//! Names of records.

use crate::job::id::{JobId, JobRef, Recorded};

/// What ends each of them.
const END: &str = ".jsonl";
/// Longest name of a file that is looked at.
const MAX_BYTES: usize = 128;

/// A record by the name of its file: `JOB.jsonl` of the latest run of a job on this host, `JOB.N.jsonl` of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordName {
    /// The raw id of the job, its SLUID where its cgroup is named by that, or `cgroup-NAME` of what is no job.
    pub job: String,
    /// 0: the latest run; 1 and on: an earlier one, in their order.
    pub run: u32,
}

impl RecordName {
    /// That of the latest run.
    pub fn latest(job: &str) -> Self {
        Self {
            job: job.to_owned(),
            run: 0,
        }
    }

    /// The record whose file has this name; `None` where no record is named so.
    pub fn of_file(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(END).filter(|_| name.len() <= MAX_BYTES)?;
        let earlier = stem.rsplit_once('.').and_then(|(job, run)| {
            let is_plain = !run.starts_with('0') && run.bytes().all(|byte| byte.is_ascii_digit());
            Some((job, run.parse().ok().filter(|_| is_plain)?))
        });
        let (job, run) = earlier.unwrap_or((stem, 0));
        is_job(job).then(|| Self {
            job: job.to_owned(),
            run,
        })
    }

    /// The name of its file.
    pub fn file(&self) -> String {
        match self.run {
            0 => format!("{}{END}", self.job),
            run => format!("{}.{run}{END}", self.job),
        }
    }
}

/// Whether the agent names a record so.
fn is_job(name: &str) -> bool {
    match name.parse() {
        Ok(Recorded::Job(JobId {
            job: job @ (JobRef::Raw(_) | JobRef::Sluid(_)),
            step: None,
        })) => job.to_string() == name,
        Ok(Recorded::Cgroup(_)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (file, job, run) in [
            ("123.jsonl", "123", 0),
            ("123.7.jsonl", "123", 7),
            ("cgroup-a_b.jsonl", "cgroup-a_b", 0),
            ("cgroup-a.b.2.jsonl", "cgroup-a.b", 2),
            ("cgroup-a.02.jsonl", "cgroup-a.02", 0),
            ("s0000000000001.jsonl", "s0000000000001", 0),
        ] {
            let name = RecordName::of_file(file).unwrap_or_else(|| panic!("{file}"));
            assert_eq!((name.job.as_str(), name.run), (job, run), "{file}");
            assert_eq!(name.file(), file);
        }
    }

    #[test]
    fn other_names_are_no_records() {
        for file in [
            "",
            ".jsonl",
            "123",
            "123.json",
            "0.jsonl",
            "0123.jsonl",
            "123.0.jsonl",
            "123.01.jsonl",
            "123.99999999999.jsonl",
            "123.batch.jsonl",
            "123_4.jsonl",
            "cgroup-.jsonl",
            "cgroup-a/b.jsonl",
            "cgroup-a\n.jsonl",
            "../123.jsonl",
            "S0000000000001.jsonl",
            &format!("cgroup-{}.jsonl", "a".repeat(200)),
        ] {
            assert_eq!(RecordName::of_file(file), None, "{file:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_name_or_none(text in "(?s).{0,40}", near in "[0-9a-z.-]{0,20}[.]jsonl") {
            for file in [&text, &near] {
                prop_assert!(RecordName::of_file(file).is_none_or(|name| name.file() == *file));
            }
        }
    }
}
