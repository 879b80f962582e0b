//! What the next agent needs to go on: a file for each job, on a file system that is new with each start of the host.

use std::{
    collections::BTreeMap,
    fs,
    io::{ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{error::Error, job::kernfile, record::FileId, verb::meter::Saved};

/// Longest file: a job of many steps has some hundred kilobytes.
const MAX_BYTES: u64 = 64 << 20;

/// One job as an agent leaves it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Left<What> {
    /// Where its lines go.
    pub lines: Lines,
    /// What it is.
    pub what: What,
}

/// Whose record a line belongs to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Lines {
    /// Id of the job.
    pub job: String,
    /// Name that the file of its record had when it was last opened, where it could be made.
    pub record: Option<String>,
    /// Which file that is.
    pub file: Option<FileId>,
    /// Whether another run of the job has begun since.
    #[serde(default)]
    pub is_earlier: bool,
    /// Whose job it is, by the kernel's word, where that is known.
    #[serde(default)]
    pub uid: Option<u32>,
    /// Who may read it besides root.
    pub reader: Option<u32>,
}

/// What is written of a job.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Leaving<'a> {
    /// The measurement.
    Running(&'a RawValue),
    /// The summary, which its record does not have yet.
    Ended(&'a RawValue),
}

/// The same, as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// The measurement.
    Running(Box<Saved>),
    /// The summary, which its record does not have yet.
    Ended(Box<RawValue>),
}

/// The directory of the files.
pub struct States {
    dir: PathBuf,
}

impl States {
    /// Opens it, and makes it where it is not there.
    pub fn open(dir: PathBuf) -> Result<Self, Error> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.with_context(|| format!("make {}", dir.display()))?;
        Ok(Self { dir })
    }

    /// The same, refused where `records` is this directory too: neither of the two has anything of the other in it.
    pub fn apart_from(self, records: &Path) -> Result<Self, Error> {
        let id = |dir: &Path| {
            let found = fs::metadata(dir).with_context(|| format!("look at {}", dir.display()))?;
            anyhow::Ok((found.dev(), found.ino()))
        };
        if id(&self.dir)? != id(records)? {
            return Ok(self);
        }
        Err(anyhow!(
            "{} is where the agent keeps what the next one needs: name another directory for --records, or for --socket",
            records.display()
        )
        .into())
    }

    /// Keeps one in place of what was kept of it before: whole or not at all.
    pub fn keep(&self, cgroup_id: u64, lines: &Lines, what: Leaving<'_>) -> Result<(), Error> {
        let left = Left {
            lines: lines.clone(),
            what,
        };
        let text = serde_json::to_vec(&left).context("save a measurement")?;
        let new = self.dir.join("new");
        let write = || {
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            options.open(&new)?.write_all(&text)?;
            fs::rename(&new, self.path(cgroup_id))
        };
        write().map_err(|source| Error::Output {
            path: self.path(cgroup_id),
            source,
        })
    }

    /// Forgets one.
    pub fn forget(&self, cgroup_id: u64) {
        // One that cannot be removed is of no job when the next agent looks, and is removed then.
        let _ = fs::remove_file(self.path(cgroup_id));
    }

    /// All that were left, by the ids of their cgroups; what cannot be read is told in its place.
    pub fn all(&self) -> Result<BTreeMap<u64, Result<Left<Known>, Error>>, Error> {
        let entries = fs::read_dir(&self.dir).with_context(|| format!("list {}", self.dir.display()))?;
        let mut all = BTreeMap::new();
        for entry in entries.map_while(Result::ok) {
            let path = entry.path();
            let id = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            if let Some(id) = id {
                all.insert(id, read(&path));
            }
        }
        Ok(all)
    }

    fn path(&self, cgroup_id: u64) -> PathBuf {
        self.dir.join(format!("{cgroup_id}.json"))
    }
}

fn read(path: &Path) -> Result<Left<Known>, Error> {
    let text = match kernfile::read_up_to(path, MAX_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(anyhow!("it is gone").into()),
        Err(error) => return Err(anyhow!(error).context(format!("read {}", path.display())).into()),
    };
    Ok(parse(&text).with_context(|| format!("{} is of another version", path.display()))?)
}

/// Reads what was kept of one.
pub fn parse(text: &[u8]) -> serde_json::Result<Left<Known>> {
    serde_json::from_slice(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_the_records_is_another_by_whatever_name() {
        let temp = tempfile::tempdir().expect("a directory");
        let open = || States::open(temp.path().join("state")).expect("made");
        drop(open());
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(temp.path().join("state"), &link).expect("linked");
        for same in [temp.path().join("state"), link] {
            let Err(error) = open().apart_from(&same) else {
                panic!("taken")
            };
            let told = error.to_string();
            assert!(told.contains("--records"), "{told}");
        }
        assert!(open().apart_from(temp.path()).is_ok());
    }
}
