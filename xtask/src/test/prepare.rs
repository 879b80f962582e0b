//! What the tests need of the machine.

use std::fs;
use std::process::Command;

use anyhow::Result;

use crate::command::{apt_install, run};

/// `gcc` links, `jq` reads the JSON as a user's script would, `libfaketime` sets the clock of one program, the programs of
/// `systemd` read the files for it.
const PACKAGES: [&str; 5] = ["gcc", "libc6-dev", "jq", "libfaketime", "systemd"];

/// What a Slurm is made of, and `ip`, which gives it a network of its own.
pub const SLURM_PACKAGES: [&str; 5] = ["slurm-wlm", "slurmdbd", "munge", "mariadb-server", "iproute2"];

/// Kernel file systems, each with the place where it belongs.
const MOUNTS: [(&str, &str); 2] = [("tracefs", "/sys/kernel/tracing"), ("bpf", "/sys/fs/bpf")];

/// Installs packages, on wish those of Slurm too, and mounts kernel file systems, those that are missing.
pub fn install(with_slurm: bool) -> Result<()> {
    apt_install(&PACKAGES)?;
    if with_slurm {
        apt_install(&SLURM_PACKAGES)?;
    }
    for (kind, place) in MOUNTS {
        if is_mounted(kind, place)? {
            continue;
        }
        // Not every container may mount; what then cannot run says so itself.
        if let Err(error) = run(Command::new("mount").args(["-t", kind, kind, place])) {
            println!("{place} is not mounted: {error:#}");
        }
    }
    Ok(())
}

fn is_mounted(kind: &str, place: &str) -> Result<bool> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    Ok(mounts
        .lines()
        .any(|mount| mount.split(' ').skip(1).take(2).eq([place, kind])))
}
