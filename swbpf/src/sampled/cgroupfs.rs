//! What the files of a cgroup say of its memory, its limits and its CPU time.

mod cpu;
mod files;
mod limit;
mod memory;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeMap};

pub use cpu::CpuFiles;
pub use limit::{EffectiveLimit, LimitLevel, effective_limit, limit_levels};
pub use memory::MemoryFiles;

/// For each field that is not known, by its name, the reason.
pub type Unknown = BTreeMap<Cow<'static, str>, String>;
