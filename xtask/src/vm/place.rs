//! Where kernels, test programs and what they leave are kept, and the running of them.

use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::kernel::{self, Image, Kernel};
use super::machine::Machine;
use super::told::Told;
use super::{TRUTH, initramfs, programs};
use crate::command::{root, run, target_dir};
use crate::tally::Tally;
use crate::test::SKIPPED;

const GUEST: &str = include_str!("guest");

/// What the environment says to the tests.
const TOLD: &str = "SWBPF_TEST_";

/// Names the file to which a test adds its figures.
const FIGURES: &str = "SWBPF_TESTS_FIGURES";

/// Tells tests that they may set services up: the machine is theirs.
const OWN_SYSTEMD: &str = "SWBPF_TESTS_OWN_SYSTEMD";

/// Where a machine sees the directory that it shares.
const SHARE: &str = "/run/vm";

/// What is to be run.
pub struct Selection {
    /// The test programs.
    pub programs: Vec<String>,
    /// What is given to each.
    pub harness: Vec<String>,
    /// Whether systemd is the first process.
    pub systemd: bool,
    /// Whether the kernel programs are looked at as well, for the tables.
    pub measure: bool,
    /// How long a machine may take.
    pub limit: Duration,
}

/// A directory of the build, for one run at a time.
pub struct Place {
    cache: PathBuf,
    /// Of the run: sockets and logs.
    scratch: PathBuf,
    /// What a machine shares with this host.
    share: PathBuf,
    _lock: File,
}

impl Place {
    /// Waits until nobody else has it.
    pub fn take() -> Result<Self> {
        let cache = target_dir().join("vm");
        fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
        let lock = File::create(cache.join("lock"))?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            println!("waiting for another run in {}", cache.display());
        }
        lock.lock().context("cannot wait for another run")?;
        let scratch = cache.join("run");
        Ok(Self {
            share: scratch.join("share"),
            scratch,
            cache,
            _lock: lock,
        })
    }

    /// Boots `kernel`, with memory counted in a hierarchy of version `cgroup`, `v1` or `v2`, and runs the programs in it.
    pub fn run(&self, kernel: Kernel, cgroup: &str, selection: &Selection) -> Result<()> {
        self.lay(selection)?;
        let image = Image::fetch(kernel, &self.cache)?;
        fs::write(self.share.join("guest"), GUEST)?;
        fs::write(self.share.join("settings"), settings(selection)?)?;
        let initramfs = self.scratch.join("initramfs");
        initramfs::write(
            &image.modules,
            &kernel::busybox(&self.cache)?,
            &root(),
            &initramfs,
        )?;
        let machine = Machine {
            vmlinuz: &image.vmlinuz,
            initramfs: &initramfs,
            cgroup,
            first: if selection.systemd { "systemd" } else { "guest" },
            share: &self.share,
            scratch: &self.scratch,
            limit: selection.limit,
        };
        ensure!(machine.run()? == 0, "the kernel programs were not looked at");
        Ok(())
    }

    /// Runs the programs on this host.
    pub fn run_here(&self, selection: &Selection) -> Result<()> {
        self.lay(selection)?;
        for name in &selection.programs {
            println!("     Running {name} here");
            let told = Told::of(&self.share, name);
            told.make()?;
            let mut program = Command::new(self.share.join("deps").join(name));
            program
                .args(&selection.harness)
                .env(FIGURES, self.share.join("figures"))
                .envs([told.skipped()])
                .current_dir(tests_directory())
                .stdin(Stdio::null())
                .stdout(Stdio::piped());
            let mut program = program.spawn().with_context(|| format!("cannot start {name}"))?;
            if let Some(stdout) = program.stdout.take() {
                run(Command::new("tee").arg(told.output()).stdin(stdout))?;
            }
            // None where a signal ended it.
            let code = program.wait()?.code().unwrap_or(-1);
            fs::write(told.code(), code.to_string())?;
        }
        if selection.measure {
            let measured = File::create(self.share.join("measured"))?;
            run(Command::new(self.share.join("kernels"))
                .arg("measure")
                .stdout(measured))?;
        }
        Ok(())
    }

    /// What each program of the last run reported.
    pub fn counts(&self, selection: &Selection) -> Result<Vec<(String, Tally)>> {
        let programs = selection.programs.iter();
        programs
            .map(|name| Ok((name.clone(), Told::of(&self.share, name).count()?)))
            .collect()
    }

    /// Puts what came out of the last run into the tables of `file`: of those that hold figures against programs of known quantity
    /// one row, of all others one each.
    pub fn write(&self, file: &Path, counts: &[(String, Tally)]) -> Result<()> {
        let (truth, others): (Vec<_>, Vec<_>) = counts
            .iter()
            .partition(|(name, _)| TRUTH.contains(&name.as_str()));
        if !truth.is_empty() {
            let mut sum = Tally::default();
            for (_, tally) in truth {
                sum.add(tally);
            }
            let mut row = self.row("row", file, &sum);
            run(row.arg("--spikes").arg(self.share.join("figures")))?;
        }
        for (name, tally) in others {
            run(self.row("each-row", file, tally).arg("--program").arg(name))?;
        }
        Ok(())
    }

    fn row(&self, verb: &str, file: &Path, tally: &Tally) -> Command {
        let mut row = Command::new(self.share.join("kernels"));
        row.arg(verb).arg("--write").arg(file);
        row.arg("--measured").arg(self.share.join("measured"));
        row.arg("--tests")
            .args([tally.passed, tally.failed, tally.skipped].map(|count| count.to_string()));
        row
    }

    /// Clears what the last run left, and lays the programs of this one.
    fn lay(&self, selection: &Selection) -> Result<()> {
        let scratch = self.scratch.display();
        if self.scratch.exists() {
            fs::remove_dir_all(&self.scratch).with_context(|| format!("cannot clear {scratch}"))?;
        }
        fs::create_dir_all(&self.share).with_context(|| format!("cannot make {scratch}"))?;
        programs::lay(&selection.programs, &self.share)
    }
}

/// Where cargo runs the tests.
fn tests_directory() -> PathBuf {
    root().join("tests")
}

/// What the script `guest` reads: words of a shell.
fn settings(selection: &Selection) -> Result<String> {
    let quoted = |words: &[String]| shlex::try_join(words.iter().map(String::as_str));
    let mut lines = vec![
        format!("tests=({})", quoted(&selection.programs)?),
        format!("harness=({})", quoted(&selection.harness)?),
        format!("directory={}", quoted(&[text(&tests_directory())?])?),
        format!("measure={}", if selection.measure { "yes" } else { "" }),
        format!("skipped={SKIPPED}"),
    ];
    let mut environment: Vec<_> = env::vars().filter(|(name, _)| name.starts_with(TOLD)).collect();
    environment.push((FIGURES.to_owned(), format!("{SHARE}/figures")));
    if selection.systemd {
        environment.push((OWN_SYSTEMD.to_owned(), "yes".to_owned()));
    }
    for (name, value) in environment {
        lines.push(format!("export {}", quoted(&[format!("{name}={value}")])?));
    }
    lines.push(String::new());
    Ok(lines.join("\n"))
}

fn text(path: &Path) -> Result<String> {
    let text = path
        .to_str()
        .with_context(|| format!("{} is no text", path.display()))?;
    Ok(text.to_owned())
}
