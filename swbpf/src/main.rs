//! The command line `sw-bpf`.

use std::process::ExitCode;

use swbpf::{cli, verb};

fn main() -> ExitCode {
    let done = cli::parse(std::env::args_os()).and_then(|invocation| verb::perform(&invocation));
    done.unwrap_or_else(|error| {
        error.report();
        ExitCode::from(error.exit_code())
    })
}
