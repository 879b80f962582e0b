//! On what it was measured.

use std::fs;

/// One line: processor, kernel, and how idle it was.
#[must_use]
pub fn describe() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let uname = rustix::system::uname();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{}, {cpus} CPUs{}; Linux {} on {}; load average at the start {}",
        field(&cpuinfo, "model name").unwrap_or("processor of an unknown model"),
        if is_virtual(&cpuinfo) {
            " of a virtual machine"
        } else {
            ""
        },
        version(&uname.release().to_string_lossy()),
        uname.machine().to_string_lossy(),
        load.split(' ').next().unwrap_or("unknown"),
    )
}

/// The kernel: its version, and whose it is where it says so.
#[must_use]
pub fn kernel() -> String {
    let uname = rustix::system::uname();
    kernel_of(
        &uname.release().to_string_lossy(),
        &uname.version().to_string_lossy(),
    )
}

/// Debian's releases name an interface of modules, and the version stands beside it: `#1 SMP Debian 6.1.192-3 (date)`.
fn kernel_of(release: &str, version_told: &str) -> String {
    let debian = version_told.split_once(" Debian ").map(|(_, told)| version(told));
    debian.map_or_else(|| version(release).to_owned(), |told| format!("{told} of Debian"))
}

/// Without what names a build.
fn version(release: &str) -> &str {
    release.split('-').next().unwrap_or(release)
}

fn is_virtual(cpuinfo: &str) -> bool {
    field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
}

/// The value of `key : value`, of the first processor.
pub(crate) fn field<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    fields
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUINFO: &str = "processor\t: 0\nmodel name\t: A CPU: 2 GHz\nflags\t\t: fpu hypervisor vme\n";

    #[test]
    fn cpuinfo_is_read_as_the_kernel_writes_it() {
        assert_eq!(field(CPUINFO, "model name"), Some("A CPU: 2 GHz"));
        assert!(is_virtual(CPUINFO));
        assert!(!is_virtual(""));
        assert_eq!(version("6.12.9-amd64"), "6.12.9");
        let debian = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-3 (2026-11-26)";
        assert_eq!(kernel_of("6.1.0-57-cloud-amd64", debian), "6.1.192 of Debian");
        assert_eq!(kernel_of("6.18.44-fc", "#1 SMP @0"), "6.18.44");
    }
}
