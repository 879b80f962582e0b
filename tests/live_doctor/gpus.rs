//! The driver's library: spoilt, of another kind, one that hangs, one that answers.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::command::output;
use support::doctor::Diagnosis;
use tempfile::TempDir;

use super::{diagnosed, doctor};

const NAME: &str = "libnvidia-ml.so.1";

/// Compiles a library of that name.
fn library(source: &str) -> TempDir {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("nvml.c");
    fs::write(&path, source).expect("a file");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"])
        .arg(dir.path().join(NAME))
        .arg(path);
    let output = output(&mut cc);
    assert!(output.status.success(), "{output:?}");
    dir
}

/// What is said where the library is looked for in this directory first.
fn with(dir: &Path) -> Diagnosis {
    Diagnosis::of(doctor(&["--json"]).env("LD_LIBRARY_PATH", dir))
}

fn has_gpu() -> bool {
    Path::new("/dev/nvidia0").exists()
}

#[test]
fn no_gpu_is_a_fact() {
    if has_gpu() {
        return support::skipped("this machine has a GPU");
    }
    let diagnosis = Diagnosis::of(&mut doctor(&["--json"]));
    diagnosis.assert("gpus", "ok", "no device file of an NVIDIA GPU", "");
}

#[test]
fn a_gpu_without_the_library_is_told() {
    if has_gpu() || !support::need_bpf() {
        return;
    }
    let diagnosis = diagnosed("mount -t tmpfs none /dev; touch /dev/nvidia0 /dev/nvidiactl; doctor");
    diagnosis.assert(
        "gpus",
        "degraded",
        "1 device file of an NVIDIA GPU, and no libnvidia-ml.so.1",
        "NVML",
    );
}

#[test]
fn garbage_in_place_of_the_library_is_told() {
    let dir = TempDir::new().expect("a directory");
    fs::write(dir.path().join(NAME), [0x7f; 1000]).expect("a file");
    with(dir.path()).assert("gpus", "degraded", "cannot be used", "NVML");
}

#[test]
fn a_library_of_another_kind_is_told() {
    let dir = library("int other(void) { return 0; }");
    with(dir.path()).assert("gpus", "degraded", "nvmlInit", "NVML");
}

#[test]
fn a_library_that_hangs_is_given_up() {
    let dir = library("#include <unistd.h>\nint nvmlInit_v2(void) { for (;;) sleep(60); }");
    with(dir.path()).assert("gpus", "degraded", "did not answer within 5 s", "");
}

#[test]
fn a_driver_that_is_not_loaded_is_told_in_the_librarys_words() {
    // NVML_ERROR_DRIVER_NOT_LOADED
    let dir = library("int nvmlInit_v2(void) { return 9; }");
    let verdict = if has_gpu() { "degraded" } else { "ok" };
    with(dir.path()).assert("gpus", verdict, "driver", "");
}

/// A name that clears a screen, and a driver's version without an end.
const ANSWERS: &str = r#"
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(index + 1L); return 0; }
int nvmlDeviceGetName(void *device, char *name, unsigned length) { strncpy(name, "A\033[2J", length); return 0; }
int nvmlSystemGetDriverVersion(char *version, unsigned length) { strncpy(version, "550.1", length); return 0; }
"#;

#[test]
fn a_library_that_answers_names_the_gpus() {
    let dir = library(ANSWERS);
    with(dir.path()).assert("gpus", "ok", "A\u{1b}[2J, A\u{1b}[2J; driver 550.1", "");
    let output = output(doctor(&[]).env("LD_LIBRARY_PATH", dir.path()));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(r"A\u{1b}[2J"), "{text}");
    assert!(
        text.bytes()
            .all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte))
    );
}
