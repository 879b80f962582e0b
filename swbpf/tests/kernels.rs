//! Kernels that do not run here, by their BTF: `tests/fixtures/btf`, which `cargo xtask btf-fixture` made of Debian's cloud kernels
//! 6.1 and 6.12, and of a 6.18 built for micro virtual machines.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use swbpf::error::Error;
use swbpf::job::cgroup::{Controller, Version};
use swbpf::kernel::btf::Btf;
use swbpf::kernel::ladder::Rung;
use swbpf::kernel::layout::{self, Hierarchy};
use swbpf::kernel::support::{Facts, Plan, plan};
use swbpf_common::offsets::Offsets;

const KERNELS: [&str; 3] = ["6.1", "6.12", "6.18"];

fn blob(kernel: &str) -> Vec<u8> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/btf");
    fs::read(dir.join(format!("{kernel}.btf"))).expect("a fixture")
}

fn btf(kernel: &str) -> Btf {
    Btf::parse(&blob(kernel)).expect("BTF")
}

fn offsets(kernel: &str, controller: Controller, version: Version) -> Offsets {
    layout::offsets(&btf(kernel), Hierarchy::Of(controller), version, 0).expect("a layout")
}

/// As `bpftool btf dump` shows them for these very kernels.
#[test]
fn every_kernel_keeps_things_elsewhere() {
    let told = |kernel| {
        let offsets = offsets(kernel, Controller::Memory, Version::V2);
        [
            offsets.task_cgroups,
            offsets.cgroup_kn,
            offsets.kn_id,
            offsets.item_shmem,
            offsets.item_swap,
            offsets.memcg_usage,
        ]
    };
    assert_eq!(
        KERNELS.map(told),
        [
            [3600, 248, 104, 23, 43, 256],
            [3584, 256, 96, 23, 47, 256],
            [2376, 256, 96, 22, 51, 256],
        ]
    );
}

#[test]
fn where_an_lruvec_has_its_cgroup_differs() {
    let member = |kernel, member| btf(kernel).member("mem_cgroup_per_node", member);
    assert_eq!(
        KERNELS.map(|kernel| member(kernel, "lruvec")),
        [Ok(0), Ok(64), Ok(72)]
    );
    assert_eq!(
        KERNELS.map(|kernel| member(kernel, "memcg")),
        [Ok(2552), Ok(0), Ok(0)]
    );
}

/// A host with this BTF, and nothing in the way.
fn host(release: &str, btf: Vec<u8>) -> Facts {
    Facts {
        release: release.to_owned(),
        btf: Ok(btf),
        capabilities: u64::MAX,
        withheld: 0,
        is_of_host: true,
        has_kprobes: true,
        lockdown: None,
        is_real_time: false,
        cpus: 2,
    }
}

/// What would be tried on a kernel, best first.
fn planned(kernel: &str) -> Plan {
    let hierarchy = Hierarchy::Of(Controller::Memory);
    plan(&mut host(kernel, blob(kernel)), hierarchy, Version::V2).expect("a plan")
}

#[test]
fn a_kernel_without_any_type_lacks_the_hook_first_of_all() {
    let header = [0x1_eb9f, 24, 0, 0, 0, 1];
    let empty: Vec<u8> = header.into_iter().flat_map(u32::to_ne_bytes).chain([0]).collect();
    let refusal = plan(&mut host("4.18", empty), Hierarchy::Unified, Version::V2).err();
    assert!(matches!(refusal, Some(Error::HookAbsent { hook, .. }) if hook == "mod_memcg_lruvec_state"));
}

/// The hooks of the first way of each thing that is heard; what none tells, by its name.
fn hooks(kernel: &str) -> Vec<String> {
    let plan = planned(kernel);
    let all = std::iter::once(&plan.memory).chain(&plan.others);
    all.flat_map(|choice| match choice.ways.first() {
        Some(way) => way.iter().map(|program| program.hook.to_string()).collect(),
        None => vec![format!("no {}", choice.name)],
    })
    .collect()
}

