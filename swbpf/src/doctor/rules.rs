//! From facts to what they mean: pure, one function a check.

mod cgroups;
mod host;
mod kernel;
mod slurm;

use super::diagnosis::Check;
use super::facts::Facts;

/// Words for numbers that come from files of the kernel instead.
const SAMPLED: &str =
    "numbers are sampled from the kernel's files: what happens between two looks is not seen";

/// All checks, in the order in which they are told.
pub fn checks(facts: &Facts) -> Vec<Check> {
    let Facts {
        machine,
        bpf,
        programs,
        cgroups,
        run,
        slurm,
        gpus,
        agent,
    } = facts;
    vec![
        kernel::kernel(machine),
        kernel::btf(bpf),
        kernel::bpf(bpf, &programs.trial),
        kernel::capabilities(bpf),
        kernel::lockdown(bpf, &programs.trial),
        kernel::programs(programs),
        kernel::events(programs),
        cgroups::cgroups(cgroups),
        cgroups::run(run),
        cgroups::jobs(cgroups),
        slurm::slurm(slurm, cgroups),
        host::gpus(gpus),
        host::bpffs(bpf),
        host::agent(agent),
        host::preemption(machine),
        host::cpus(machine),
        host::pages(machine),
        host::clock(machine),
    ]
}

#[cfg(test)]
pub mod tests;
