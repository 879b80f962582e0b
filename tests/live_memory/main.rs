//! The needed peak against programs of known memory: for each, what it must be at least and may be at most.
//!
//! `workload --help` says what each program holds. What it says of its own footprint and page tables is the whole of the
//! allowance, so a bound here is that of the program, not one of the measurement: `run` counts every page.

mod attach;
mod cache;
mod cgroups;
mod composition;
mod files;
mod hugetlb;
mod kernel;
mod limit;
mod private;
mod processes;
mod sampled;
mod shared;
mod truth;
