//! Tasks of the sw-bpf workspace: `cargo xtask VERB`. One file a verb.

#![expect(clippy::print_stdout, reason = "the report of a task is its output")]

mod agent_cost;
mod atomics;
mod bless;
mod btf_fixture;
mod build_ebpf;
mod check;
mod command;
mod fuzz;
mod overhead;
mod sacct;
mod sources;
mod tally;
mod test;
mod toolchain;
mod vm;

use std::process::ExitCode;

use clap::Parser;

/// Tasks of the sw-bpf workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Verb {
    BuildEbpf(build_ebpf::Args),
    Test(test::Args),
    Fuzz(fuzz::Args),
    Vm(vm::Args),
    Check(check::Args),
    Overhead(overhead::Args),
    AgentCost(agent_cost::Args),
    Sacct(sacct::Args),
    Bless(bless::Args),
    BtfFixture(btf_fixture::Args),
}

fn main() -> ExitCode {
    let done = match Verb::parse() {
        Verb::BuildEbpf(args) => build_ebpf::run(&args),
        Verb::Test(args) => return test::run(&args),
        Verb::Fuzz(args) => return fuzz::run(&args),
        Verb::Vm(args) => return vm::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Overhead(args) => overhead::run(&args),
        Verb::AgentCost(args) => agent_cost::run(&args),
        Verb::Sacct(args) => sacct::run(&args),
        Verb::Bless(args) => bless::run(&args),
        Verb::BtfFixture(args) => btf_fixture::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
