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
    }
}
