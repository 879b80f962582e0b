//! `cargo xtask vm`: runs live tests on other kernels, each in a virtual machine.
//!
//! The machine sees this host's files, with a layer in memory over them, so that nothing has to be installed in it. The test
//! programs are built here. Where the processor cannot run virtual machines it is emulated, ten times and more slower:
//! what is counted can be proved so, what it costs cannot.

mod initramfs;
mod kernel;
mod machine;
mod place;
mod programs;
mod told;

use std::iter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;

use crate::command::{apt_install, missing_packages};
use crate::tally::Tally;
use crate::test::prepare::SLURM_PACKAGES;
use crate::test::{SLURM, targets};
use kernel::Kernel;
use machine::{QEMU, VIRTIOFSD};
use place::{Place, Selection};

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

/// What runs where systemd is the first process.
const SYSTEMD: &str = "vm_systemd";

/// What those need of this host.
const SYSTEMD_PACKAGES: [&str; 3] = ["systemd", "dbus", "iproute2"];

/// What goes with every test of the project: hooks that this host does not have, and cgroups of version 2.
const PART: [&str; 9] = [
    "live_memory",
    "live_probe",
    "live_run",
    "cgroups",
    "limit::",
    "oom::",
    "private::",
    "shared::",
    "tables_of_pages",
];

/// Run live tests on other kernels, in virtual machines (as root, on Debian 12)
#[derive(clap::Args)]
pub struct Args {
    /// Kernels of Debian, or that of this host, without a machine; none: all of Debian's
    #[arg(value_enum, value_name = "KERNEL")]
    kernels: Vec<On>,
    /// The version of cgroups that a machine has
    #[arg(long, value_enum, default_value_t = Cgroup::V2)]
    cgroup: Cgroup,
    /// Boot it with systemd, as Debian does, and test the files for systemd
    #[arg(long, conflicts_with_all = ["cgroup", "write"])]
    systemd: bool,
    /// Install what is missing: on Debian, as root
    #[arg(long)]
    install: bool,
    /// End a machine that takes longer
    #[arg(long, value_name = "MINUTES", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Also put what came out of whole test programs into the tables of this file
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Names of test programs; what is none is given to them: a part of a test's name, --nocapture, …
    #[arg(last = true)]
    tests: Vec<String>,
}

/// Where to run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum On {
    Host,
    #[value(name = "6.1")]
    V6_1,
    #[value(name = "6.12")]
    V6_12,
}

impl On {
    fn name(self) -> &'static str {
        self.kernel().map_or("this host's Linux", Kernel::name)
    }

    fn kernel(self) -> Option<Kernel> {
        match self {
            Self::Host => None,
            Self::V6_1 => Some(Kernel::V6_1),
            Self::V6_12 => Some(Kernel::V6_12),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Cgroup {
    /// Memory, CPU time, CPU sets and the freezer in hierarchies of their own, as many hosts still have them
    V1,
    V2,
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

/// Runs a part of the tests on the oldest kernel; where there is no QEMU and none may be installed, they are skipped.
pub fn run_part(install: bool, tally: &mut Tally) -> Result<()> {
    if let Some(missing) = missing().filter(|_| !install) {
        tally.skip(&missing);
        return Ok(());
    }
    let args = Args {
        kernels: vec![On::V6_1],
        cgroup: Cgroup::V2,
        systemd: false,
        install,
        limit: 20,
        write: None,
        tests: PART.map(String::from).to_vec(),
    };
    run_all(&args, tally)
}

/// What keeps a machine from being started.
fn missing() -> Option<String> {
    let file = [QEMU, VIRTIOFSD]
        .into_iter()
        .find(|file| !Path::new(file).exists())?;
    let packages = PACKAGES.join(" ");
    Some(format!(
        "no virtual machine without {file}: --install installs it, or `apt-get install {packages}`"
    ))
}

/// A machine has no programs but those of this host, so they are to be here.
fn provide(packages: &[&str], install: bool) -> Result<()> {
    if install {
        return apt_install(packages);
    }
    let missing = missing_packages(packages).join(" ");
    ensure!(
        missing.is_empty(),
        "this needs {missing}: --install installs it, or `apt-get install --no-install-recommends {missing}`"
    );
    Ok(())
}

fn run_all(args: &Args, tally: &mut Tally) -> Result<()> {
    let kernels = args.kernels()?;
    if args.install {
        apt_install(&PACKAGES)?;
    }
    if let Some(missing) = missing() {
        bail!(missing);
    }
    let selection = args.selection()?;
    let has_slurm = selection.programs.iter().any(|name| name.starts_with(SLURM));
    if has_slurm || args.systemd {
        provide(&SLURM_PACKAGES, args.install)?;
    }
    if args.systemd {
        provide(&SYSTEMD_PACKAGES, args.install)?;
    }
    let place = Place::take()?;
    for on in kernels {
        let mut here = Tally::default();
        let ran = match on.kernel() {
            None => place.run_here(&selection),
            Some(kernel) => place.run(kernel, args.cgroups(), &selection),
        };
        let counts = place.counts(&selection)?;
        for (_, tally) in &counts {
            here.add(tally);
        }
        let done = ran.and_then(|()| {
            ensure!(!here.is_empty(), "no test has such a name");
            args.write.iter().try_for_each(|file| place.write(file, &counts))
        });
        if let Err(error) = done {
            println!("failed: {}: {error:#}", on.name());
            here.failed += 1;
        }
        tally.add(&here);
    }
    Ok(())
}

impl Args {
    /// What a machine is told of its cgroups.
    fn cgroups(&self) -> &'static str {
        match self.cgroup {
            Cgroup::V1 => "v1",
            Cgroup::V2 => "v2",
        }
    }

    fn kernels(&self) -> Result<Vec<On>> {
        let fits = |on: &On| {
            let kernel = on.kernel();
            self.cgroup == Cgroup::V2 || kernel.is_none_or(Kernel::has_memory_v1)
        };
        if self.systemd && self.kernels.contains(&On::Host) {
            bail!("--systemd is for virtual machines");
        }
        if let Some(on) = self.kernels.iter().find(|on| !fits(on)) {
            bail!("{} of Debian counts no memory in version 1", on.name());
        }
        let all = On::value_variants().iter().copied();
        Ok(if self.kernels.is_empty() {
            all.filter(|on| *on != On::Host && fits(on)).collect()
        } else {
            self.kernels.clone()
        })
    }

    fn selection(&self) -> Result<Selection> {
        let known = targets()?;
        let (mut programs, harness): (Vec<_>, Vec<_>) =
            self.tests.iter().cloned().partition(|word| known.contains(word));
        if programs.is_empty() {
            programs = if self.systemd {
                vec![SYSTEMD.to_owned()]
            } else {
                TRUTH.map(String::from).to_vec()
            };
        }
        if self.write.is_some()
            && let Some(part) = harness.iter().find(|word| !word.starts_with('-'))
        {
            bail!("--write tells of whole test programs, and {part} is none");
        }
        let own = iter::once("--test-threads=1".to_owned());
        Ok(Selection {
            programs,
            harness: own.chain(harness).collect(),
            systemd: self.systemd,
            measure: self.write.is_some(),
            limit: Duration::from_secs(self.limit * 60),
        })
    }
}
