//! Cgroup trees of plain files, for tests of every layout on any machine.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Cgroup, Hierarchies};

/// A host whose hierarchies are plain directories.
pub(crate) struct FakeHost {
    dir: TempDir,
    table: String,
}

impl FakeHost {
    /// A host with no hierarchy.
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a temporary directory"),
            table: String::new(),
        }
    }

    /// One controller in each hierarchy of version 1, mounted under its name.
    pub fn v1() -> Self {
        ["memory", "cpuacct", "cpu", "cpuset", "freezer"]
            .iter()
            .fold(Self::new(), |host, name| host.mount(name, name, "/"))
    }

    /// Version 2 alone.
    pub fn v2() -> Self {
        Self::new().unified("cpuset cpu memory pids")
    }

    /// A hierarchy of version 1 with these options, whose directory `root` is seen at `point`.
    pub fn mount(self, point: &str, options: &str, root: &str) -> Self {
        self.line(point, root, "cgroup", options)
    }

    /// The hierarchy of version 2 with these controllers.
    pub fn unified(self, controllers: &str) -> Self {
        self.file("unified/cgroup.controllers", controllers)
            .line("unified", "/", "cgroup2", "rw")
    }

    fn line(mut self, point: &str, root: &str, kind: &str, options: &str) -> Self {
        let device = self.table.lines().count();
        let at = self.at(point);
        fs::create_dir_all(&at).expect("a mount point");
        let at = at.display();
        writeln!(
            self.table,
            "1 1 0:{device} {root} {at} rw - {kind} x rw,{options}"
        )
        .expect("a string");
        self
    }

    /// A file with this text, and the directories above it.
    pub fn file(self, path: &str, text: &str) -> Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
        self
    }

    /// A directory.
    pub fn dir(self, path: &str) -> Self {
        fs::create_dir_all(self.at(path)).expect("directories");
        self
    }

    /// Where `path` of this host is.
    pub fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.dir.path()).expect("the temporary directory")
    }

    /// Its hierarchies.
    pub fn hierarchies(&self) -> Hierarchies {
        Hierarchies::parse(self.table.as_bytes()).expect("hierarchies")
    }

    /// The cgroup at `path`.
    pub fn cgroup(&self, path: &str) -> Cgroup {
        self.hierarchies().cgroup_at(Path::new(path)).expect("a cgroup")
    }
}
