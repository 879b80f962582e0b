//! Programs whose memory and CPU time are known, for tests to compare with what was measured.
//!
//! The doc comment of each subcommand, which is also its `--help`, names the quantity to expect and how far off it may
//! be. Two allowances come up everywhere: the *footprint*, at most 1.5 MiB for the program itself and 0.6 MiB for each
//! further process, and *page tables*, 1/512 of what is mapped in each process. The kernel gives page tables, stacks of
//! threads and other memory of its own back some 10 to 50 ms late, at times after the process is gone.

mod child;
mod clock;
mod cpu;
mod file;
mod hold;
mod kernel;
mod mapping;
mod memory;
mod mixture;
mod process;
mod random;
mod shared;
mod size;
mod space;
mod spikes;
mod storm;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// A program of known memory and CPU time.
#[derive(Parser)]
#[command(name = "workload")]
enum Workload {
    #[command(flatten)]
    Memory(memory::Workload),
    #[command(flatten)]
    Space(space::Workload),
    #[command(flatten)]
    Shared(shared::Workload),
    #[command(flatten)]
    File(file::Workload),
    #[command(flatten)]
    Kernel(kernel::Workload),
    #[command(flatten)]
    Mixture(mixture::Workload),
    #[command(flatten)]
    Spikes(spikes::Workload),
    #[command(flatten)]
    Process(process::Workload),
    #[command(flatten)]
    Cpu(cpu::Workload),
    #[command(flatten)]
    Storm(storm::Workload),
}

fn main() -> ExitCode {
    match run(Workload::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workload: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(workload: Workload) -> Result<()> {
    // Otherwise the host's setting would decide whether heap and stacks grow by 4 KiB or by 2 MiB.
    mapping::allow_huge_pages(false)?;
    match workload {
        Workload::Memory(workload) => workload.run(),
        Workload::Space(workload) => workload.run(),
        Workload::Shared(workload) => workload.run(),
        Workload::File(workload) => workload.run(),
        Workload::Kernel(workload) => workload.run(),
        Workload::Mixture(workload) => workload.run(),
        Workload::Spikes(workload) => workload.run(),
        Workload::Process(workload) => workload.run(),
        Workload::Cpu(workload) => workload.run(),
        Workload::Storm(workload) => workload.run(),
    }
}
