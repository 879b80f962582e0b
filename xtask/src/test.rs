//! `cargo xtask test`: builds everything, the kernel programs among it, and runs every test.
//!
//! Five tiers. **pure**: anywhere. **live**: the targets `live_*` of package `swbpf-tests`, which load kernel programs and
//! measure; they need root, run on release builds, and one at a time, so that none disturbs what another measures.
//! **slurm**: the targets `slurm_*`, which are like those and start a Slurm of their own. **vm**: a part of the live tests, on
//! another kernel in a virtual machine. **fuzz**: what reads text of others, for some seconds each.
//!
//! A Slurm is mostly waited for, so the last two run beside it, at the lowest priority, where all tiers are asked for.

pub mod prepare;

use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs, thread};

use anyhow::{Context as _, Result, anyhow};
use clap::ValueEnum;
use serde_json::Value;

use crate::command::{cargo, output, run as run_command};
use crate::tally::Tally;
use crate::toolchain::Toolchain;
use crate::{build_ebpf, fuzz, vm};

/// Holds the live tests and all that they start.
pub const PACKAGE: &str = "swbpf-tests";
/// What those start.
pub const STARTED: [&str; 2] = ["--package=swbpf", "--package=swbpf-workloads"];
const LIVE: &str = "live_";
/// How the targets that start a Slurm of their own begin.
pub const SLURM: &str = "slurm_";
/// How those begin that are for a virtual machine of their own.
const VM: &str = "vm_";

/// Names the file to which a test that cannot run here adds its reason.
pub const SKIPPED: &str = "SWBPF_TESTS_SKIPPED";

/// Run every test, on kernel programs built afresh
#[derive(clap::Args)]
pub struct Args {
    /// Install what is missing and mount what the tests look at: on Debian, as root
    #[arg(long)]
    install: bool,
    /// Which tests: those that run anywhere, those that load kernel programs, those that start a Slurm, those in a virtual
    /// machine, the fuzz targets, or all
    #[arg(long, value_enum, default_value_t = Tier::All)]
    tier: Tier,
    /// Given to the test programs: a part of a test's name, --nocapture, …
    #[arg(last = true)]
    harness: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tier {
    Pure,
    Live,
    Slurm,
    Vm,
    Fuzz,
    All,
}

impl Tier {
    fn has(self, other: Self) -> bool {
        self == other || self == Self::All
    }
}

/// Runs the tests; the last line of all is `N passed, N failed, N skipped`.
pub fn run(args: &Args) -> ExitCode {
    let mut tally = Tally::default();
    if let Err(error) = run_tiers(args, &mut tally) {
        println!("failed: {error:#}");
        tally.failed += 1;
    }
    tally.conclude()
}

fn run_tiers(args: &Args, tally: &mut Tally) -> Result<()> {
    if args.install {
        prepare::install(args.tier.has(Tier::Slurm))?;
    }
    if args.tier != Tier::Fuzz {
        object(args, tally)?;
    }
    let mut targets = targets()?;
    targets.retain(|name| !name.starts_with(VM));
    let (slurm, others): (Vec<_>, Vec<_>) = targets.into_iter().partition(|name| name.starts_with(SLURM));
    let (live, pure): (Vec<_>, Vec<_>) = others.into_iter().partition(|name| name.starts_with(LIVE));
    let skipped = tempfile::NamedTempFile::new().context("cannot make a temporary file")?;
    let mut suite = Suite {
        harness: &args.harness,
        skipped: skipped.path(),
        tally,
    };
    if args.tier.has(Tier::Pure) {
        suite.pure(&pure)?;
    }
    if args.tier.has(Tier::Live) {
        suite.live(&live)?;
    }
    match args.tier {
        Tier::Slurm => suite.live(&slurm)?,
        Tier::Fuzz => fuzz::run_part(args.install, suite.tally)?,
        Tier::Vm => vm::run_part(args.install, suite.tally)?,
        Tier::All => suite.slurm_and_others(&slurm, args.install)?,
        Tier::Pure | Tier::Live => {}
    }
    tally.move_skipped(&fs::read_to_string(skipped.path())?);
    Ok(())
}

/// Runs a tier as a program of its own, on what the processors have left, and returns what it printed: in one piece, so that it
/// is not mixed with what others print.
fn aside(tier: Tier, install: bool) -> Result<String> {
    let name = tier.to_possible_value().context("a tier has a name")?;
    let mut command = Command::new("nice");
    command
        .args(["-n", "19"])
        .arg(env::current_exe()?)
        .args(["test", "--tier", name.get_name()])
        .args(install.then_some("--install"));
    let mut printed = tempfile::tempfile().context("cannot make a temporary file")?;
    command.stdout(printed.try_clone()?).stderr(printed.try_clone()?);
    command.status().context("cannot start nice")?;
    printed.rewind()?;
    let mut text = Vec::new();
    printed.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Renews the object in its place: the live tests are to run on what the sources give, not on what was committed.
fn object(args: &Args, tally: &mut Tally) -> Result<()> {
    let toolchain = if args.install {
        Toolchain::find_or_install()
    } else {
        Toolchain::find()
    };
    match toolchain {
        Ok(toolchain) => build_ebpf::build(&toolchain),
        Err(lacking) if args.install => Err(lacking),
        Err(_) => {
            tally.skip("fresh kernel programs: `cargo xtask build-ebpf` says what they need");
            Ok(())
        }
    }
}

struct Suite<'a> {
    harness: &'a [String],
    skipped: &'a Path,
    tally: &'a mut Tally,
}

impl Suite<'_> {
    fn pure(&mut self, targets: &[String]) -> Result<()> {
        let mut programs = cargo();
        programs.args(["test", "--workspace", "--no-fail-fast", "--lib", "--bins"]);
        programs.args(targets.iter().flat_map(|name| ["--test", name]));
        self.test(&mut programs, &[])
    }

