//! Starting other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, iter};

use anyhow::{Context as _, Result, ensure};

/// Root of the workspace. Cargo names it anew at each run: a program that was built in another checkout, with the same
/// target directory, would remember that one.
pub fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let mut root = PathBuf::from(manifest);
    root.pop();
    root
}

/// Where cargo puts what it builds.
pub fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The cargo that started this task, at work in the root of the workspace.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Runs `command` with this process's own stdio; an exit code other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    ensure!(status.success(), "{} failed: {status}", shown(command));
    Ok(())
}

/// What `command` prints; an exit code other than 0 is an error with what it said on stderr.
pub fn output(command: &mut Command) -> Result<String> {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    let stderr = String::from_utf8_lossy(&stderr);
    ensure!(
        status.success(),
        "{} failed: {status}\n{}",
        shown(command),
        stderr.trim()
    );
    Ok(String::from_utf8_lossy(&stdout).trim().to_owned())
}

/// `command` as it would be typed, its program without the directory.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let words = iter::once(program).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Installs those of `packages` that are missing: on Debian, as root. Silent where nothing is.
pub fn apt_install(packages: &[&str]) -> Result<()> {
    let missing = missing_packages(packages);
    if missing.is_empty() {
        return Ok(());
    }
    println!("installing {}", missing.join(" "));
    apt_get(&["update"])?;
    apt_get(&[&["install", "-y", "--no-install-recommends"], &missing[..]].concat())
}

/// Those of `packages` that are missing.
pub fn missing_packages<'a>(packages: &[&'a str]) -> Vec<&'a str> {
    let mut missing = packages.to_vec();
    missing.retain(|package| !is_installed(package));
    missing
}

fn apt_get(args: &[&str]) -> Result<()> {
    let mut apt_get = Command::new("apt-get");
    apt_get
        .arg("-qq")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive");
    output(&mut apt_get)
        .map(drop)
        .context("installing needs root and Debian's apt-get")
}

fn is_installed(package: &str) -> bool {
    let query = ["--show", "--showformat=${db:Status-Status}", package];
    output(Command::new("dpkg-query").args(query)).is_ok_and(|status| status == "installed")
}
