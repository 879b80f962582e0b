//! `sw-bpf --once --all-nodes` on a real Slurm, whose two nodes are on this host.

mod forms;
mod lost;
mod sums;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use jsonschema::Validator;
use serde_json::Value;
use support::command::snapshot;
use support::measure::{MIB, program, wait_until};
use support::slurm::{Answer, Config, JobId, Slurm, cgroups, run};
use support::{need_bpf, need_slurm};

/// How long a command may take: Slurm gives a node that does not react up by itself after 20 s, sw-bpf after 31 s.
const LIMIT: Duration = Duration::from_mins(1);

/// What each node's task holds, in MiB.
const HELD: [u64; 2] = [20, 60];

/// What a node's part of a job has beside it: page tables, the workload's own footprint, shells and the clients of Slurm that
/// run in the job, and a daemon for each step, that of sw-bpf among them.
const BESIDE: u64 = 16 * MIB;

/// The published form of the answer.
static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/all-nodes.schema.json");
    let text = fs::read_to_string(path).expect("docs/all-nodes.schema.json");
    let schema = serde_json::from_str(&text).expect("a schema");
    jsonschema::validator_for(&schema).expect("a valid schema")
});

/// Whether a cluster can run here whose jobs the kernel programs can count.
fn need() -> bool {
    need_slurm() && need_bpf()
}

/// A cluster of two nodes with sw-bpf on them.
fn cluster() -> Slurm {
    let slurm = Slurm::start(&Config {
        nodes: 2,
        ..Config::default()
    });
    fs::copy(program("sw-bpf"), slurm.dir("bin").join("sw-bpf")).expect("a program");
    slurm
}

/// A script that holds [`HELD`] on the nodes, and runs `beside` on the second one.
fn hold(beside: &str) -> String {
    let [first, second] = HELD;
    format!(
        "#!/bin/sh\nsrun -N2 -n2 --overlap sh -c 'if [ $SLURM_PROCID = 0 ]; then mib={first}; else mib={second}; {beside} fi; \
         workload anon --size ${{mib}}M --hold-ms 300000'\n"
    )
}

/// Hands a job to both nodes as root, and waits until it holds its memory there.
fn held_by_root(slurm: &Slurm, beside: &str) -> JobId {
    let script = slurm.dir("work").join("roots");
    fs::write(&script, hold(beside)).expect("a script");
    let script = script.to_str().expect("text");
    let options = ["--parsable", "--output=/dev/null", "-N2", "-n2", "--mem=300M"];
    let id = slurm.client("sbatch", &[&options[..], &[script]].concat());
    let job = JobId(id.parse().expect("an id"));
    wait_held(0, job);
    job
}

/// The same as the user.
fn held_by_user(slurm: &Slurm) -> JobId {
    let job = slurm.sbatch(&hold(""), &["-N2", "-n2", "--mem=300M"]);
    wait_held(slurm.user().uid, job);
    job
}

fn wait_held(uid: u32, job: JobId) {
    wait_until("the job holds its memory on both nodes", || {
        let nodes = [1, 2].map(|node| cgroups::job("memory", &cgroups::node(node), uid, job.0));
        nodes
            .iter()
            .zip(HELD)
            .all(|(dir, mib)| cgroups::usage_bytes(dir).is_some_and(|held| held >= mib * MIB))
    });
}

/// `sw-bpf --once --all-nodes` with these arguments, as root or as the user.
fn all_nodes(mut command: Command, arguments: &[&str]) -> Answer {
    command.args(["--once", "--all-nodes"]).args(arguments);
    run(&mut command, LIMIT)
}

fn root(slurm: &Slurm) -> Command {
    slurm.as_root("sw-bpf")
}

fn user(slurm: &Slurm) -> Command {
    slurm.as_user("sw-bpf")
}

/// The object that it printed, and its exit code; all of it has the published form.
fn gathered(answer: &Answer) -> (Value, Option<i32>) {
    let line = answer
        .stdout
        .strip_suffix('\n')
        .unwrap_or_else(|| panic!("{answer:?}"));
    let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    for node in value["nodes"].as_array().expect("nodes") {
        assert_ne!(node["snapshot"].is_null(), node["reason"].is_null(), "{node}");
        if !node["snapshot"].is_null() {
            let _ = snapshot(&node["snapshot"].to_string());
        }
    }
    let faults: Vec<_> = SCHEMA
        .iter_errors(&value)
        .map(|fault| fault.instance_path.to_string())
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
    (value, answer.status.code())
}

fn bytes(value: &Value, pointer: &str) -> u64 {
    let number = value.pointer(pointer).and_then(Value::as_u64);
    number.unwrap_or_else(|| panic!("no {pointer}: {value}"))
}