    /// In release, and one test at a time.
    fn live(&mut self, targets: &[String]) -> Result<()> {
        let release = ["--release", "--package", PACKAGE];
        let bins = ["build", "--quiet", "--bins"];
        run_command(cargo().args(bins).args(STARTED).args(release))?;
        let mut live = cargo();
        live.arg("test").args(release).arg("--no-fail-fast");
        live.args(targets.iter().flat_map(|name| ["--test", name]));
        self.test(&mut live, &["--test-threads=1"])
    }

    /// Those of Slurm, and beside them, which mostly wait, the tiers that need no quiet.
    fn slurm_and_others(&mut self, slurm: &[String], install: bool) -> Result<()> {
        // The last one builds for long, and holds up whoever else wants to build.
        let others = [Tier::Vm, Tier::Fuzz];
        thread::scope(|scope| {
            let others = scope.spawn(|| others.map(|tier| aside(tier, install)));
            self.live(slurm)?;
            let printed = others
                .join()
                .map_err(|_| anyhow!("the tiers beside ended early"))?;
            for printed in printed {
                let printed = printed?;
                print!("{printed}");
                self.tally.add(&Tally::concluded(&printed)?);
            }
            Ok(())
        })
    }

    /// Runs `command`, a `cargo test`, and counts what it reports.
    fn test(&mut self, command: &mut Command, own: &[&str]) -> Result<()> {
        command
            .arg("--")
            .args(own)
            .args(self.harness)
            .env(SKIPPED, self.skipped)
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start cargo test")?;
        let told = self.tally.failed;
        if let Some(stdout) = child.stdout.take() {
            self.tally.listen(stdout, std::io::stdout())?;
        }
        let status = child.wait()?;
        // A build that failed, or a program that died before it could report.
        if !status.success() && self.tally.failed == told {
            self.tally.failed += 1;
        }
        Ok(())
    }
}

/// Names of the workspace's integration tests.
pub fn targets() -> Result<Vec<String>> {
    let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages
        .filter_map(|package| package["targets"].as_array())
        .flatten();
    let tests = targets.filter(|target| target["kind"][0] == "test");
    Ok(tests
        .filter_map(|target| target["name"].as_str())
        .map(String::from)
        .collect())
}
