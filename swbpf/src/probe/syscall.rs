//! The few calls of bpf(2) that aya does not wrap.

use std::{
    ffi::CStr,
    io,
    mem::size_of,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use aya_obj::generated::{BPF_F_TEST_RUN_ON_CPU, bpf_attr, bpf_cmd, bpf_prog_info};

fn bpf(command: bpf_cmd, attr: &mut bpf_attr) -> io::Result<libc::c_long> {
    // SAFETY: the attribute is valid for the call and as large as is said.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_long,
            &raw mut *attr,
            size_of::<bpf_attr>(),
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn zeroed() -> bpf_attr {
    // SAFETY: all members of the union are plain integers.
    unsafe { std::mem::zeroed() }
}

/// Runs a raw tracepoint program once: on `cpu` in whatever context that is in, or in the caller's own.
pub fn run_program(program: BorrowedFd<'_>, cpu: Option<u32>) -> io::Result<()> {
    let mut attr = zeroed();
    attr.test.prog_fd = program.as_raw_fd() as u32;
    if let Some(cpu) = cpu {
        attr.test.flags = BPF_F_TEST_RUN_ON_CPU;
        attr.test.cpu = cpu;
    }
    bpf(bpf_cmd::BPF_PROG_TEST_RUN, &mut attr).map(drop)
}

/// Opens what is pinned at a path: a map, a program or a link.
pub fn open_pin(path: &CStr) -> io::Result<OwnedFd> {
    let mut attr = zeroed();
    attr.__bindgen_anon_4.pathname = path.as_ptr() as u64;
    let fd = bpf(bpf_cmd::BPF_OBJ_GET, &mut attr)?;
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel has just given it to this process; it is closed at `exec`.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Pins it at a path where nothing is.
pub fn pin(object: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
    let mut attr = zeroed();
    attr.__bindgen_anon_4.pathname = path.as_ptr() as u64;
    attr.__bindgen_anon_4.bpf_fd = object.as_raw_fd() as u32;
    bpf(bpf_cmd::BPF_OBJ_PIN, &mut attr).map(drop)
}

/// What the kernel counts of one program.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProgramStats {
    /// Time in the program, while statistics were on.
    pub run_time_ns: u64,
    /// Runs, while statistics were on.
    pub run_count: u64,
    /// Runs skipped because the program was running on that CPU.
    pub recursion_misses: u64,
    /// Instructions that the verifier looked at.
    pub verified_instructions: u32,
}

/// Reads the statistics of one program.
pub fn program_stats(program: BorrowedFd<'_>) -> io::Result<ProgramStats> {
    // SAFETY: plain integers.
    let mut info: bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut attr = zeroed();
    attr.info.bpf_fd = program.as_raw_fd() as u32;
    attr.info.info_len = size_of::<bpf_prog_info>() as u32;
    attr.info.info = &raw mut info as u64;
    bpf(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD, &mut attr)?;
    Ok(ProgramStats {
        run_time_ns: info.run_time_ns,
        run_count: info.run_cnt,
        recursion_misses: info.recursion_misses,
        verified_instructions: info.verified_insns,
    })
}
