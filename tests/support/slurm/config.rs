//! How a cluster is set up, and the files that say so.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use super::cgroups;
use crate::pace::factor;

const SLURM: &str = include_str!("slurm.conf");
const SLURMDBD: &str = include_str!("slurmdbd.conf");
const CGROUP: &str = include_str!("cgroup.conf");

/// Name of the host inside the cluster's namespace, which every machine resolves to a loopback address.
pub const HOST: &str = "localhost";

/// Ports are those of a network namespace that nothing else is in.
const FIRST_SLURMD_PORT: usize = 7001;

/// Most memory of a node, in MiB.
const NODE_MIB: u64 = 4000;

/// Without systemd, Slurm itself is to make the directories of version 2.
const WITHOUT_SYSTEMD: &str = "IgnoreSystemd=yes\nCgroupAutomount=yes\n";
const WITH_SYSTEMD: &str = "CgroupAutomount=no\n";

/// What looks at the memory of jobs: `JobAcctGatherType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gather {
    /// `jobacct_gather/linux`: the processes, by `/proc`.
    Linux,
    /// `jobacct_gather/cgroup`: the files of the cgroups.
    Cgroup,
}

impl Gather {
    /// Its name behind `jobacct_gather/`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Cgroup => "cgroup",
        }
    }
}

/// How a cluster is set up; the default is what most sites have, on one node and without accounting.
#[derive(Debug, Clone)]
pub struct Config {
    /// Whether what jobs used is stored, for `sacct`. It takes a database, and some two seconds to start it.
    pub accounting: bool,
    /// What looks at the memory of jobs.
    pub gather: Gather,
    /// How often it looks: every so many seconds, each as long as [`factor`] says, as all that jobs do takes longer then.
    pub gather_seconds: u32,
    /// Whether jobs are held to the memory that they ask for: `ConstrainRAMSpace`.
    pub constrain_ram: bool,
    /// How many `slurmd` run on this host.
    pub nodes: usize,
    /// Whether it has a network of its own, which nobody else is in.
    pub own_network: bool,
    /// `PrologFlags`: `Alloc,Contain`, or empty.
    pub prolog_flags: String,
    /// Script that root runs on the node before a job.
    pub prolog: Option<PathBuf>,
    /// Script that root runs on the node after a job.
    pub epilog: Option<PathBuf>,
    /// Script that the user runs before each task.
    pub task_prolog: Option<PathBuf>,
    /// Further lines of `slurm.conf`.
    pub slurm_conf: String,
    /// Further lines of `cgroup.conf`.
    pub cgroup_conf: String,
    /// Lines of `plugstack.conf`.
    pub plugstack_conf: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            accounting: false,
            gather: Gather::Linux,
            gather_seconds: 30,
            constrain_ram: true,
            nodes: 1,
            own_network: true,
            prolog_flags: "Alloc,Contain".to_owned(),
            prolog: None,
            epilog: None,
            task_prolog: None,
            slurm_conf: String::new(),
            cgroup_conf: String::new(),
            plugstack_conf: String::new(),
        }
    }
}

impl Config {
    /// Names of the nodes.
    pub fn node_names(&self) -> impl Iterator<Item = String> {
        (1..=self.nodes).map(cgroups::node)
    }

    /// Text of `slurm.conf` of a cluster in `dir`.
    pub fn slurm(&self, dir: &Path) -> String {
        let values = [
            ("host", HOST),
            ("gather", self.gather.name()),
            ("seconds", &(self.gather_seconds * factor()).to_string()),
            ("accounting", &self.accounting_lines()),
            ("hooks", &self.hook_lines()),
            ("extra", &lines(&self.slurm_conf)),
            ("nodes", &self.node_lines()),
            ("dir", &dir.display().to_string()),
        ];
        filled(SLURM, &values)
    }

    /// Text of `cgroup.conf`, for version 1 or 2.
    pub fn cgroup(&self, version: u8, has_systemd: bool) -> String {
        let by_itself = version == 2 && !has_systemd;
        let extra = if by_itself { WITHOUT_SYSTEMD } else { WITH_SYSTEMD };
        let values = [
            ("plugin", if version == 2 { "v2" } else { "v1" }),
            ("ram", if self.constrain_ram { "yes" } else { "no" }),
            ("extra", &format!("{extra}{}", self.cgroup_conf)),
        ];
        filled(CGROUP, &values)
    }

    fn accounting_lines(&self) -> String {
        if self.accounting {
            // With munge, the password is the path of munge's socket.
            "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n\
             AccountingStoragePort=6819\nAccountingStoragePass={dir}/run/munge.socket\n"
                .to_owned()
        } else {
            "AccountingStorageType=accounting_storage/none\n".to_owned()
        }
    }

    fn hook_lines(&self) -> String {
        let hooks = [
            ("Prolog", &self.prolog),
            ("Epilog", &self.epilog),
            ("TaskProlog", &self.task_prolog),
        ];
        let mut text = String::new();
        if !self.prolog_flags.is_empty() {
            let _ = writeln!(text, "PrologFlags={}", self.prolog_flags);
        }
        for (key, path) in hooks {
            if let Some(path) = path {
                let _ = writeln!(text, "{key}={}", path.display());
            }
        }
        text
    }

    fn node_lines(&self) -> String {
        let cpus = available_parallelism().map_or(1, usize::from);
        let mib = node_mib();
        let lines = self.node_names().enumerate().map(|(index, name)| {
            let port = FIRST_SLURMD_PORT + index;
            format!(
                "NodeName={name} NodeHostname={HOST} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} \
                 RealMemory={mib} State=UNKNOWN\n"
            )
        });
        lines.collect()
    }
}

/// Text of `slurmdbd.conf` of a cluster in `dir`.
pub fn slurmdbd(dir: &Path) -> String {
    filled(SLURMDBD, &[("host", HOST), ("dir", &dir.display().to_string())])
}

/// A node that says that it has more memory than the machine is drained.
fn node_mib() -> u64 {
    let info = rustix::system::sysinfo();
    let total = info.totalram as u64 * u64::from(info.mem_unit) / super::MIB;
    total.saturating_sub(200).min(NODE_MIB)
}

/// Text with a line end behind it, if there is any.
fn lines(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') {
        text.to_owned()
    } else {
        format!("{text}\n")
    }
}

/// A template with each `{key}` replaced, one after the other: a value may hold the key of a later one.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(template.to_owned(), |text, (key, value)| {
        text.replace(&format!("{{{key}}}"), value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_a_template_is_filled() {
        let config = Config {
            accounting: true,
            nodes: 2,
            prolog: Some(PathBuf::from("/etc/prolog")),
            slurm_conf: "MaxArraySize=10".to_owned(),
            ..Config::default()
        };
        let dir = Path::new("/var/lib/x");
        let slurm = config.slurm(dir);
        for text in [
            &slurm,
            &config.cgroup(1, false),
            &config.cgroup(2, false),
            &slurmdbd(dir),
        ] {
            assert!(!text.contains(['{', '}']), "{text}");
            let keyless = text.lines().find(|line| !line.is_empty() && !line.contains('='));
            assert_eq!(keyless, None);
        }
        for line in [
            "AccountingStoragePass=/var/lib/x/run/munge.socket",
            "Prolog=/etc/prolog",
            "PrologFlags=Alloc,Contain",
            "MaxArraySize=10",
        ] {
            assert!(slurm.lines().any(|found| found == line), "{line}: {slurm}");
        }
        assert_eq!(slurm.matches("\nNodeName=").count(), 2);
    }
}
