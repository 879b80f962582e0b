//! What the last line of a record tells.

use std::{fs::File, io};

use serde::Deserialize;

use super::backward::{Backward, Line};
use crate::snapshot::{SCHEMA_VERSION, Snapshot};

/// Lines that are tried.
const TRIES: usize = 64;

/// The last whole line.
#[derive(Debug)]
pub struct Last {
    /// What it tells.
    pub snapshot: Snapshot,
    /// What of the file behind it is left out.
    pub note: Option<String>,
}

/// Why a record tells nothing.
#[derive(Debug, thiserror::Error)]
pub enum Untold {
    /// It has no line.
    #[error("it has no whole line yet")]
    Empty,
    /// It is of a later version of sw-bpf.
    #[error(
        "its last line has schema_version {0}, and {SCHEMA_VERSION} is understood: read it with the version of sw-bpf that wrote it"
    )]
    Newer(u32),
    /// Its lines are something else.
    #[error("none of its last lines is a snapshot: it is no record of sw-bpf, or damaged")]
    NoSnapshot,
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

/// Reads the last line that is a snapshot, of any version up to this one.
pub fn last(file: &File) -> Result<Last, Untold> {
    let mut lines = Backward::begin(file)?;
    let (mut is_torn, mut others) = (false, 0_usize);
    for _ in 0..TRIES {
        match lines.line()? {
            None if others == 0 => return Err(Untold::Empty),
            None | Some(Line::TooLong) => return Err(Untold::NoSnapshot),
            Some(Line::Torn) => is_torn = true,
            Some(Line::Whole(line)) if line.is_empty() => {}
            Some(Line::Whole(line)) => {
                if let Some(snapshot) = snapshot(&line)? {
                    let note = note(is_torn, others);
                    return Ok(Last { snapshot, note });
                }
                others += 1;
            }
        }
    }
    Err(Untold::NoSnapshot)
}

/// The snapshot of a line; `None` where it is none.
fn snapshot(line: &[u8]) -> Result<Option<Snapshot>, Untold> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u32,
    }
    let snapshot = serde_json::from_slice::<Snapshot>(line).ok();
    let version = match &snapshot {
        Some(snapshot) => Some(snapshot.schema_version),
        None => serde_json::from_slice(line)
            .ok()
            .map(|version: Version| version.schema_version),
    };
    match version {
        Some(newer) if newer > SCHEMA_VERSION => Err(Untold::Newer(newer)),
        _ => Ok(snapshot),
    }
}

fn note(is_torn: bool, others: usize) -> Option<String> {
    let torn = is_torn.then(|| "the last line is torn".to_owned());
    let others = (others > 0).then(|| match others {
        1 => "a line is no snapshot".to_owned(),
        _ => format!("{others} lines are no snapshots"),
    });
    let notes: Vec<String> = torn.into_iter().chain(others).collect();
    (!notes.is_empty()).then(|| format!("{}; told is the one before", notes.join(", and ")))
}
