//! `/proc/PID/cgroup`: in which cgroup of each hierarchy a process is.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{CgroupError, Controller, Version, kernfile};

/// One line: a process's cgroup in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    pub version: Version,
    pub controllers: Vec<Controller>,
    /// The path within the hierarchy, as seen from the reader's cgroup namespace.
    pub inside: PathBuf,
}

/// The memberships of a process, `self` being the caller.
pub(super) fn of_process(process: &str) -> std::io::Result<Vec<Membership>> {
    kernfile::read(&Path::new("/proc").join(process).join("cgroup")).map(|bytes| parse(&bytes))
}

/// The memberships of the caller: not by its id, since `/proc` can be that of another pid namespace.
pub(super) fn own() -> Result<Vec<Membership>, CgroupError> {
    of_process("self").map_err(|e| CgroupError::of_proc(Path::new("/proc/self/cgroup"), e))
}

/// The memberships of a live process.
///
/// One that has exited and was not yet waited for says `/` on version 1: that is where it is not.
pub(super) fn of_pid(pid: u32) -> Result<Vec<Membership>, CgroupError> {
    let stat = PathBuf::from(format!("/proc/{pid}/stat"));
    let read = of_process(&pid.to_string()).and_then(|all| Ok((all, kernfile::read_text(&stat)?)));
    match read {
        Ok((all, stat)) if is_alive(&stat) => Ok(all),
        Ok(_) => Err(CgroupError::NoProcess { pid }),
        Err(e) if kernfile::is_gone(&e) => Err(CgroupError::NoProcess { pid }),
        Err(e) => Err(CgroupError::from_io("read", &stat.with_file_name("cgroup"), e)),
    }
}

fn is_alive(stat: &str) -> bool {
    let state = kernfile::stat_fields(stat).and_then(|mut fields| fields.next());
    !matches!(state, Some("Z" | "X" | "x"))
}

/// Lines `ID:CONTROLLERS:PATH`; on version 2 the id is 0 and the controllers are empty. Odd lines are left out.
pub fn parse(bytes: &[u8]) -> Vec<Membership> {
    bytes
        .split(|&byte| byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

fn parse_line(line: &[u8]) -> Option<Membership> {
    let mut fields = line.splitn(3, |&byte| byte == b':');
    let (id, names, path) = (fields.next()?, fields.next()?, fields.next()?);
    let version = if id == b"0" && names.is_empty() {
        Version::V2
    } else {
        Version::V1
    };
    let controllers = names
        .split(|&byte| byte == b',')
        .filter_map(Controller::by_name)
        .collect();
    let inside = PathBuf::from(OsStr::from_bytes(path));
    inside.is_absolute().then_some(Membership {
        version,
        controllers,
        inside,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_versions_are_understood() {
        let all = parse(b"9:name=systemd:/init\n4:cpu,cpuacct:/a:b\n0::/user.slice (deleted)\n");
        assert_eq!(all[0].controllers, []);
        assert_eq!(all[1].controllers, [Controller::Cpu, Controller::Cpuacct]);
        assert_eq!(all[1].inside, Path::new("/a:b"));
        assert_eq!(
            (all[2].version, all[2].inside.as_path()),
            (Version::V2, Path::new("/user.slice (deleted)"))
        );
    }

    #[test]
    fn odd_lines_are_left_out() {
        assert_eq!(parse(b"\n::\n1:memory\n1:memory:relative\n"), []);
    }

    #[test]
    fn a_process_that_has_exited_is_not_alive() {
        assert!(is_alive("1 (sh) S 0"));
        assert!(!is_alive("1 (Z) S) Z 0"));
    }

    #[test]
    fn a_process_that_is_none_is_told() {
        let error = of_pid(u32::MAX).expect_err("no such process");
        assert!(
            matches!(error, CgroupError::NoProcess { pid: u32::MAX }),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            parse(&bytes);
        }
    }
}
