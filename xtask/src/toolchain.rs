//! Which compiler and linker on this machine can build kernel programs.
//!
//! The kernel programs need a rustc that takes unstable options, the sources of `core` (the BPF target has no compiled
//! one), and bpf-linker. Two sets are known: the distribution's stable rustc with `RUSTC_BOOTSTRAP=1`, and rustup's
//! nightly. The distribution's comes first, because its version is fixed: the same object comes out on every machine.

use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::command::{apt_install, cargo, output, run};

/// First rustc that compiles this workspace.
const OLDEST: (u32, u32) = (1, 95);

/// What `--install` installs; the version of LLVM is the one that this rustc was built with.
const DEBIAN: [&str; 7] = [
    "rustc-web",
    "cargo-web",
    "rust-web-src",
    "llvm-22-dev",
    "libpolly-22-dev",
    "zlib1g-dev",
    "libzstd-dev",
];
const LLVM_PREFIX: &str = "/usr/lib/llvm-22";
const BPF_LINKER: [&str; 8] = [
    "install",
    "bpf-linker",
    "--version",
    "0.13.0",
    "--locked",
    "--no-default-features",
    "--features",
    "llvm-22",
];

/// Names of environment variables that change what cargo and rustc make; what only tells them where to find things
/// (`CARGO_HOME`, proxies, registries, `RUSTUP_HOME`) stays.
const DISTURBING: [&str; 12] = [
    "AYA_",
    "CARGO_BUILD_",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_INCREMENTAL",
    "CARGO_PROFILE_",
    "CARGO_TARGET_",
    "CARGO_UNSTABLE_",
    "LD_LIBRARY_PATH",
    "RUSTC",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
];

/// A compiler and a linker that build kernel programs.
pub struct Toolchain {
    compiler: Compiler,
    /// Versions of the compiler, its LLVM and the linker, on one line.
    pub identity: String,
    /// Sources of the standard library.
    pub library: PathBuf,
    linker: PathBuf,
}

#[derive(Clone, Copy)]
enum Compiler {
    Distribution,
    Nightly,
}

impl Toolchain {
    /// Finds what is there; where nothing is complete, the error says what to install.
    pub fn find() -> Result<Self> {
        let mut lacking = String::from("nothing here can compile kernel programs; either of these would do:");
        for compiler in [Compiler::Distribution, Compiler::Nightly] {
            match Self::probe(compiler) {
                Ok(toolchain) => return Ok(toolchain),
                Err(why) => write!(lacking, "\n\n{}\n  lacking: {why:#}", compiler.remedy())?,
            }
        }
        bail!(lacking)
    }

    /// As [`Self::find`], after installing the distribution's where nothing is complete.
    pub fn find_or_install() -> Result<Self> {
        Self::find().or_else(|_| {
            install()?;
            Self::find()
        })
    }

    /// The cargo of this toolchain, shielded from settings of the outside.
    pub fn cargo(&self) -> Command {
        let mut cargo = self.compiler.tool("cargo");
        cargo.env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER", &self.linker);
        cargo
    }

    fn probe(compiler: Compiler) -> Result<Self> {
        let version = output(compiler.tool("rustc").arg("-vV"))?;
        let (rustc, llvm) = (
            version.lines().next().unwrap_or_default(),
            field(&version, "LLVM version"),
        );
        ensure!(
            release(&version) >= Some(OLDEST),
            "{rustc} is older than {}.{}",
            OLDEST.0,
            OLDEST.1
        );
        output(compiler.tool("cargo").arg("--version"))?;
        let sysroot = output(compiler.tool("rustc").args(["--print", "sysroot"]))?;
        let library = Path::new(&sysroot).join("lib/rustlib/src/rust/library");
        let core = library.join("core/Cargo.toml");
        ensure!(
            core.exists(),
            "{rustc} is here, without the sources of core ({} is not there)",
            core.display()
        );
        let linker = bpf_linker().context("bpf-linker is neither on PATH nor where cargo installs")?;
        let linker_version = output(Command::new(&linker).arg("--version"))?;
        let identity = format!("{rustc}, LLVM {llvm}, {linker_version}");
        Ok(Self {
            compiler,
            identity,
            library,
            linker,
        })
    }
}

impl Compiler {
    /// `cargo` or `rustc` of this compiler, shielded from settings of the outside.
    fn tool(self, name: &str) -> Command {
        let mut command = match self {
            Self::Distribution => Command::new(format!("/usr/bin/{name}")),
            Self::Nightly => Command::new("rustup"),
        };
        for (variable, _) in env::vars_os() {
            if DISTURBING
                .iter()
                .any(|prefix| variable.to_string_lossy().starts_with(prefix))
            {
                command.env_remove(variable);
            }
        }
        match self {
            Self::Distribution => command.env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1"),
            Self::Nightly => command.args(["run", "nightly", name]),
        };
        command
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "");
        command
    }

    /// What to type to have this compiler.
    fn remedy(self) -> String {
        match self {
            Self::Distribution => format!(
                "Debian 12, as root (`cargo xtask build-ebpf --install` does this):\n  \
                 apt-get install -y --no-install-recommends {}\n  LLVM_PREFIX={LLVM_PREFIX} cargo {}",
                DEBIAN.join(" "),
                BPF_LINKER.join(" ")
            ),
            Self::Nightly => String::from(
                "rustup, with the development files of the LLVM that nightly uses:\n  \
                 rustup toolchain install nightly --component rust-src\n  cargo install bpf-linker",
            ),
        }
    }
}

/// Installs the distribution's compiler and the linker.
fn install() -> Result<()> {
    ensure!(
        Path::new("/usr/bin/apt-get").exists(),
        "--install knows Debian and its kin alone"
    );
    apt_install(&DEBIAN)?;
    if bpf_linker().is_none() {
        run(cargo().args(BPF_LINKER).env("LLVM_PREFIX", LLVM_PREFIX))?;
    }
    Ok(())
}

fn bpf_linker() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let installed = cargo_home().join("bin");
    env::split_paths(&path)
        .chain([installed])
        .map(|dir| dir.join("bpf-linker"))
        .find(|file| file.is_file())
}

/// Where cargo keeps what it fetched and installed.
pub fn cargo_home() -> PathBuf {
    env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    )
}

/// The value of `key: value` in what `rustc -vV` prints.
fn field<'a>(version: &'a str, key: &str) -> &'a str {
    version
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
        .unwrap_or("unknown")
}

fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = field(version, "release").split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_is_read_from_verbose_version() {
        let version = "rustc 1.97.0-nightly (abc 2026-05-25)\nrelease: 1.97.0-nightly\nLLVM version: 22.1.8";
        assert_eq!(release(version), Some((1, 97)));
        assert_eq!(field(version, "LLVM version"), "22.1.8");
        assert_eq!(release("rustc 1.97.0"), None);
    }
}
