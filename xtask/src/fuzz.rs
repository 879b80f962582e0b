//! `cargo xtask fuzz`: tries what reads text of others with inputs that a machine makes up, led by what they reach in the code.
//!
//! libFuzzer runs on stable Rust: `fuzz/rustc` has the workspace's own packages compiled with coverage, and what they depend on is
//! that of any other build in release.

mod report;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context as _, Result, ensure};

use crate::command::{apt_install, cargo, root, run as run_command, target_dir};
use crate::tally::Tally;
use crate::test::{PACKAGE as LIVE, STARTED};
use report::Outcome;

const PACKAGE: &str = "swbpf-fuzz";
const ENGINE: &str = "swbpf-fuzz/engine";
/// Names the target to its program.
const TARGET: &str = "SWBPF_FUZZ_TARGET";
/// The engine is in C++.
const PACKAGES: [&str; 1] = ["g++"];
/// How long an input may take.
const TIMEOUT: &str = "-timeout=5";
/// How much memory a target may take, in MiB.
const MEMORY: &str = "-rss_limit_mb=512";
/// Longest input: the largest in the corpus, a BTF, has 43 KB.
const LENGTH: &str = "-max_len=65536";
/// How long a target runs where that is not said.
pub const SECONDS: u32 = 5;

/// Fuzz what reads text of others
#[derive(clap::Args)]
pub struct Args {
    /// How long each target runs
    #[arg(long, default_value_t = SECONDS)]
    seconds: u32,
    /// Install what is missing: on Debian, as root
    #[arg(long)]
    install: bool,
    /// Rewrite fuzz/corpus with the fewest inputs that take all edges that were taken so far
    #[arg(long)]
    minimise: bool,
    /// These alone
    target: Vec<String>,
}

/// Runs the targets; the last line of all is `N passed, N failed, N skipped`.
pub fn run(args: &Args) -> ExitCode {
    let mut tally = Tally::default();
    if let Err(error) = fuzz(args, &mut tally) {
        println!("failed: {error:#}");
        tally.failed += 1;
    }
    tally.conclude()
}

/// As [`run`], as a part of all tests.
pub fn run_part(install: bool, tally: &mut Tally) -> Result<()> {
    let args = Args {
        seconds: SECONDS,
        install,
        minimise: false,
        target: Vec::new(),
    };
    fuzz(&args, tally)
}

fn fuzz(args: &Args, tally: &mut Tally) -> Result<()> {
    if args.install {
        apt_install(&PACKAGES)?;
    }
    if Command::new("c++")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        tally.skip("fuzzing needs a C++ compiler: `cargo xtask fuzz --install`");
        return Ok(());
    }
    let targets = targets(&args.target)?;
    build()?;
    if args.minimise {
        return targets.iter().try_for_each(|target| minimise(target));
    }
    println!("{}", report::HEAD);
    for outcome in all(&targets, args.seconds)? {
        println!("{outcome}");
        if outcome.is_good() {
            tally.passed += 1;
        } else {
            tally.failed += 1;
        }
    }
    Ok(())
}

/// All targets, or those of these names.
fn targets(asked: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for corpus in fs::read_dir(root().join("fuzz/corpus"))? {
        all.push(corpus?.file_name().to_string_lossy().into_owned());
    }
    all.sort();
    for name in asked {
        ensure!(
            all.contains(name),
            "there is no target {name}: {}",
            all.join(", ")
        );
    }
    all.retain(|name| asked.is_empty() || asked.contains(name));
    Ok(all)
}

/// Beside the packages of the live tests: cargo then chooses the same features of what they all depend on, and builds none of it
/// again.
fn build() -> Result<()> {
    let mut build = cargo();
    build
        .args([
            "build",
            "--quiet",
            "--release",
            "--bin",
            PACKAGE,
            "--package",
            PACKAGE,
        ])
        .args(STARTED)
        .args(["--package", LIVE, "--features", ENGINE]);
    run_command(build.env("RUSTC_WORKSPACE_WRAPPER", root().join("fuzz/rustc")))
}

