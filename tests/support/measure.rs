//! Measures programs with `sw-bpf`, or with the kernel programs loaded in this process. Whatever is started or made here
//! ends with the value that stands for it.

mod process;
mod run;

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs};

use swbpf::job::cgroup::{Cgroup, Controller, Hierarchies, OwnCgroup};
use swbpf::kernel::ladder::Rung;
use swbpf::kernel::layout::Hierarchy;
use swbpf::kernel::support::{Facts, Plan, plan};
use swbpf::probe::{Probe, Room};
use swbpf::snapshot::Snapshot;

use crate::command::{source, sw_bpf};
use crate::pace::scaled;

pub use process::Process;
pub use run::{Measured, Run};

/// 1 MiB.
pub const MIB: u64 = 1 << 20;

/// Longer than anything here takes on a slow machine, as [`scaled`]: what is not there by then hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// Cgroups that a test may track at once.
const CAPACITY: u32 = 8;

/// A program of this workspace, built beside the tests.
///
/// # Panics
///
/// Where it has not been built.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    let own = env::current_exe().expect("the path of this program");
    // PROFILE/deps/TEST, or PROFILE/PROGRAM.
    let dir = own.parent().expect("the directory of this program");
    let is_test = dir.file_name().is_some_and(|name| name == "deps");
    let profile = if is_test { dir.parent() } else { Some(dir) };
    let profile = profile.expect("the directory of the build");
    let path = profile.join(name);
    assert!(
        path.exists(),
        "{} is missing: `cargo xtask test` builds it; by hand, `cargo build -p swbpf -p swbpf-workloads` in the same profile",
        path.display()
    );
    path
}

/// `sw-bpf --once --json` with these arguments.
///
/// # Panics
///
/// Where it fails.
#[must_use]
pub fn once(arguments: &[&str]) -> Snapshot {
    let mut command = sw_bpf(&["--once", "--json"]);
    let output = command.args(arguments).output().expect("sw-bpf starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {told}", output.status);
    serde_json::from_slice(&output.stdout).expect("one snapshot")
}

/// `sw-bpf attach`, which follows a cgroup until it is empty: a line a second, then the summary.
#[must_use]
pub fn attach(cgroup: &Cgroup) -> Process {
    Process::start(sw_bpf(&["attach", "--cgroup"]).arg(cgroup.path()))
}

/// A cgroup for one test.
///
/// # Panics
///
/// Where none can be made.
#[must_use]
pub fn own_cgroup() -> OwnCgroup {
    let hierarchies = Hierarchies::detect().expect("a cgroup hierarchy");
    OwnCgroup::create(&hierarchies).expect("a cgroup of its own")
}

/// Makes a cgroup below another, whose memory is counted on its own.
///
/// # Panics
///
/// Where it cannot be made. On version 2 no process may be in the one above.
#[must_use]
pub fn cgroup_below(above: &Path, name: &str) -> PathBuf {
    count_memory_below(above);
    let path = above.join(name);
    fs::create_dir(&path).expect("a cgroup");
    path
}

/// Has the memory of what lies right below a cgroup counted: on version 1 it always is.
///
/// # Panics
///
/// Where it cannot be.
pub fn count_memory_below(above: &Path) {
    let control = above.join("cgroup.subtree_control");
    if control.exists() {
        fs::write(&control, "+memory").expect("a cgroup without processes");
    }
}

/// What is loaded on this machine, on the rung that the tests are to have.
///
/// # Panics
///
/// Where nothing can be.
#[must_use]
pub fn plan_here() -> Plan {
    let hierarchies = Hierarchies::detect().expect("a cgroup hierarchy");
    let version = hierarchies
        .version_of(Controller::Memory)
        .expect("a hierarchy that counts memory");
    let plan = plan(&mut Facts::gather(), Hierarchy::Of(Controller::Memory), version);
    let plan = plan.expect("a kernel that can count");
    let rung = match source().as_deref() {
        None | Some("kernel") => return plan,
        Some("tracepoint") => Rung::Tracepoint,
        Some("fentry") => Rung::Fentry,
        Some("kprobe") => Rung::Kprobe,
        Some(source) => panic!("{source} loads no kernel programs"),
    };
    plan.on(rung).expect("a hook of this rung")
}

/// Kernel memory that each CPU may have taken off the charge and not yet off the statistics, in bytes: `uncharge_batch` does one
/// after the other, for as many folios as a `folio_batch` holds. Until then it is needed memory that is charged to no one.
///
/// # Panics
///
/// Where the CPUs cannot be counted.
#[must_use]
pub fn on_its_way_back() -> u64 {
    let cpus = std::thread::available_parallelism().expect("a number").get();
    cpus as u64 * 31 * 4096
}

/// The kernel programs, in the hands of this process.
///
/// # Panics
///
/// Where they cannot be loaded.
#[must_use]
pub fn load_probe() -> Probe {
    Probe::load(&plan_here(), Room::targets(CAPACITY), None).expect("the kernel programs")
}

/// Waits for what is on its way.
///
/// # Panics
///
/// Where it does not come.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + scaled(PATIENCE);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: it did not come true");
        sleep(Duration::from_millis(10));
    }
}