/// As these kernels took them when the programs were attached there.
#[test]
fn every_kernel_has_its_rung() {
    let tracepoints = [
        "tp_btf/sched_switch",
        "tp_btf/cgroup_mkdir",
        "tp_btf/cgroup_rmdir",
        "tp_btf/cgroup_notify_populated",
        "tp_btf/cgroup_attach_task",
        "tp_btf/sched_process_fork",
        "tp_btf/sched_process_exit",
        "tp_btf/mark_victim",
    ];
    let with = |memory: &[&str], flush: &str| {
        let hooks = memory.iter().chain(&tracepoints).chain(std::iter::once(&flush));
        hooks.map(ToString::to_string).collect::<Vec<_>>()
    };
    let by_function = with(
        &["fentry/__mod_memcg_lruvec_state", "fentry/__mod_memcg_state"],
        "fentry/cgroup_rstat_flush",
    );
    let by_tracepoint = with(
        &[
            "tp_btf/mod_memcg_lruvec_state",
            "tp_btf/mod_memcg_state",
            "tp_btf/mod_memcg_state",
        ],
        "tp_btf/memcg_flush_stats",
    );
    assert_eq!(
        KERNELS.map(hooks),
        [by_function.clone(), by_function, by_tracepoint]
    );
}

#[test]
fn why_no_better_rung_is_told() {
    let refused = |kernel| planned(kernel).memory.refused;
    for kernel in ["6.1", "6.12"] {
        let [(rung, reason)] = &refused(kernel)[..] else {
            panic!("{kernel}: {:?}", refused(kernel));
        };
        assert_eq!(*rung, Rung::Tracepoint, "{kernel}");
        assert!(
            reason.contains("no tracepoint mod_memcg_lruvec_state"),
            "{kernel}: {reason}"
        );
    }
    assert_eq!(refused("6.18"), []);
}

#[test]
fn a_rung_that_is_asked_for_is_the_only_one_or_is_refused() {
    for kernel in KERNELS {
        let plan = planned(kernel).on(Rung::Kprobe).expect("functions");
        let rungs: Vec<_> = plan
            .memory
            .ways
            .iter()
            .flatten()
            .map(|program| program.hook.rung)
            .collect();
        assert_eq!(rungs, [Rung::Kprobe; 2], "{kernel}");
    }
    for kernel in ["6.1", "6.12"] {
        let refusal = planned(kernel)
            .on(Rung::Tracepoint)
            .err()
            .map(|error| error.to_string());
        assert!(
            refusal.is_some_and(|line| line.contains("mod_memcg_lruvec_state")),
            "{kernel}"
        );
    }
    assert!(planned("6.18").on(Rung::Tracepoint).is_ok());
}

/// Whatever is asked of a blob.
fn ask(bytes: &[u8]) -> Result<Offsets, String> {
    let btf = Btf::parse(bytes).map_err(|error| error.to_string())?;
    let hierarchies = [
        Hierarchy::Of(Controller::Memory),
        Hierarchy::Of(Controller::Freezer),
        Hierarchy::Unified,
    ];
    let told = hierarchies.map(|hierarchy| layout::offsets(&btf, hierarchy, Version::V1, 0));
    for hook in ["sched_switch", "mark_victim", "cgroup_mkdir"] {
        let _ = (btf.has_tracepoint(hook), btf.tracepoint_struct(hook, 0));
    }
    let _ = btf.has_function("__mod_memcg_lruvec_state", "lruvec", 3);
    let [memory, ..] = told;
    memory.map_err(|error| error.to_string())
}

fn is_clear(error: &str) -> bool {
    error.contains("BTF") && !error.chars().any(char::is_control)
}

#[test]
fn whole_blobs_answer() {
    for kernel in KERNELS {
        assert!(ask(&blob(kernel)).is_ok(), "{kernel}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_blob_that_is_cut_short_is_told(kernel in prop::sample::select(&KERNELS[..]), cut in any::<prop::sample::Index>()) {
        let bytes = blob(kernel);
        let error = ask(&bytes[..cut.index(bytes.len())]).expect_err("its strings are the last of it");
        prop_assert!(is_clear(&error), "{}", error);
    }

    #[test]
    fn flipped_bits_give_an_answer_or_a_clear_error(
        kernel in prop::sample::select(&KERNELS[..]),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u32..8), 1..200),
    ) {
        let mut bytes = blob(kernel);
        let length = bytes.len();
        for (at, bit) in flips {
            bytes[at.index(length)] ^= 1 << bit;
        }
        if let Err(error) = ask(&bytes) {
            prop_assert!(is_clear(&error), "{}", error);
        }
    }

    #[test]
    fn garbage_behind_a_good_header_gives_a_clear_error(garbage in prop::collection::vec(any::<u8>(), 0..4000)) {
        // The header says that all that follows is types, and that there are no strings.
        let length = garbage.len() as u32;
        let header = [0x1_eb9f, 24, 0, length, length, 0];
        let bytes: Vec<u8> = header.into_iter().flat_map(u32::to_ne_bytes).chain(garbage).collect();
        let error = ask(&bytes).expect_err("no type has a name");
        prop_assert!(is_clear(&error), "{}", error);
    }
}
