//! Each cause, forced.

use std::fs;
use std::path::Path;

use support::command::{answer, failure, output, sw_bpf, told};
use support::measure::own_cgroup;
use support::need_bpf;
use tempfile::TempDir;

use super::{fails, falls_back, in_other_mounts};

#[test]
fn a_command_that_is_not_found_is_127() {
    if !need_bpf() {
        return;
    }
    for command in ["sw-bpf-no-such-command", "/nonexistent/command", "./nonexistent"] {
        let (code, line) = fails(&["run", "--", command]);
        assert_eq!(code, Some(127), "{line}");
        assert!(line.contains(command) && line.contains("PATH"), "{line}");
    }
}

#[test]
fn a_command_that_cannot_be_executed_is_126() {
    if !need_bpf() {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let plain = dir.path().join("plain");
    fs::write(&plain, "#!/bin/sh\n").expect("a file");
    for path in [dir.path(), &plain] {
        let (code, line) = fails(&["run", "--", path.to_str().expect("text")]);
        assert_eq!(code, Some(126), "{line}");
        assert!(line.contains("cannot be executed"), "{line}");
    }
}

#[test]
fn a_cgroup_that_is_gone_is_66() {
    if !need_bpf() {
        return;
    }
    let mut own = own_cgroup();
    let path = own.cgroup().path().to_str().expect("text").to_owned();
    own.remove().expect("an empty cgroup");
    for verb in [&["attach"][..], &["--once", "--json"]] {
        let (code, line) = fails(&[verb, &["--cgroup", &path]].concat());
        assert_eq!(code, Some(66), "{line}");
        assert!(line.contains(&path) && line.contains("does not exist"), "{line}");
    }
}

#[test]
fn what_is_not_a_cgroup_is_66() {
    for path in ["/tmp", "/proc/self", "/etc/passwd", "/sys/fs/cgroup/../.."] {
        let (code, line) = fails(&["--once", "--cgroup", path]);
        assert_eq!(code, Some(66), "{line}");
    }
}

#[test]
fn a_process_that_is_not_there_is_67() {
    let (code, line) = fails(&["--once", "--pid", "2147483647"]);
    assert_eq!(code, Some(67), "{line}");
}

#[test]
fn output_that_cannot_be_written_is_73() {
    if !need_bpf() {
        return;
    }
    let script = "exec \"$0\" \"$@\" >/dev/full";
    for arguments in [
        &["--once", "--window", "50ms"][..],
        &["--once", "--json", "--window", "50ms"],
    ] {
        let (code, line) = failure(&output(&mut in_other_mounts(script, arguments)));
        assert_eq!(code, Some(73), "{line}");
        assert!(line.contains("standard output"), "{line}");
    }
}

#[test]
fn a_kernel_without_btf_is_70() {
    if !need_bpf() {
        return;
    }
    let hidden = "mount -t tmpfs none /sys/kernel/btf; exec \"$0\" \"$@\"";
    falls_back(|arguments| in_other_mounts(hidden, arguments), 70, "no BTF");
}

#[test]
fn a_kernel_without_the_hooks_is_71() {
    if !need_bpf() {
        return;
    }
    // A header, and a table of strings with the empty one in it: no types at all.
    let script = "mount -t tmpfs none /sys/kernel/btf; \
         printf '\\237\\353\\001\\000\\030\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\001\\000\\000\\000\\000' \
             >/sys/kernel/btf/vmlinux; \
         exec \"$0\" \"$@\"";
    falls_back(|arguments| in_other_mounts(script, arguments), 71, "has no hook");
}

#[test]
fn garbage_in_place_of_btf_is_told() {
    if !need_bpf() {
        return;
    }
    let script = "mount -t tmpfs none /sys/kernel/btf; head -c 100000 /dev/urandom >/sys/kernel/btf/vmlinux; \
                  exec \"$0\" \"$@\"";
    falls_back(
        |arguments| in_other_mounts(script, arguments),
        70,
        "(100000 bytes)",
    );
    let script = "mount --bind /dev/null /sys/kernel/btf/vmlinux; exec \"$0\" \"$@\"";
    falls_back(|arguments| in_other_mounts(script, arguments), 70, "(0 bytes)");
}

/// Each of them can be asked for; where it cannot be used, nothing is said of the others.
#[test]
fn a_rung_that_cannot_be_used_is_71() {
    if !need_bpf() {
        return;
    }
    for (source, rung) in [
        ("tracepoint", "btf_tracepoint"),
        ("fentry", "fentry"),
        ("kprobe", "kprobe"),
    ] {
        let output = output(&mut sw_bpf(&[
            "--force-source",
            source,
            "--once",
            "--json",
            "--window",
            "50ms",
        ]));
        if output.status.success() {
            assert_eq!(answer(&output)["probes"]["rung"], rung);
            continue;
        }
        let (code, line) = failure(&output);
        assert_eq!(code, Some(71), "{line}");
        let begin = format!("sw-bpf: {rung} was asked for and cannot be used here: ");
        assert!(
            line.starts_with(&begin) && !line.contains("another was"),
            "{line}"
        );
        let has_kprobes = Path::new("/sys/bus/event_source/devices/kprobe").exists();
        assert_eq!(
            line.contains("CONFIG_KPROBES"),
            rung == "kprobe" && !has_kprobes,
            "{line}"
        );
    }
}

#[test]
fn where_no_cgroup_can_be_made_it_is_77() {
    if !need_bpf() {
        return;
    }
    let script = "for dir in /sys/fs/cgroup /sys/fs/cgroup/*; do mountpoint -q $dir && mount -o remount,bind,ro $dir; done; \
                  exec \"$0\" \"$@\"";
    let (code, line) = failure(&output(&mut in_other_mounts(script, &["run", "--", "true"])));
    assert_eq!(code, Some(77), "{line}");
    assert_eq!(line.matches("Read-only file system").count(), 1, "{line}");
    assert!(line.contains("read-write"), "{line}");
}

/// The words of a command are charged to it before it is executed.
#[test]
fn a_command_that_has_no_room_is_126() {
    if !need_bpf() {
        return;
    }
    let word = "x".repeat(100_000);
    let mut command = sw_bpf(&["run", "--limit-mem", "1M", "--", "true"]);
    let output = output(command.args(vec![word; 15]));
    let told = told(&output);
    assert_eq!(output.status.code(), Some(126), "{told}");
    let last = told.lines().last().expect("a line");
    assert!(
        last.starts_with("sw-bpf: command \"true\" was killed") && last.contains("--limit-mem"),
        "{told}"
    );
}

#[test]
fn a_kernel_that_is_locked_down_is_69() {
    if !need_bpf() {
        return;
    }
    let script = "mount -t tmpfs none /sys/kernel/security; \
                  echo 'none integrity [confidentiality]' >/sys/kernel/security/lockdown; exec \"$0\" \"$@\"";
    falls_back(
        |arguments| in_other_mounts(script, arguments),
        69,
        "locked down (confidentiality)",
    );
}

#[test]
fn a_limit_without_a_memory_controller_is_72() {
    if !need_bpf() {
        return;
    }
    // On version 1, its hierarchy; on version 2, nothing is left.
    let script = "umount /sys/fs/cgroup/memory 2>/dev/null || umount -l /sys/fs/cgroup; exec \"$0\" \"$@\"";
    let (code, line) = failure(&output(&mut in_other_mounts(
        script,
        &["run", "--limit-mem", "1G", "--", "true"],
    )));
    assert!([Some(72), Some(1)].contains(&code), "{line}");
    assert!(line.contains("mount"), "{line}");
}

#[test]
fn no_cgroups_at_all_are_told() {
    if !need_bpf() {
        return;
    }
    let script = "mount -t tmpfs none /sys/fs/cgroup; exec \"$0\" \"$@\"";
    for arguments in [&["run", "--", "true"][..], &["--once", "--json"]] {
        let (code, line) = failure(&output(&mut in_other_mounts(script, arguments)));
        assert_eq!(code, Some(72), "{line}");
        assert!(line.contains("mount"), "{line}");
    }
}
