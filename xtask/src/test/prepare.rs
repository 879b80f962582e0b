//! What the tests need of the machine.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::Command;

use anyhow::Result;

use crate::command::{apt_install, run};

/// `gcc` links, `jq` reads the JSON as a user's script would, `libfaketime` sets the clock of one program, the programs of
/// `systemd` read the files for it, those of `prometheus` read metrics.
const PACKAGES: [&str; 6] = ["gcc", "libc6-dev", "jq", "libfaketime", "systemd", "prometheus"];

/// What a Slurm is made of, and `ip`, which gives it a network of its own.
pub const SLURM_PACKAGES: [&str; 5] = ["slurm-wlm", "slurmdbd", "munge", "mariadb-server", "iproute2"];

/// Kernel file systems, each with the place where it belongs.
const MOUNTS: [(&str, &str); 2] = [("tracefs", "/sys/kernel/tracing"), ("bpf", "/sys/fs/bpf")];

/// Installs packages, on wish those of Slurm too, and mounts kernel file systems, those that are missing.
pub fn install(with_slurm: bool) -> Result<()> {
    let _quiet = NoServices::begin()?;
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

/// While it is there, packages that are installed start no service: the tests start what they need themselves.
struct NoServices {
    /// Whether the administrator has no such file, so that it is to go again.
    is_own: bool,
}

impl NoServices {
    /// What Debian's packages ask before they start a service (invoke-rc.d(8)).
    const POLICY: &str = "/usr/sbin/policy-rc.d";

    fn begin() -> Result<Self> {
        let mut options = OpenOptions::new();
        match options
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(Self::POLICY)
        {
            Ok(mut file) => file.write_all(b"#!/bin/sh\nexit 101\n")?,
            // Not root, which the installation says, where there is one; or no Debian.
            Err(_) => return Ok(Self { is_own: false }),
        }
        Ok(Self { is_own: true })
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.is_own
            && let Err(error) = fs::remove_file(Self::POLICY)
        {
            println!("{} is left: {error}; remove it", Self::POLICY);
        }
    }
}

fn is_mounted(kind: &str, place: &str) -> Result<bool> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    Ok(mounts
        .lines()
        .any(|mount| mount.split(' ').skip(1).take(2).eq([place, kind])))
}
