//! Names that nobody would give in good faith.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use support::command::{answer, failure, output, sw_bpf};
use support::measure::{Process, own_cgroup, program};
use support::need_bpf;
use tempfile::TempDir;

/// Clears a screen, turns its text around, is no UTF-8. The kernel takes no line ends in names of cgroups.
const NAME: &[u8] = b"\x1b[2J\r\t\xff\xe2\x80\xae\x7f";

fn is_plain(text: &[u8]) -> bool {
    text.iter()
        .all(|byte| *byte == b'\n' || (b' '..=b'~').contains(byte))
}

#[test]
fn a_cgroup_with_a_hostile_name_is_a_cgroup() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let path = own.cgroup().path().join(OsStr::from_bytes(NAME));
    fs::create_dir(&path).expect("a cgroup");
    // A program named likewise runs in it.
    let dir = TempDir::new().expect("a directory");
    let copy = dir.path().join(OsStr::from_bytes(NAME));
    fs::copy(program("workload"), &copy).expect("a copy");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).expect("a copy");
    let procs = path.join("cgroup.procs");
    let mut command = Command::new(copy);
    command.args(["hold", "--size", "20M"]);
    // SAFETY: the parent has one thread that allocates, and it waits for the exec.
    unsafe { command.pre_exec(move || fs::write(&procs, "0")) };
    let mut process = Process::start(&mut command);
    process.ready();
    let pid = process.id().to_string();
    for target in [
        [OsStr::new("--cgroup"), path.as_os_str()],
        ["--pid", &pid].map(OsStr::new),
    ] {
        let mut once = sw_bpf(&["--once", "--json", "--window", "100ms"]);
        let answer = answer(&output(once.args(target)));
        assert_eq!(answer["target"]["cgroup"], path.to_string_lossy().as_ref());
        assert_eq!(answer["memory"]["peak"]["top_processes"][0]["pid"], process.id());
        let mut once = sw_bpf(&["--once", "--window", "100ms"]);
        let output = output(once.args(target));
        assert!(
            output.status.success() && is_plain(&output.stdout),
            "{:?}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
    assert!(process.finish().0.success());
}

#[test]
fn a_hostile_path_is_told_on_one_plain_line() {
    for name in [
        NAME,
        b"a\nb",
        b"'\"\\$(true)`",
        &[b'x'; 5000],
        b"/sys/fs/cgroup/\n\x1b[31m",
    ] {
        for verb in [&["attach"][..], &["--once", "--json"]] {
            let mut command = sw_bpf(verb);
            let output = output(command.arg("--cgroup").arg(OsStr::from_bytes(name)));
            let (code, line) = failure(&output);
            assert!([Some(66), Some(1)].contains(&code), "{line}");
            assert!(is_plain(line.as_bytes()), "{line:?}");
        }
    }
}
