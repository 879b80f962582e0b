//! How long this machine may take. Limits of time are there so that what hangs ends; they are written for a machine of today.

use std::fs;
use std::io::{self, Write as _};
use std::sync::LazyLock;
use std::time::Duration;

use crate::machine::field;

/// How QEMU names the processor that it emulates.
const EMULATED: &str = "QEMU TCG CPU";

/// An emulated processor takes some ten times as long.
const SLOWER: u32 = 10;

static FACTOR: LazyLock<u32> =
    LazyLock::new(|| factor_of(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()));

/// `limit`, as much longer as this machine may be slower.
#[must_use]
pub fn scaled(limit: Duration) -> Duration {
    limit * factor()
}

/// How many times as long as on a machine of today things may take here: 1 where nothing is emulated.
#[must_use]
pub fn factor() -> u32 {
    *FACTOR
}

/// How often something is done of which `all` times are many: on a machine that is slower, as many times less as it may be slower.
/// That is told beside the report of the tests.
#[must_use]
pub fn fewer(what: &str, all: u64) -> u64 {
    let times = all / u64::from(factor());
    if times != all {
        // Not `eprintln!`, which libtest keeps to itself.
        let _ = writeln!(
            io::stderr(),
            "{times} {what} here, not {all}: this machine is slow"
        );
    }
    times
}

fn factor_of(cpuinfo: &str) -> u32 {
    let is_emulated = field(cpuinfo, "model name").is_some_and(|name| name.starts_with(EMULATED));
    if is_emulated { SLOWER } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_processor_is_known_by_its_name() {
        assert_eq!(factor_of("model name\t: QEMU TCG CPU version 2.5+\n"), SLOWER);
        assert_eq!(factor_of("model name\t: AMD EPYC\nflags\t\t: hypervisor\n"), 1);
        assert_eq!(factor_of(""), 1);
    }
}
