//! Tasks of the sw-bpf workspace: `cargo xtask VERB`. One file a verb.

#![expect(clippy::print_stdout, reason = "the report of a task is its output")]

mod atomics;
mod bless;
mod btf_fixture;
mod build_ebpf;
mod check;
mod command;
mod fuzz;
mod measure;
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
    /// Measure what the kernel programs cost, for docs/overhead.md (as root)
    Overhead(measure::Args),
    /// Measure what the agent costs by the number of jobs, for docs/agent.md (as root)
    AgentCost(measure::Args),
    /// Measure what Slurm's accounting misses, for docs/sacct.md (as root)
    Sacct(measure::Args),
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
        Verb::Overhead(args) => measure::run("overhead", &args),
        Verb::AgentCost(args) => measure::run("agent_cost", &args),
        Verb::Sacct(args) => measure::run("sacct_table", &args),
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
