//! Tasks of the sw-bpf workspace: `cargo xtask VERB`. One file a verb.

#![expect(clippy::print_stdout, reason = "the report of a task is its output")]

mod build_ebpf;
mod command;
mod sources;
mod toolchain;

use std::process::ExitCode;

use clap::Parser;

/// Tasks of the sw-bpf workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Verb {
    BuildEbpf(build_ebpf::Args),
}

fn main() -> ExitCode {
    let done = match Verb::parse() {
        Verb::BuildEbpf(args) => build_ebpf::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
