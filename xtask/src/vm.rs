//! `cargo xtask vm`: runs live tests on other kernels, each in a virtual machine.
//!
//! The machine sees this host's files, with a layer in memory over them, so that nothing has to be installed in it. The test
//! programs are built here. Where the processor cannot run virtual machines it is emulated, ten times and more slower:
//! what is counted can be proved so, what it costs cannot.

mod initramfs;
mod kernel;
mod machine;
mod programs;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, iter};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;

use crate::command::{apt_install, root, target_dir};
use crate::tally::Tally;
use crate::test::{SKIPPED, targets};
use kernel::{Image, Kernel};
use machine::{Machine, QEMU, VIRTIOFSD};

/// What a machine needs of Debian; `virtiofsd` comes along.
const PACKAGES: [&str; 2] = ["qemu-system-x86", "xz-utils"];

/// Those that hold the figures of sw-bpf against programs of known quantity.
const TRUTH: [&str; 6] = [
    "live_memory",
    "live_spikes",
    "live_cpu",
    "live_probe",
    "live_run",
    "live_attach",
];

/// What the environment says to the tests.
const TOLD: &str = "SWBPF_TEST_";

const GUEST: &str = include_str!("vm/guest");

/// Run live tests on other kernels, in virtual machines (as root, on Debian 12)
#[derive(clap::Args)]
pub struct Args {
    /// Kernels of Debian; none: all
    #[arg(value_enum, value_name = "KERNEL")]
    kernels: Vec<Kernel>,
    /// The version of cgroups that the machine has
    #[arg(long, value_enum, default_value_t = Cgroup::V2)]
    cgroup: Cgroup,
    /// Install what is missing: on Debian, as root
    #[arg(long)]
    install: bool,
    /// End a machine that takes longer
    #[arg(long, value_name = "MINUTES", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Names of test programs; what is none is given to them: a part of a test's name, --nocapture, …
    #[arg(last = true)]
    tests: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Cgroup {
    /// Memory, CPU time, CPU sets and the freezer in hierarchies of their own, as many hosts still have them
    V1,
    V2,
}

impl Cgroup {
    fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// Runs the tests; the last line of all is `N passed, N failed, N skipped`.
pub fn run(args: &Args) -> ExitCode {
    let mut tally = Tally::default();
    if let Err(error) = run_all(args, &mut tally) {
        println!("failed: {error:#}");
        tally.failed += 1;
    }
    tally.conclude()
}

fn run_all(args: &Args, tally: &mut Tally) -> Result<()> {
    let kernels = args.kernels()?;
    if args.install {
        apt_install(&PACKAGES)?;
    }
    for file in [QEMU, VIRTIOFSD] {
        ensure!(
            Path::new(file).exists(),
            "{file} is missing: --install installs it, or `apt-get install {}`",
            PACKAGES.join(" ")
        );
    }
    let (programs, harness) = args.selection()?;
    let place = Place::take()?;
    for kernel in kernels {
        let told = (tally.passed, tally.failed);
        if let Err(error) = place.run(kernel, args, &programs, &harness, tally) {
            println!("failed: Linux {}: {error:#}", kernel.version());
            tally.failed += 1;
        } else if told == (tally.passed, tally.failed) {
            println!("failed: Linux {}: no test has such a name", kernel.version());
            tally.failed += 1;
        }
    }
    Ok(())
}

impl Args {
    fn kernels(&self) -> Result<Vec<Kernel>> {
        let fits = |kernel: &Kernel| self.cgroup == Cgroup::V2 || kernel.has_memory_v1();
        if let Some(kernel) = self.kernels.iter().find(|kernel| !fits(kernel)) {
            anyhow::bail!(
                "Debian's Linux {} counts no memory in version 1",
                kernel.version()
            );
        }
        let all = Kernel::value_variants().iter().copied().filter(fits);
        Ok(if self.kernels.is_empty() {
            all.collect()
        } else {
            self.kernels.clone()
        })
    }

    /// The test programs, and what is given to each.
    fn selection(&self) -> Result<(Vec<String>, Vec<String>)> {
        let known = targets()?;
        let (mut programs, harness): (Vec<_>, Vec<_>) =
            self.tests.iter().cloned().partition(|word| known.contains(word));
        if programs.is_empty() {
            programs = TRUTH.map(String::from).to_vec();
        }
        let own = iter::once("--test-threads=1".to_owned());
        Ok((programs, own.chain(harness).collect()))
    }
}

/// Where kernels and what a machine leaves are kept, for one machine at a time.
struct Place {
    cache: PathBuf,
    _lock: File,
}

impl Place {
    fn take() -> Result<Self> {
        let cache = target_dir().join("vm");
        fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
        let lock = File::create(cache.join("lock"))?;
        lock.lock().context("cannot wait for another virtual machine")?;
        Ok(Self { cache, _lock: lock })
    }

    /// Boots `kernel`, and runs the programs in it.
    fn run(
        &self,
        kernel: Kernel,
        args: &Args,
        programs: &[String],
        harness: &[String],
        tally: &mut Tally,
    ) -> Result<()> {
        let image = Image::fetch(kernel, &self.cache)?;
        let scratch = self.cache.join("run");
        if scratch.exists() {
            fs::remove_dir_all(&scratch).with_context(|| format!("cannot clear {}", scratch.display()))?;
        }
        let share = scratch.join("share");
        fs::create_dir_all(&share)?;
        programs::lay(programs, &share)?;
        fs::write(share.join("guest"), GUEST)?;
        fs::write(share.join("settings"), settings(programs, harness)?)?;
        let initramfs = scratch.join("initramfs");
        initramfs::write(
            &image.modules,
            &kernel::busybox(&self.cache)?,
            &root(),
            &initramfs,
        )?;
        let machine = Machine {
            vmlinuz: &image.vmlinuz,
            initramfs: &initramfs,
            cgroup: args.cgroup.name(),
            share: &share,
            scratch: &scratch,
            limit: Duration::from_secs(args.limit * 60),
        };
        let told = tally.failed;
        let code = machine.run(tally);
        let skipped = fs::read_to_string(share.join("skipped")).unwrap_or_default();
        tally.move_skipped(&skipped);
        // A program that died before it could report.
        if code? != 0 && tally.failed == told {
            tally.failed += 1;
        }
        Ok(())
    }
}

/// What the script `guest` reads: words of a shell.
fn settings(programs: &[String], harness: &[String]) -> Result<String> {
    let quoted = |words: &[String]| shlex::try_join(words.iter().map(String::as_str));
    let directory = root().join("tests").to_string_lossy().into_owned();
    let mut lines = vec![
        format!("tests=({})", quoted(programs)?),
        format!("harness=({})", quoted(harness)?),
        format!("directory={}", quoted(&[directory])?),
        format!("export {SKIPPED}=/run/vm/skipped"),
    ];
    for (name, value) in env::vars().filter(|(name, _)| name.starts_with(TOLD)) {
        lines.push(format!("export {}", quoted(&[format!("{name}={value}")])?));
    }
    lines.push(String::new());
    Ok(lines.join("\n"))
}
