//! Kernels that do not run here, by their BTF: `tests/fixtures/btf`, which `cargo xtask btf-fixture` made of Debian's cloud kernels
//! 6.1 and 6.12, and of a 6.18 built for micro virtual machines.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use swbpf::job::cgroup::{Controller, Version};
use swbpf::kernel::btf::Btf;
use swbpf::kernel::layout::{self, Hierarchy};
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
