//! What the exit codes mean, as `--help` tells it.

use crate::error::{EXIT_CODES, EXIT_CODES_OF_DOCTOR, EXIT_CODES_OF_RUN};

/// The end of `--help`.
pub fn exit_codes() -> String {
    let codes = EXIT_CODES
        .iter()
        .map(|(code, meaning)| format!("{code:>5}  {meaning}"));
    let codes: Vec<_> = codes.collect();
    format!(
        "Exit codes:\n{}\n\n{EXIT_CODES_OF_RUN}\n\n{EXIT_CODES_OF_DOCTOR}",
        codes.join("\n")
    )
}
