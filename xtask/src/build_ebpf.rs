//! `cargo xtask build-ebpf`: compiles the kernel programs to the object that is committed under `swbpf/bpf`.
//!
//! The object is the same, byte for byte, wherever the same toolchain makes it: paths are remapped, and what only helps
//! a debugger is dropped. `.BTF` and `.BTF.ext` stay: the kernel wants them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use object::build::elf::{Builder, SectionData};
use object::elf::SHT_STRTAB;

use crate::atomics;
use crate::command::{root, run as run_command, target_dir};
use crate::sources;
use crate::toolchain::{Toolchain, cargo_home};

const TARGET: &str = "bpfel-unknown-none";

/// `bpf_target_arch` is fixed: no program reads registers, and so one object serves every processor.
/// The atomics that return a value need `target-cpu=v3`; BTF is made out of the debug information.
const RUSTFLAGS: [&str; 3] = [
    "--cfg=bpf_target_arch=\"x86_64\"",
    "-Clink-arg=--btf",
    "-Ctarget-cpu=v3",
];

/// A profile of its own, so that settings for host programs do not reach the kernel's.
const PROFILE: [&str; 10] = [
    "inherits=\"release\"",
    "codegen-units=1",
    "debug=2",
    "debug-assertions=false",
    "incremental=false",
    "lto=false",
    "opt-level=3",
    "overflow-checks=false",
    "panic=\"abort\"",
    "strip=\"none\"",
];

/// Compile the kernel programs to swbpf/bpf/swbpf.bpf.o
#[derive(clap::Args)]
pub struct Args {
    /// Install what is missing: on Debian, as root
    #[arg(long)]
    install: bool,
    /// Change nothing: rebuild elsewhere and compare with the committed object
    #[arg(long)]
    verify: bool,
}

/// Builds or verifies the object.
pub fn run(args: &Args) -> Result<()> {
    let toolchain = if args.install {
        Toolchain::find_or_install()?
    } else {
        Toolchain::find()?
    };
    if args.verify {
        verify(&toolchain)
    } else {
        build(&toolchain)
    }
}

/// Compiles the object and puts it in its place with the record of its sources.
pub fn build(toolchain: &Toolchain) -> Result<()> {
    let record = sources::sources(&root(), &flags())?;
    // A directory of its own: the workspace's is another compiler's.
    let object = compile(toolchain, &target_dir().join("ebpf"))?;
    let record = sources::record(&record, &toolchain.identity, &object);
    let changed = put(&object_path(), &object)? | put(&record_path(), record.as_bytes())?;
    let state = if changed { "new" } else { "unchanged" };
    println!(
        "swbpf/bpf/swbpf.bpf.o: {state}, {} bytes, by {}",
        object.len(),
        toolchain.identity
    );
    Ok(())
}

/// Fails where the committed object is not made of the sources of today, naming what changed.
pub fn check_fresh() -> Result<()> {
    let remedy = "run `cargo xtask build-ebpf` and commit what it makes";
    let (object, record) = committed().context(remedy)?;
    let changed = sources::changed(&record, &sources::sources(&root(), &flags())?);
    ensure!(
        changed.is_empty(),
        "swbpf/bpf/swbpf.bpf.o is stale: {remedy}\n  {}",
        changed.join("\n  ")
    );
    let told = sources::value(&record, "object");
    ensure!(
        told == Some(&sources::sha256(&object)),
        "swbpf/bpf/swbpf.bpf.o is not the recorded one: {remedy}"
    );
    Ok(())
}

fn verify(toolchain: &Toolchain) -> Result<()> {
    check_fresh()?;
    let (object, record) = committed()?;
    let made_by = sources::value(&record, "made by").unwrap_or("unknown");
    let elsewhere = tempfile::tempdir().context("cannot make a temporary directory")?;
    if compile(toolchain, elsewhere.path())? != object {
        ensure!(
            made_by == toolchain.identity,
            "the bytes cannot be compared: the committed object was made by {made_by}; here is {}",
            toolchain.identity
        );
        bail!("swbpf/bpf/swbpf.bpf.o differs from what its sources give, though {made_by} made both");
    }
    println!(
        "swbpf/bpf/swbpf.bpf.o: verified, sources and bytes are the same, by {}",
        toolchain.identity
    );
    Ok(())
}

