//! What to do about a failure, where that depends on its cause.

use std::{ffi::OsStr, path::Path};

/// Why nothing can be known of any process.
pub const NO_PROC: &str = "/proc is not mounted";
/// What to do about it.
pub const MOUNT_PROC: &str = "mount -t proc proc /proc";

/// Why capabilities that a process has are of no use.
pub const IN_USER_NAMESPACE: &str = "in a user namespace the kernel does not accept CAP_BPF and CAP_PERFMON";

/// What gives the capabilities that are missing.
pub fn way_to_capabilities(is_withheld: bool) -> &'static str {
    if is_withheld {
        "root was stripped of it here: a container needs `--cap-add BPF --cap-add PERFMON`, a systemd unit CAP_BPF and \
         CAP_PERFMON in its CapabilityBoundingSet="
    } else {
        "where the administrator has started `sw-bpf agent`, its users need none for their jobs; else run as root, or once \
         `setcap cap_bpf,cap_perfmon+ep` on sw-bpf"
    }
}

/// Words that are a shell's own, and no programs.
const SHELL_WORDS: [&str; 20] = [
    "alias", "bg", "cd", "declare", "eval", "exec", "export", "fg", "for", "if", "jobs", "local", "module",
    "set", "shift", "source", "trap", "ulimit", "umask", "while",
];

/// What to do about a command that is not found: what only a shell understands is told apart.
pub fn way_to_command(command: &OsStr) -> &'static str {
    let text = command.to_string_lossy();
    let is_for_shell = |c: char| c.is_whitespace() || "|&;<>()$`\"'*?[]{}~=".contains(c);
    if SHELL_WORDS.contains(&text.as_ref()) || text.contains(is_for_shell) {
        "each word is an argument of its own, as `sw-bpf run -- sleep 1`; for what a shell understands say \
         `sw-bpf run -- sh -c 'COMMAND'`"
    } else {
        "check its spelling and PATH"
    }
}

/// What to do about a directory with these mode bits that others can write to, which is to have the mode `wanted`.
pub fn way_to_own_directory(path: &Path, mode: u32, wanted: &str) -> String {
    let path = path.display();
    if mode & 0o1000 == 0 {
        format!("`chown root {path}; chmod {wanted} {path}`, or name another")
    } else {
        // It is meant to be everybody's.
        format!("name a directory of its own, such as {path}/sw-bpf")
    }
}

/// What tells of a job that has ended.
pub fn way_to_ended(id: &str, has_record: bool) -> String {
    if has_record {
        format!("`sw-bpf show {id}` tells what it needed")
    } else {
        format!("`sacct -j {id}` has what Slurm recorded of it")
    }
}
