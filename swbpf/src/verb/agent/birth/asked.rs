//! The cgroups that `--watch` names, which may come and go.

use std::{
    fmt, fs,
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::anyhow;

use crate::{
    error::Error,
    job::cgroup::{Cgroup, CgroupError, Hierarchies, subdirectories},
    verb::agent::note,
};

/// A cgroup that was asked for.
#[derive(Debug)]
pub(super) struct Asked {
    /// As it was asked for.
    path: PathBuf,
    /// Where it was last found.
    pub dir: PathBuf,
    /// Its id when it was last there.
    pub id: Option<u64>,
    is_there: bool,
    /// Whether it was told that it is waited for, and not yet that it is there.
    is_missed: bool,
    /// Whether it was told that it holds processes itself and nothing below it.
    is_told_leaf: bool,
}

impl Asked {
    /// One that is not there is waited for where one can be made.
    pub fn of(hierarchies: &Hierarchies, path: &Path) -> Result<Self, Error> {
        let mut asked = Self {
            path: path.to_owned(),
            dir: path.to_owned(),
            id: None,
            is_there: false,
            is_missed: false,
            is_told_leaf: false,
        };
        match hierarchies.cgroup_at(path) {
            Ok(cgroup) => asked.found(&cgroup),
            Err(CgroupError::Gone { .. }) if is_below_a_cgroup(hierarchies, path) => asked.tell_absence(),
            Err(error) => return Err(error.into()),
        }
        Ok(asked)
    }

    fn found(&mut self, cgroup: &Cgroup) {
        cgroup.path().clone_into(&mut self.dir);
        self.id = Some(cgroup.id());
        self.is_there = true;
        self.is_told_leaf = false;
    }

    /// Looks whether it is there; whether that, or which one it is, has changed.
    pub fn see(&mut self, hierarchies: &Hierarchies) -> bool {
        let there = fs::metadata(&self.dir).ok().map(|there| there.ino());
        if self.is_there && there == self.id {
            return false;
        }
        match hierarchies.cgroup_at(&self.path) {
            Ok(cgroup) => {
                self.found(&cgroup);
                true
            }
            Err(_) if self.is_there => {
                self.is_there = false;
                self.tell_absence();
                true
            }
            Err(_) => false,
        }
    }

    /// What is made in it has a slot from now on: tells where it has come, and where it is one that a job runs in itself.
    pub fn is_watched(&mut self) {
        if !self.is_there {
            return;
        }
        if std::mem::take(&mut self.is_missed) {
            note(&format!(
                "the cgroup {} is there: what is made in it is recorded",
                self.path.display()
            ));
        }
        if !self.is_told_leaf && is_leaf_with_processes(&self.dir) {
            self.is_told_leaf = true;
            note(&format!(
                "processes run in {} itself, which are not recorded: only the cgroups right below it are; to have it recorded, \
                 name the one above it for --watch",
                self.path.display()
            ));
        }
    }

    fn tell_absence(&mut self) {
        self.is_missed = true;
        note(&format!(
            "there is no cgroup {}: it is waited for, and what is made in it is recorded then; is its name right?",
            self.path.display()
        ));
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_there {
            write!(f, ", and for each cgroup right below {}", self.dir.display())
        } else {
            write!(
                f,
                ", and for each right below {} once there is one",
                self.path.display()
            )
        }
    }
}

/// Refuses a watched cgroup below another: what is made in it is counted to the target of the upper one that it lies in.
pub(super) fn refuse_nested(dirs: &[&Path]) -> Result<(), Error> {
    for below in dirs {
        let above = { dirs.iter() }.find(|above| below != *above && below.starts_with(above));
        if let Some(above) = above {
            return Err(anyhow!(
                "--watch {} lies below --watch {}, and a cgroup cannot be both recorded and watched: name one of them",
                below.display(),
                above.display()
            )
            .into());
        }
    }
    Ok(())
}

/// Whether a cgroup can be made at a path where there is none.
fn is_below_a_cgroup(hierarchies: &Hierarchies, path: &Path) -> bool {
    let mut above = path.ancestors().skip(1);
    let nearest = above.find(|above| above.exists());
    nearest.is_some_and(|nearest| hierarchies.cgroup_at(nearest).is_ok())
}

/// Whether processes are in a cgroup that has none below it. One that has some is not read: its processes may be very many.
fn is_leaf_with_processes(dir: &Path) -> bool {
    let is_leaf = subdirectories(dir).is_ok_and(|mut below| below.next().is_none());
    let has_processes = || {
        let procs = fs::File::open(dir.join("cgroup.procs"));
        procs.is_ok_and(|mut procs| matches!(procs.read(&mut [0]), Ok(1)))
    };
    is_leaf && has_processes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watched_cgroup_below_another_is_refused() {
        let [above, below, beside] = ["/c/w", "/c/w/a/in", "/c/win"].map(Path::new);
        for dirs in [[above, below], [below, above]] {
            let refusal = refuse_nested(&dirs).expect_err("refused").to_string();
            assert!(
                refusal.contains("/c/w/a/in lies below --watch /c/w,"),
                "{refusal}"
            );
        }
        assert!(refuse_nested(&[above, beside, above]).is_ok());
    }

    #[test]
    fn a_cgroup_that_holds_processes_and_none_below_it_is_told_from_others() {
        let temp = tempfile::tempdir().expect("a directory");
        let procs = temp.path().join("cgroup.procs");
        assert!(!is_leaf_with_processes(temp.path()), "no such file");
        fs::write(&procs, "").expect("written");
        assert!(!is_leaf_with_processes(temp.path()), "no process");
        fs::write(&procs, "17\n").expect("written");
        assert!(is_leaf_with_processes(temp.path()));
        fs::create_dir(temp.path().join("job")).expect("made");
        assert!(!is_leaf_with_processes(temp.path()), "a cgroup below it");
    }
}
