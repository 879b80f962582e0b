//! One snapshot is one JSON object on one line.

use anyhow::Context;
use serde::Serialize;

use crate::error::Error;

/// `answer`, a snapshot or those of all nodes, on one line, its end among it.
pub fn line(answer: &impl Serialize) -> Result<String, Error> {
    let mut line = serde_json::to_string(answer).context("cannot write the answer as JSON")?;
    line.push('\n');
    Ok(line)
}
