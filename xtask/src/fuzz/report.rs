//! What a run of a target told.

use std::fmt;
use std::path::PathBuf;

/// What stands above the outcomes.
pub const HEAD: &str = "target             executions  a second    edges  features  outcome";

/// How a run of a target ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its name.
    pub target: String,
    executions: Option<u64>,
    per_second: Option<u64>,
    /// Edges of the code that were taken, and those with how often and with which values they were.
    edges: Option<u64>,
    features: Option<u64>,
    is_success: bool,
    /// Files of the inputs that are a fault.
    crashes: Vec<PathBuf>,
    log: PathBuf,
}

impl Outcome {
    /// Reads what libFuzzer told.
    pub fn read(target: &str, told: &str, is_success: bool, crashes: Vec<PathBuf>, log: PathBuf) -> Self {
        let stat = |name: &str| {
            let line = told.lines().find_map(|line| line.strip_prefix(name));
            line?.trim_start_matches(':').trim().parse().ok()
        };
        let last = |key: &str| {
            let found = told.lines().rev().find_map(|line| line.split_once(key));
            found?.1.split_whitespace().next()?.parse().ok()
        };
        Self {
            target: target.to_owned(),
            executions: stat("stat::number_of_executed_units"),
            per_second: stat("stat::average_exec_per_sec"),
            edges: last(" cov: "),
            features: last(" ft: "),
            is_success,
            crashes,
            log,
        }
    }

    /// Whether it ran to its end, tried something, and found no fault.
    pub fn is_good(&self) -> bool {
        self.is_success && self.crashes.is_empty() && self.executions > Some(0)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        write!(
            f,
            "{:<17} {:>11} {:>9} {:>8} {:>9}",
            self.target,
            shown(self.executions),
            shown(self.per_second),
            shown(self.edges),
            shown(self.features)
        )?;
        if self.is_good() {
            return write!(f, "  no fault");
        }
        write!(f, "  FAULT: see {}", self.log.display())?;
        for crash in &self.crashes {
            write!(f, "\n  {}", crash.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "#2\tINITED cov: 4 ft: 4 corp: 1/1b exec/s: 0 rss: 27Mb\n\
        #9\tDONE   cov: 71 ft: 802 corp: 4/13b lim: 4096 exec/s: 3 rss: 27Mb\n\
        stat::number_of_executed_units: 900\nstat::average_exec_per_sec:     30\n";

    #[test]
    fn the_end_of_a_run_is_read() {
        let outcome = Outcome::read("x", TOLD, true, Vec::new(), PathBuf::new());
        assert!(outcome.is_good());
        let shown = outcome.to_string();
        let words: Vec<_> = shown.split_whitespace().collect();
        assert_eq!(words, ["x", "900", "30", "71", "802", "no", "fault"]);
    }

    #[test]
    fn what_did_not_run_or_left_an_input_is_a_fault() {
        let crash = vec![PathBuf::from("crash-1")];
        for (told, is_success, crashes) in [("", true, vec![]), (TOLD, false, vec![]), (TOLD, true, crash)] {
            assert!(!Outcome::read("x", told, is_success, crashes, PathBuf::new()).is_good());
        }
    }
}
