//! Kernel programs of sw-bpf. On the host this package is an empty program, so that plain `cargo check` needs no BPF
//! toolchain; `cargo xtask build-ebpf` makes the object.
#![cfg_attr(
    target_arch = "bpf",
    no_std,
    no_main,
    feature(core_intrinsics),
    expect(
        internal_features,
        reason = "core::sync::atomic has no read-modify-write on this target"
    )
)]

#[cfg(target_arch = "bpf")]
mod atomic;
#[cfg(target_arch = "bpf")]
mod birth;
#[cfg(target_arch = "bpf")]
mod check;
#[cfg(target_arch = "bpf")]
mod floor;
#[cfg(target_arch = "bpf")]
mod flush;
#[cfg(target_arch = "bpf")]
mod function;
#[cfg(target_arch = "bpf")]
mod kernel;
#[cfg(target_arch = "bpf")]
mod lifecycle;
#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod memory;
#[cfg(target_arch = "bpf")]
mod notice;
#[cfg(target_arch = "bpf")]
mod oom;
#[cfg(target_arch = "bpf")]
mod peak;
#[cfg(target_arch = "bpf")]
mod sched;
#[cfg(target_arch = "bpf")]
mod track;

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: no path leads here: the verifier would refuse the endless loop.
    unsafe { core::hint::unreachable_unchecked() }
}

/// Without it the kernel lends no tracing helper.
#[cfg(target_arch = "bpf")]
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[cfg(not(target_arch = "bpf"))]
fn main() {}
