//! The first file system of a virtual machine: busybox, `init`, and the modules that reach the host's files.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use object::{Object as _, ObjectSection as _};

use crate::command::output;

const INIT: &str = include_str!("init");

/// Modules that are needed, where they are not built in.
const MODULES: [&str; 4] = ["virtio_pci", "virtio_console", "virtiofs", "overlay"];

/// Directories that `init` mounts on.
const DIRECTORIES: [&str; 8] = ["bin", "proc", "sys", "dev", "modules", "lower", "layer", "new"];

/// Writes the archive `to`, with what lies below `modules`, and `repository` as the place to mount the repository.
pub fn write(modules: &Path, busybox: &Path, repository: &Path, to: &Path) -> Result<()> {
    let tree = tempfile::tempdir().context("cannot make a temporary directory")?;
    let tree = tree.path();
    for dir in DIRECTORIES {
        fs::create_dir(tree.join(dir))?;
    }
    fs::copy(busybox, tree.join("bin/busybox")).with_context(|| busybox.display().to_string())?;
    let init = tree.join("init");
    fs::write(&init, INIT)?;
    fs::set_permissions(&init, PermissionsExt::from_mode(0o755))?;
    fs::write(tree.join("root-path"), repository.as_os_str().as_encoded_bytes())?;
    let mut collection = Modules {
        files: HashMap::new(),
        order: Vec::new(),
    };
    collection.find(modules)?;
    for name in MODULES {
        collection.add(name, &tree.join("modules"))?;
    }
    let order = collection.order.join("\n") + "\n";
    fs::write(tree.join("order"), order)?;
    pack(tree, busybox, to)
}

struct Modules {
    /// Where each module lies, by its name as the kernel spells it.
    files: HashMap<String, PathBuf>,
    /// Those that are taken, each after all that it depends on.
    order: Vec<String>,
}

impl Modules {
    fn find(&mut self, dir: &Path) -> Result<()> {
        for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                self.find(&entry.path())?;
            } else if let Some((name, _)) = entry.file_name().to_string_lossy().split_once(".ko") {
                self.files.insert(name.replace('-', "_"), entry.path());
            }
        }
        Ok(())
    }

    /// Puts a module into `to`, and those it depends on before it. One that has no file is built in.
    fn add(&mut self, name: &str, to: &Path) -> Result<()> {
        let Some(file) = self.files.remove(name) else {
            return Ok(());
        };
        let module = uncompressed(&file)?;
        for needed in dependencies(&module).with_context(|| file.display().to_string())? {
            self.add(&needed, to)?;
        }
        fs::write(to.join(format!("{name}.ko")), module)?;
        self.order.push(name.to_owned());
        Ok(())
    }
}

fn uncompressed(file: &Path) -> Result<Vec<u8>> {
    if file.extension().is_some_and(|extension| extension == "ko") {
        return fs::read(file).with_context(|| file.display().to_string());
    }
    let xz = Command::new("xz")
        .args(["--decompress", "--stdout"])
        .arg(file)
        .output()
        .context("cannot start xz")?;
    ensure!(xz.status.success(), "cannot read {}", file.display());
    Ok(xz.stdout)
}

/// The modules that a module names as those it depends on (`depends=` of its section `.modinfo`).
fn dependencies(module: &[u8]) -> Result<Vec<String>> {
    let file = object::File::parse(module)?;
    let Some(section) = file.section_by_name(".modinfo") else {
        bail!("no module of the kernel");
    };
    let entries = section.data()?.split(|byte| *byte == 0);
    let names = entries.filter_map(|entry| entry.strip_prefix(b"depends="));
    Ok(names
        .flat_map(|names| names.split(|byte| *byte == b','))
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).replace('-', "_"))
        .collect())
}

/// Packs `tree` as the kernel reads it.
fn pack(tree: &Path, busybox: &Path, to: &Path) -> Result<()> {
    let names = output(Command::new(busybox).arg("find").current_dir(tree))?;
    let archive = File::create(to).with_context(|| to.display().to_string())?;
    let mut cpio = Command::new(busybox)
        .args(["cpio", "-o", "-H", "newc"])
        .current_dir(tree)
        .stdin(Stdio::piped())
        .stdout(archive)
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", busybox.display()))?;
    if let Some(mut stdin) = cpio.stdin.take() {
        writeln!(stdin, "{names}")?;
    }
    ensure!(cpio.wait()?.success(), "cannot write {}", to.display());
    Ok(())
}
