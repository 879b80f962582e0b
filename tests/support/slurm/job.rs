//! Jobs: submitted, waited for, looked at.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::client::run;
use super::{CLIENT_LIMIT, Slurm, cgroups};
use crate::pace::scaled;

/// Time between two looks at a job.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a job may take to come to a state; a time limit of one minute is noticed within 90 s.
const PATIENCE: Duration = Duration::from_mins(2);

/// States in which a job is over.
const ENDED: [&str; 9] = [
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
];

/// The number under which Slurm keeps one job, each task of an array with its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId(pub u32);

impl Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Slurm {
    /// Submits a script as the user of this cluster. Its output is that of [`output`](Self::output); its directory is
    /// one that it may write to, and the program `workload` is on its `PATH`.
    ///
    /// # Panics
    ///
    /// Where it is refused.
    pub fn sbatch(&self, script: &str, options: &[&str]) -> JobId {
        let path = self.dir("work").join("script");
        std::fs::write(&path, script).expect("a script");
        let mut command = self.as_user("sbatch");
        command
            .args(["--parsable", "--output=%j.out"])
            .args(options)
            .arg(path);
        let told = run(&mut command, CLIENT_LIMIT).good();
        parsed_id(&told).unwrap_or_else(|| panic!("no job id: {told}"))
    }

    /// What a job has written so far.
    #[must_use]
    pub fn output(&self, job: impl Display) -> String {
        let path = self.dir("work").join(format!("{job}.out"));
        String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
    }

    /// One value of `scontrol show job`, of a job that Slurm knows, by its id or by a name such as `12_3`.
    ///
    /// # Panics
    ///
    /// Where there is none.
    #[must_use]
    pub fn value(&self, job: impl Display, key: &str) -> String {
        let text = self.client("scontrol", &["show", "job", "--oneliner", &job.to_string()]);
        value(&text, key)
            .unwrap_or_else(|| panic!("no {key}: {text}"))
            .to_owned()
    }

    /// Waits until a job has one of these states.
    ///
    /// # Panics
    ///
    /// Where it ends in another, or takes too long.
    pub fn wait_state(&self, job: impl Display, states: &[&str]) -> String {
        let deadline = Instant::now() + scaled(PATIENCE);
        loop {
            let state = self.value(&job, "JobState");
            if states.contains(&state.as_str()) {
                return state;
            }
            let is_over = ENDED.contains(&state.as_str()) || Instant::now() > deadline;
            assert!(
                !is_over,
                "job {job} is {state}, not {states:?}: {}",
                self.output(&job)
            );
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until a job runs: its script has been started, or is about to be.
    ///
    /// # Panics
    ///
    /// Where it does not.
    pub fn wait_running(&self, job: impl Display) {
        self.wait_state(job, &["RUNNING"]);
    }

    /// Waits until a job is over, and gives the state that it ended in.
    ///
    /// # Panics
    ///
    /// Where it takes too long.
    pub fn wait_end(&self, job: impl Display) -> String {
        self.wait_state(job, &ENDED)
    }

    /// Waits until a job has written a line.
    ///
    /// # Panics
    ///
    /// Where it does not.
    pub fn wait_line(&self, job: JobId, line: &str) {
        let deadline = Instant::now() + scaled(PATIENCE);
        loop {
            let output = self.output(job);
            if output.lines().any(|told| told == line) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "job {job} did not say {line}: {output}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Submits a script, waits for its end, and gives its job and the state that this ended in.
    ///
    /// # Panics
    ///
    /// Where it is refused, or takes too long.
    pub fn run_job(&self, script: &str, options: &[&str]) -> (JobId, String) {
        let job = self.sbatch(script, options);
        let state = self.wait_end(job);
        (job, state)
    }

    /// What of a submission has become which job: `12_3` or `12+1`, and the id under which Slurm keeps it.
    ///
    /// # Panics
    ///
    /// Where Slurm does not answer.
    #[must_use]
    pub fn parts(&self, job: JobId) -> Vec<(String, JobId)> {
        let id = job.to_string();
        let options = [
            "--noheader",
            "--array",
            "--states=all",
            "--jobs",
            &id,
            "--format=%i %A",
        ];
        let text = self.client("squeue", &options);
        let mut parts: Vec<_> = text
            .lines()
            .filter_map(|line| {
                let (name, raw) = line.trim().split_once(' ')?;
                Some((name.to_owned(), parsed_id(raw)?))
            })
            .collect();
        parts.sort();
        parts
    }

    /// Lets a job go on that runs the command `until-let-go`.
    ///
    /// # Panics
    ///
    /// Where it cannot be told.
    pub fn let_go(&self, job: JobId) {
        std::fs::write(self.dir("work").join(format!("go.{job}")), "").expect("a file");
    }

    /// Ends a job.
    ///
    /// # Panics
    ///
    /// Where Slurm refuses.
    pub fn scancel(&self, job: JobId) {
        self.client("scancel", &[&job.to_string()]);
    }

    /// The directory that counts the memory of a job on the first node.
    #[must_use]
    pub fn job_cgroup(&self, job: JobId) -> PathBuf {
        self.job_dir("memory", job)
    }

    /// The directory of a job on the first node in the hierarchy of a controller, whether it is there or not.
    #[must_use]
    pub fn job_dir(&self, controller: &str, job: JobId) -> PathBuf {
        cgroups::job(controller, &cgroups::node(1), self.user().uid, job.0)
    }
}

/// The id in what `sbatch --parsable` prints: a number, and the cluster behind a semicolon where there are several.
fn parsed_id(text: &str) -> Option<JobId> {
    let number = text.split(';').next()?.trim();
    number.parse().ok().map(JobId)
}

/// The value of the first `KEY=VALUE` among words.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_whitespace()
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_are_read_back(id in any::<u32>(), cluster in "(;[a-z]{0,8})?") {
            prop_assert_eq!(parsed_id(&format!("{id}{cluster}\n")), Some(JobId(id)));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC*", key in "\\PC{0,8}") {
            let _ = parsed_id(&text);
            let _ = value(&text, &key);
        }

        #[test]
        fn values_are_found_by_their_whole_key(state in "[A-Z]{1,9}") {
            let text = format!("XJobState=A JobStateX=B JobState={state} JobState=C");
            prop_assert_eq!(value(&text, "JobState"), Some(state.as_str()));
        }
    }
}
