//! Debian's kernels, fetched and unpacked without being installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::command::output;

/// Runs what the first moments of a virtual machine need, without a library.
const BUSYBOX: &str = "busybox-static";

/// A kernel of Debian 12.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// That of the release.
    V6_1,
    /// A newer one for the same release.
    V6_12,
}

impl Kernel {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::V6_1 => "Linux 6.1",
            Self::V6_12 => "Linux 6.12",
        }
    }

    /// Its version, without what names a build.
    fn version(self) -> &'static str {
        match self {
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
        }
    }

    /// Whether it can count memory in a hierarchy of version 1 (`CONFIG_MEMCG_V1`, of which older kernels know nothing).
    pub fn has_memory_v1(self) -> bool {
        self == Self::V6_1
    }

    /// The package that depends on its newest build for virtual machines.
    fn package(self) -> &'static str {
        match self {
            Self::V6_1 => "linux-image-cloud-amd64",
            Self::V6_12 => "linux-image-6.12-cloud-amd64",
        }
    }
}

/// An unpacked kernel.
pub struct Image {
    /// What boots.
    pub vmlinuz: PathBuf,
    /// The directory that holds its modules, at some depth.
    pub modules: PathBuf,
}

impl Image {
    /// The kernel as it lies in `cache`, where it is fetched to the first time.
    pub fn fetch(kernel: Kernel, cache: &Path) -> Result<Self> {
        let dir = cache.join(kernel.version());
        if !dir.exists() {
            unpack(&newest_build(kernel)?, &dir)?;
        }
        let mut files = fs::read_dir(dir.join("boot"))?.filter_map(|entry| Some(entry.ok()?.path()));
        let is_kernel = |path: &PathBuf| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-"))
        };
        Ok(Self {
            vmlinuz: files
                .find(is_kernel)
                .with_context(|| format!("no kernel in {0}: remove {0}", dir.display()))?,
            modules: dir.join("lib/modules"),
        })
    }
}

/// Busybox as it lies in `cache`, where it is fetched to the first time.
pub fn busybox(cache: &Path) -> Result<PathBuf> {
    let dir = cache.join("busybox");
    if !dir.exists() {
        unpack(BUSYBOX, &dir)?;
    }
    Ok(dir.join("bin/busybox"))
}

/// The package that `kernel`'s own package stands for.
fn newest_build(kernel: Kernel) -> Result<String> {
    let depends = output(Command::new("apt-cache").args(["depends", kernel.package()]))
        .context("the kernels are Debian's; does `apt-get update` help?")?;
    let begin = format!("Depends: linux-image-{}.", kernel.version());
    let build = depends.lines().find_map(|line| {
        let package = line.trim().strip_prefix("Depends: ")?;
        line.trim().starts_with(&begin).then(|| package.to_owned())
    });
    build.with_context(|| {
        format!(
            "{} does not stand for Linux {} here: this needs Debian 12",
            kernel.package(),
            kernel.version()
        )
    })
}

/// Downloads a package and unpacks it to `dir`, which appears when it is whole.
fn unpack(package: &str, dir: &Path) -> Result<()> {
    println!("fetching {package}");
    let cache = dir.parent().context("no directory for what is fetched")?;
    let new = tempfile::tempdir_in(cache).context("cannot make a temporary directory")?;
    output(
        Command::new("apt-get")
            .args(["-qq", "download", package])
            .current_dir(new.path()),
    )?;
    let Some(Ok(deb)) = fs::read_dir(new.path())?.next() else {
        bail!("apt-get downloaded nothing for {package}");
    };
    let tree = new.path().join("tree");
    output(Command::new("dpkg-deb").arg("-x").arg(deb.path()).arg(&tree))?;
    ensure!(tree.exists(), "{package} is empty");
    fs::rename(&tree, dir).with_context(|| format!("cannot make {}", dir.display()))
}
