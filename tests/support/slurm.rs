//! A Slurm of one's own, started for a test: munge, a database, the controller and one or more nodes on this host, in
//! one private directory and on a network of their own.
//!
//! [`Slurm::start`] needs root and takes some seconds, less without accounting. Only one runs on a machine at a time;
//! the next one waits. When it is dropped, also where a test panics, everything is killed and removed: daemons, jobs,
//! cgroups, the directory. What a killed test program leaves behind, the next one removes.
//!
//! Jobs are those of the user `nobody`, and measure the program `workload`.

mod account;
pub mod cgroups;
mod client;
mod config;
mod daemon;
mod job;
mod namespace;
mod place;
mod start;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Pid;

use crate::measure::MIB;

pub use account::{Row, size_bytes};
pub use client::{Answer, ended_within, run};
pub use config::{Config, Gather};
pub use job::JobId;
pub use place::remains;

use daemon::Daemon;
use namespace::Namespaces;
use place::Place;

/// How long a client of Slurm may take: the first ones wait until the controller has seen its nodes.
pub const CLIENT_LIMIT: Duration = Duration::from_secs(20);

/// Where the programs of Slurm and its helpers are looked for.
pub const PROGRAM_DIRS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// A user without any right of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its id.
    pub uid: u32,
    /// The id of its group.
    pub gid: u32,
}

/// A cluster that runs.
#[derive(Debug)]
pub struct Slurm {
    // Dropped in this order: the place last, which looks for what the daemons leave.
    daemons: Vec<Daemon>,
    namespaces: Namespaces,
    user: User,
    config: Config,
    place: Place,
}

impl Slurm {
    /// Starts a cluster, whose nodes are then ready for jobs.
    ///
    /// # Panics
    ///
    /// Where a daemon does not come up; its log is told.
    #[must_use]
    pub fn start(config: &Config) -> Self {
        let mut slurm = Self {
            daemons: Vec::new(),
            user: user("nobody").expect("a user nobody"),
            config: config.clone(),
            place: Place::take(),
            namespaces: Namespaces::create(config.own_network),
        };
        slurm.write_files();
        slurm.start_daemons();
        slurm
    }

    /// A program as root would start it on a host of this cluster: with its configuration, in its network.
    #[must_use]
    pub fn as_root(&self, program: impl AsRef<Path>) -> Command {
        self.command(program.as_ref(), None)
    }

    /// The same as the user who owns the jobs, in a directory that this user may write to.
    #[must_use]
    pub fn as_user(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.command(program.as_ref(), Some((self.user.uid, self.user.gid)));
        command.current_dir(self.dir("work"));
        command
    }

    /// What a client says that root runs, without the last line end.
    ///
    /// # Panics
    ///
    /// Where it fails or takes too long.
    pub fn client(&self, name: &str, arguments: &[&str]) -> String {
        run(self.as_root(name).args(arguments), CLIENT_LIMIT).good()
    }

    /// The user who owns the jobs.
    #[must_use]
    pub fn user(&self) -> &User {
        &self.user
    }

    /// Name and version of this Slurm.
    ///
    /// # Panics
    ///
    /// Where it does not say.
    #[must_use]
    pub fn version(&self) -> String {
        self.client("slurmctld", &["-V"])
    }

    /// A directory of the cluster: `work`, where jobs run; `etc`, `log`, `bin`.
    #[must_use]
    pub fn dir(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }

    /// Lines of a daemon's log that hold a text.
    #[must_use]
    pub fn logged(&self, daemon: &str, text: &str) -> Vec<String> {
        let bytes = fs::read(self.dir("log").join(format!("{daemon}.log"))).unwrap_or_default();
        let log = String::from_utf8_lossy(&bytes);
        log.lines()
            .filter(|line| line.contains(text))
            .map(str::to_owned)
            .collect()
    }

    /// Processes of the cluster, those of its jobs and clients among them.
    #[must_use]
    pub fn processes(&self) -> Vec<Pid> {
        place::processes()
    }

    /// Leaves everything as a test program does that is killed.
    pub fn abandon(mut self) {
        self.place.abandon();
        for daemon in self.daemons.drain(..) {
            std::mem::forget(daemon);
        }
    }

    fn command(&self, program: &Path, user: Option<(u32, u32)>) -> Command {
        let mut command = Command::new(program);
        let path = [&self.dir("bin").display().to_string(), "/usr/local/bin"]
            .into_iter()
            .map(str::to_owned)
            .chain(PROGRAM_DIRS.map(str::to_owned))
            .collect::<Vec<_>>()
            .join(":");
        command
            .env_clear()
            .env("SLURM_CONF", self.dir("etc/slurm.conf"))
            .env("LC_ALL", "C")
            // What `salloc` starts.
            .env("SHELL", "/bin/sh")
            .env("PATH", path)
            .env("USER", user.map_or("root", |_| &self.user.name));
        self.namespaces.enter(&mut command, user);
        command
    }
}

/// A user of this machine.
fn user(name: &str) -> Option<User> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    text.lines().find_map(|line| passwd(line, name))
}

/// The user, where `NAME:x:UID:GID:…` is this one.
fn passwd(line: &str, name: &str) -> Option<User> {
    let mut fields = line.split(':');
    let mut number = |skip| fields.nth(skip)?.parse().ok();
    let is_named = line.split(':').next() == Some(name);
    let (uid, gid) = (number(2)?, number(0)?);
    is_named.then(|| User {
        name: name.to_owned(),
        uid,
        gid,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_line_of_passwd_is_read(uid in any::<u32>(), gid in any::<u32>(), text in "\\PC*") {
            let line = format!("nobody:x:{uid}:{gid}:nobody:/nonexistent:/usr/sbin/nologin");
            let read = passwd(&line, "nobody").expect("a user");
            prop_assert_eq!((read.uid, read.gid), (uid, gid));
            prop_assert_eq!(passwd(&line, "nobod"), None);
            let _ = passwd(&text, "nobody");
        }
    }
}
