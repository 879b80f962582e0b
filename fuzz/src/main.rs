//! One target under libFuzzer: `cargo xtask fuzz`. All are in one program, which takes a tenth of the time to link that one for
//! each would.

#![no_main]

use std::sync::LazyLock;

/// Names the target.
const NAME: &str = "SWBPF_FUZZ_TARGET";

static TARGET: LazyLock<swbpf_fuzz::Target> = LazyLock::new(|| {
    let name = std::env::var(NAME).unwrap_or_default();
    let found = swbpf_fuzz::TARGETS.into_iter().find(|(known, _)| *known == name);
    let Some((_, target)) = found else {
        panic!("{NAME} names no target: {name:?}");
    };
    target
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
