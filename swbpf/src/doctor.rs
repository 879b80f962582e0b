//! Why are the numbers here as they are: `sw-bpf doctor`, a straight line from facts over rules to what is told.

pub mod diagnosis;
pub mod facts;
mod gather;
mod rules;
mod text;

use std::{path::Path, process::ExitCode};

use jiff::Timestamp;
use schemars::Schema;

use crate::{
    cli::{self, ForcedSource},
    error::Error,
    out::{self, json, schema::schema_of},
};
use diagnosis::{Diagnosis, DiagnosisKind, SCHEMA_VERSION, Verdict};
use facts::Facts;

/// Looks at this host, and for its agent at `socket`, and says what it found; the exit code is that of the worst verdict.
pub async fn doctor(
    asked: &cli::Doctor,
    socket: &Path,
    force: Option<ForcedSource>,
) -> Result<ExitCode, Error> {
    let diagnosis = diagnose(&gather::facts(socket, force).await, Timestamp::now());
    let answer = if asked.json {
        json::line(&diagnosis)?
    } else {
        text::text(&diagnosis)
    };
    // A reader that has gone is success.
    let _ = out::tell(&answer)?;
    Ok(ExitCode::from(diagnosis.verdict.exit_code()))
}

/// What `facts` mean for the numbers.
pub fn diagnose(facts: &Facts, moment: Timestamp) -> Diagnosis {
    let checks = rules::checks(facts);
    Diagnosis {
        schema_version: SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        kind: DiagnosisKind::Doctor,
        timestamp: format!("{moment:.3}"),
        hostname: facts.machine.hostname.clone(),
        verdict: checks
            .iter()
            .map(|check| check.verdict)
            .max()
            .unwrap_or(Verdict::Unknown),
        checks,
    }
}

/// JSON Schema (draft 2020-12) of what `--json` prints.
pub fn json_schema() -> Schema {
    schema_of::<Diagnosis>()
}

#[cfg(test)]
mod tests;
