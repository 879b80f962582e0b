//! BTF: the description of the kernel's types, of which a container can show another.

use swbpf::job::cgroup::{Controller, Version};
use swbpf::kernel::btf::Btf;
use swbpf::kernel::layout::{Hierarchy, offsets};
use swbpf::kernel::support::{Facts, plan};

/// Those of real kernels.
const REAL: [&[u8]; 3] = [
    include_bytes!("../../tests/fixtures/btf/6.1.btf"),
    include_bytes!("../../tests/fixtures/btf/6.12.btf"),
    include_bytes!("../../tests/fixtures/btf/6.18.btf"),
];
/// A change: the number of a word (two bytes), and what it becomes (four).
const CHANGE: usize = 6;

/// A blob, all that is asked of it, and the plan that is made of it. After a byte 0, 1 or 2 the input is a real one with some
/// words changed: of a blob that is made up from nothing, little is asked.
pub fn btf(data: &[u8]) {
    let blob = match data.split_first() {
        Some((&which, changes)) if usize::from(which) < REAL.len() => {
            changed(REAL[usize::from(which)], changes)
        }
        _ => data.to_vec(),
    };
    let Ok(btf) = Btf::parse(&blob) else { return };
    let memory = Hierarchy::Of(Controller::Memory);
    for version in [Version::V1, Version::V2] {
        for hierarchy in [memory, Hierarchy::Unified] {
            let _ = offsets(&btf, hierarchy, version, 0);
        }
    }
    let mut facts = Facts {
        release: "6.1.0".to_owned(),
        btf: Ok(blob),
        capabilities: u64::MAX,
        withheld: 0,
        is_of_host: true,
        has_kprobes: true,
        lockdown: None,
        is_real_time: false,
        cpus: 64,
    };
    let _ = plan(&mut facts, memory, Version::V2);
}

fn changed(real: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut blob = real.to_vec();
    for change in changes.chunks_exact(CHANGE) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) * 4;
        if let Some(word) = blob.get_mut(at..at + 4) {
            word.copy_from_slice(&change[2..]);
        }
    }
    blob
}
