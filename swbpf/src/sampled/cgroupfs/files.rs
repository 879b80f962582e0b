//! The files of one cgroup directory, with the reason for each number that they do not give.

use std::collections::HashMap;
use std::path::Path;

use super::Unknown;
use crate::job::kernfile;

/// Reads files of one directory and keeps the reason of whatever is not there.
pub(super) struct Files<'a> {
    dir: &'a Path,
    pub unknown: Unknown,
}

/// A file of lines `key number`, or why it could not be read.
pub(super) struct Keyed {
    name: &'static str,
    text: Result<HashMap<String, u64>, String>,
}

impl Keyed {
    /// The number of `key`.
    pub fn get(&self, key: &str) -> Result<u64, String> {
        let values = self.text.as_ref().map_err(Clone::clone)?;
        values
            .get(key)
            .copied()
            .ok_or_else(|| format!("{} has no {key}", self.name))
    }
}

impl<'a> Files<'a> {
    pub fn new(dir: &'a Path) -> Self {
        Self {
            dir,
            unknown: Unknown::new(),
        }
    }

    pub fn keyed(&self, name: &'static str) -> Keyed {
        let text = self.text(name).map(|text| {
            kernfile::keyed(&text)
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v))
                .collect()
        });
        Keyed { name, text }
    }

    pub fn number(&self, name: &str) -> Result<u64, String> {
        kernfile::number(&self.text(name)?).ok_or_else(|| format!("{name} holds no number"))
    }

    pub fn text(&self, name: &str) -> Result<String, String> {
        // The error of the kernel does not name the file.
        kernfile::read_text(&self.dir.join(name)).map_err(|e| format!("{name}: {e}"))
    }

    /// The value of `field`, or `None` with the reason kept.
    pub fn keep<T>(&mut self, field: &'static str, value: Result<T, String>) -> Option<T> {
        value
            .map_err(|reason| self.unknown.insert(field.into(), reason))
            .ok()
    }
}