/// Runs the targets, as many at once as there are processors.
fn all(targets: &[String], seconds: u32) -> Result<Vec<Outcome>> {
    let next = Mutex::new(targets.iter());
    let outcomes = Mutex::new(Vec::new());
    let work = || {
        loop {
            let target = next.lock().ok().and_then(|mut next| next.next());
            let Some(target) = target else { break };
            let outcome = one(target, seconds);
            if let Ok(mut outcomes) = outcomes.lock() {
                outcomes.push(outcome);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_default();
    let mut outcomes = outcomes.into_iter().collect::<Result<Vec<_>>>()?;
    outcomes.sort_by(|a, b| a.target.cmp(&b.target));
    ensure!(outcomes.len() == targets.len(), "a target was not run to its end");
    Ok(outcomes)
}

/// Runs one for a time. What it finds that is new is kept for the next run; what it crashes with, for whoever mends it.
fn one(target: &str, seconds: u32) -> Result<Outcome> {
    let (found, corpus) = (found(target)?, corpus(target));
    let crashes = crashes(target)?;
    let before = files(&crashes)?;
    let log = target_dir().join("fuzz").join(format!("{target}.log"));
    let mut program = program(target);
    program
        .arg(format!("-max_total_time={seconds}"))
        .args(["-use_value_profile=1", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .args([&found, &corpus])
        .stderr(File::create(&log)?);
    let status = program.status().with_context(|| format!("start {target}"))?;
    let told = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let mut new = files(&crashes)?;
    new.retain(|path| !before.contains(path));
    Ok(Outcome::read(target, &told, status.success(), new, log))
}

/// Replaces what was found for the corpus of a target by the fewest inputs that take as many edges. Inputs that were given a name
/// stay: they were put there by hand.
fn minimise(target: &str) -> Result<()> {
    let (found, corpus) = (found(target)?, corpus(target));
    let fewest = target_dir().join("fuzz/fewest").join(target);
    let _ = fs::remove_dir_all(&fewest);
    fs::create_dir_all(&fewest)?;
    let mut program = program(target);
    // By edges alone: the inputs that differ in how often they take them are a hundred times as much.
    program
        .args(["-set_cover_merge=1", "-use_counters=0"])
        .arg(&fewest)
        .args([&corpus, &found]);
    run_command(program.stderr(Stdio::null()))?;
    let (mut named, mut bytes) = (Vec::new(), 0);
    for old in files(&corpus)? {
        if is_named(&old) {
            named.push(fs::read(old)?);
        } else {
            fs::remove_file(old)?;
        }
    }
    let mut count = named.len();
    for input in files(&fewest)? {
        let text = fs::read(&input)?;
        if !named.contains(&text) {
            fs::copy(&input, corpus.join(input.file_name().unwrap_or_default()))?;
            (count, bytes) = (count + 1, bytes + text.len());
        }
    }
    println!("{target}: {count} inputs, {bytes} bytes in those that were found");
    Ok(())
}

/// Whether a file has another name than libFuzzer gives, which is a hash.
fn is_named(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.len() != 40 || !name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn program(target: &str) -> Command {
    let mut program = Command::new(target_dir().join("release").join(PACKAGE));
    program.env(TARGET, target);
    // What a target writes on the way, it writes often.
    let scratch = Path::new("/dev/shm");
    if scratch.is_dir() {
        program.env("TMPDIR", scratch);
    }
    program.args([TIMEOUT, MEMORY, LENGTH]).stdout(Stdio::null());
    program
}

fn corpus(target: &str) -> PathBuf {
    root().join("fuzz/corpus").join(target)
}

fn found(target: &str) -> Result<PathBuf> {
    made(target_dir().join("fuzz/found").join(target))
}

fn crashes(target: &str) -> Result<PathBuf> {
    made(target_dir().join("fuzz/crashes").join(target))
}

fn made(dir: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    Ok(dir)
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    entries.map(|entry| Ok(entry?.path())).collect()
}
