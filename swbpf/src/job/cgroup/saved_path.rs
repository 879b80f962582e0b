//! A path as the next agent reads it: names of cgroups need not be UTF-8, and then it is its bytes.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Saved {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&Path> for Saved {
    fn from(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }
}

impl From<Saved> for PathBuf {
    fn from(saved: Saved) -> Self {
        match saved {
            Saved::Text(text) => text.into(),
            Saved::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
}

/// Writes it, as text where it is that.
pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    Saved::from(path).serialize(to)
}

/// Reads either form.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    Saved::deserialize(from).map(PathBuf::from)
}

/// The same of a path that may be missing.
pub mod optional {
    use super::{Deserialize, Deserializer, PathBuf, Saved, Serialize, Serializer};

    /// Writes it, or nothing.
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        path.as_deref().map(Saved::from).serialize(to)
    }

    /// Reads what was written.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Saved>::deserialize(from)?.map(PathBuf::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Two {
        #[serde(with = "super")]
        path: PathBuf,
        #[serde(with = "super::optional")]
        other: Option<PathBuf>,
    }

    #[test]
    fn any_name_of_a_cgroup_is_read_as_it_was_written() {
        for name in [&b"/sys/a"[..], b"/sys/bad\xff\xfe", b"", b"[1]"] {
            let path = PathBuf::from(OsString::from_vec(name.to_vec()));
            for other in [None, Some(path.clone())] {
                let two = Two {
                    path: path.clone(),
                    other,
                };
                let text = serde_json::to_string(&two).expect("written");
                assert_eq!(serde_json::from_str::<Two>(&text).expect("read"), two, "{text}");
            }
        }
    }
}
