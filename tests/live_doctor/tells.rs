//! To whom it tells: a person, a pipe that is closed, a user without any right.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use support::command::{failure, output};
use support::doctor::Diagnosis;
use support::measure::{own_cgroup, program};
use support::need_bpf;
use tempfile::TempDir;

use super::{diagnosed, doctor};

#[test]
fn a_user_without_any_right_is_told_what_could_not_be_looked_at() {
    if !need_bpf() {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let copy = dir.path().join("sw-bpf");
    fs::copy(program("sw-bpf"), &copy).expect("a copy");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("a directory");
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "--inh-caps=-all",
        ])
        .args(["env", "PATH=/nonexistent"])
        .arg(copy)
        .args(["doctor", "--json"]);
    let diagnosis = Diagnosis::of(&mut command);
    assert_eq!((diagnosis.code, diagnosis.verdict()), (Some(1), "degraded"));
    diagnosis.assert(
        "capabilities",
        "degraded",
        "without CAP_BPF and CAP_PERFMON",
        "setcap",
    );
    diagnosis.assert(
        "programs",
        "unknown",
        "not tried: without CAP_BPF",
        "as for the capabilities",
    );
    diagnosis.assert("events", "unknown", "hooks", "");
    diagnosis.assert("run", "degraded", "denied", "run as root, or");
    diagnosis.assert("btf", "ok", "MiB", "");
    diagnosis.assert("cgroups", "ok", "memory of version", "");
}

#[test]
fn a_person_reads_plain_text_of_80_columns() {
    let output = output(&mut doctor(&[]));
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with("sw-bpf doctor: "), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert!(
        text.bytes()
            .all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte))
    );
    let (_, last) = text.rsplit_once("\n\n").expect("a last line");
    let code = match last.split(':').next() {
        Some("ok") => 0,
        Some("unknown" | "degraded") => 1,
        _ => 2,
    };
    assert_eq!(output.status.code(), Some(code), "{text}");
}

#[test]
fn the_hosts_name_may_be_hostile() {
    if !need_bpf() {
        return;
    }
    let script = "printf '\\033[2J\\001' >/proc/sys/kernel/hostname; PATH=/nonexistent exec \"$0\" doctor";
    let mut command = Command::new("unshare");
    command
        .args(["--uts", "sh", "-e", "-c", script])
        .arg(program("sw-bpf"));
    let output = output(&mut command);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with(r"sw-bpf doctor: \u{1b}[2J"), "{text}");
}

#[test]
fn output_that_cannot_be_written_is_73_and_a_reader_that_has_gone_is_none() {
    let full = fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    let (code, line) = failure(&output(doctor(&[]).stdout(full)));
    assert_eq!(code, Some(73), "{line}");
    assert!(
        line.contains("standard output") && !line.contains("name a file"),
        "{line}"
    );
    let mut child = doctor(&["--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("sw-bpf starts");
    drop(child.stdout.take());
    let status = child.wait().expect("an end");
    assert!([Some(0), Some(1)].contains(&status.code()), "{status}");
}

#[test]
fn a_limit_of_open_files_is_no_fault_of_the_kernel() {
    if !need_bpf() {
        return;
    }
    let diagnosis = diagnosed("ulimit -n 40; doctor");
    diagnosis.assert(
        "programs",
        "degraded",
        "a trial was hindered: too many open files: this process may have 40",
        "",
    );
    assert!(!diagnosis.check("programs").found.contains("no hook"));
    diagnosis.assert("cgroups", "ok", "memory of version", "");
}

#[test]
fn without_proc_nothing_else_is_said_to_be_missing() {
    if !need_bpf() {
        return;
    }
    let diagnosis = diagnosed("umount -l /proc; doctor");
    let mount = "mount -t proc proc /proc";
    diagnosis.assert("capabilities", "ok", "CAP_BPF and CAP_PERFMON", "");
    diagnosis.assert("bpf", "unknown", "/proc is not mounted", mount);
    diagnosis.assert("programs", "degraded", "hindered: /proc is not mounted", "");
    diagnosis.assert("cgroups", "broken", "/proc is not mounted", mount);
    diagnosis.assert("run", "degraded", "/proc is not mounted", "");
}

/// Where its own cgroup cannot be seen, nothing of it is ok.
#[test]
fn in_a_cgroup_namespace_what_works_is_told() {
    if !need_bpf() {
        return;
    }
    // The root would be seen.
    let own = own_cgroup();
    let diagnosis = diagnosed(&format!(
        "echo 0 >'{}/cgroup.procs'; exec unshare --cgroup env PATH=/nonexistent \"$0\" doctor --json",
        own.cgroup().path().display()
    ));
    diagnosis.assert("cgroups", "degraded", "cannot be seen", "--once --cgroup PATH");
    diagnosis.assert("run", "degraded", "cannot be seen here", "");
}

/// There its own id is that of another process.
#[test]
fn in_a_pid_namespace_with_the_hosts_proc_the_programs_are_tried() {
    if !need_bpf() {
        return;
    }
    let outside = Diagnosis::of(&mut doctor(&["--json"]));
    let own = own_cgroup();
    let diagnosis = diagnosed(&format!(
        "echo 0 >'{}/cgroup.procs'; exec unshare --pid --fork env PATH=/nonexistent \"$0\" doctor --json",
        own.cgroup().path().display()
    ));
    assert_eq!(diagnosis.check("programs").found, outside.check("programs").found);
}
