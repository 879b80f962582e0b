//! How this Slurm is set up: the settings on which it rests whether jobs have cgroups, as `scontrol show config` tells them.

use std::collections::HashMap;

/// Longest value that is kept; a longer one is not known.
const MAX_VALUE: usize = 1000;

/// What `scontrol` writes where nothing is set.
const NOTHING: &str = "(null)";

/// Settings by the names that `slurm.conf` and `cgroup.conf` have for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(HashMap<String, String>);

impl Settings {
    /// Value of a setting: `None` where nothing is set, or this Slurm does not tell it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The version, as `22.05.8`.
    pub fn version(&self) -> Option<&str> {
        self.get("SLURM_VERSION")
    }

    /// Whether one of the words of a list such as `task/affinity,task/cgroup` is `word`, in capitals or not.
    pub fn lists(&self, name: &str, word: &str) -> bool {
        let words = self.get(name).unwrap_or_default().split(',');
        words.into_iter().any(|one| one.trim().eq_ignore_ascii_case(word))
    }

    /// Whether a switch is on; `None` where it is not known.
    pub fn is_on(&self, name: &str) -> Option<bool> {
        match self.get(name)?.to_ascii_lowercase().as_str() {
            "yes" | "true" | "1" => Some(true),
            "no" | "false" | "0" => Some(false),
            _ => None,
        }
    }
}

impl FromIterator<(String, String)> for Settings {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(values: T) -> Self {
        Self(values.into_iter().collect())
    }
}

/// Reads lines `NAME = VALUE`. A name that stands twice is not known; `None` where the answer has no version of Slurm in it.
pub fn parse(answer: &[u8]) -> Option<Settings> {
    let text = String::from_utf8_lossy(answer);
    let mut values: HashMap<String, Option<String>> = HashMap::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let (name, value) = (name.trim(), value.trim());
        let is_known = !value.is_empty() && value != NOTHING && value.len() <= MAX_VALUE;
        values
            .entry(name.to_owned())
            .and_modify(|first| *first = None)
            .or_insert_with(|| is_known.then(|| value.to_owned()));
    }
    let values = values
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let settings = Settings(values.collect());
    settings.version().is_some().then_some(settings)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ANSWER: &str = "Configuration data as of 2026-11-30T11:00:00\n\
        JobAcctGatherType       = jobacct_gather/linux\n\
        PrologFlags             = Alloc,Contain\n\
        SLURM_VERSION           = 22.05.8\n\
        TaskPlugin              = task/affinity,task/cgroup\n\
        Epilog                  = (null)\n\
        \n\
        Cgroup Support Configuration:\n\
        ConstrainRAMSpace       = yes\n\
        ConstrainSwapSpace      = sometimes\n\
        \n\
        Slurmctld(primary) at node is UP\n";

    #[test]
    fn settings_are_read_as_scontrol_writes_them() {
        let settings = parse(ANSWER.as_bytes()).expect("settings");
        assert_eq!(settings.version(), Some("22.05.8"));
        assert_eq!(settings.get("JobAcctGatherType"), Some("jobacct_gather/linux"));
        assert_eq!(settings.get("Epilog"), None, "nothing is set");
        assert!(settings.lists("TaskPlugin", "task/cgroup"));
        assert!(settings.lists("PrologFlags", "contain"));
        assert!(!settings.lists("TaskPlugin", "cgroup"));
        assert_eq!(settings.is_on("ConstrainRAMSpace"), Some(true));
        assert_eq!(settings.is_on("ConstrainSwapSpace"), None);
        assert_eq!(settings.is_on("ConstrainDevices"), None);
    }

    #[test]
    fn what_stands_twice_is_not_known() {
        let twice = format!("{ANSWER}ConstrainRAMSpace = no\n");
        assert_eq!(
            parse(twice.as_bytes())
                .expect("settings")
                .is_on("ConstrainRAMSpace"),
            None
        );
        let long = format!("{ANSWER}Long = {}\n", "x".repeat(MAX_VALUE + 1));
        assert_eq!(parse(long.as_bytes()).expect("settings").get("Long"), None);
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for text in [
            "",
            "=",
            "SLURM_VERSION = (null)",
            "slurm_load_ctl_conf error: Unable to contact",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(settings) = parse(&bytes) {
                let _ = (settings.is_on("x"), settings.lists("x", "y"));
            }
        }
    }
}