fn committed() -> Result<(Vec<u8>, String)> {
    let object = fs::read(object_path()).context("swbpf/bpf/swbpf.bpf.o")?;
    let record = fs::read_to_string(record_path()).context("swbpf/bpf/swbpf.bpf.o.sources")?;
    Ok((object, record))
}

fn object_path() -> PathBuf {
    root().join("swbpf/bpf/swbpf.bpf.o")
}

fn record_path() -> PathBuf {
    root().join("swbpf/bpf/swbpf.bpf.o.sources")
}

/// What decides the object's bytes beside its sources; paths of this machine are not among it.
fn flags() -> Vec<String> {
    RUSTFLAGS
        .iter()
        .chain(&PROFILE)
        .map(ToString::to_string)
        .collect()
}

/// Compiles the object, with `dir` for what is made on the way.
fn compile(toolchain: &Toolchain, dir: &Path) -> Result<Vec<u8>> {
    run_command(&mut compilation(toolchain, dir))?;
    let built = dir.join(TARGET).join("bpf/swbpf-ebpf");
    let bytes = fs::read(&built).with_context(|| built.display().to_string())?;
    atomics::check(&bytes)?;
    strip(&bytes).with_context(|| format!("cannot strip {}", built.display()))
}

fn compilation(toolchain: &Toolchain, dir: &Path) -> Command {
    let mut cargo = toolchain.cargo();
    cargo.current_dir(root());
    cargo.args([
        "build",
        "--quiet",
        "--locked",
        "--package=swbpf-ebpf",
        "-Zbuild-std=core",
    ]);
    cargo
        .args(["--target", TARGET, "--profile=bpf", "--target-dir"])
        .arg(dir);
    for setting in PROFILE {
        cargo.arg("--config").arg(format!("profile.bpf.{setting}"));
    }
    let mut rustflags = RUSTFLAGS.map(String::from).to_vec();
    rustflags.extend(remaps(toolchain));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rustflags.join("\x1f"));
    cargo
}

/// Names in place of the paths of this machine.
fn remaps(toolchain: &Toolchain) -> Vec<String> {
    let registry = cargo_home().join("registry/src");
    let library = toolchain.library.clone();
    let real_library = library.canonicalize().unwrap_or_else(|_| library.clone());
    [
        (root(), "."),
        (registry, "crates"),
        (library, "library"),
        (real_library, "library"),
    ]
    .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
    .to_vec()
}

/// Drops the sections that serve a debugger alone.
fn strip(object: &[u8]) -> Result<Vec<u8>> {
    let mut builder = Builder::read64(object)?;
    for section in &mut builder.sections {
        let name = section.name.to_string();
        section.delete = name.starts_with(".debug") || name.starts_with(".rel.debug");
    }
    builder.delete_orphans();
    // LLVM keeps the names of sections among those of symbols; the writer wants a section for them.
    let names = builder.sections.add();
    names.name = ".shstrtab".into();
    names.sh_type = SHT_STRTAB;
    names.sh_addralign = 1;
    names.data = SectionData::SectionString;
    let mut stripped = Vec::new();
    builder.write(&mut stripped)?;
    Ok(stripped)
}

/// Writes `bytes` to `path` in one step where they differ from what is there, and tells whether they did: a build that
/// embeds the file is not made to run again for nothing, nor does it ever see half of it.
fn put(path: &Path, bytes: &[u8]) -> Result<bool> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(false);
    }
    let half = path.with_extension("new");
    fs::write(&half, bytes).with_context(|| half.display().to_string())?;
    fs::rename(&half, path).with_context(|| path.display().to_string())?;
    Ok(true)
}
