//! The only file that follows pointers of the kernel.
//!
//! The arguments of tracepoints and of functions have types that the verifier knows: it checks the member at each offset,
//! and the kernel turns a load from a bad address into 0. Where there is only an address, a helper checks each load.

use core::{marker::PhantomData, mem::MaybeUninit};

use aya_ebpf::helpers::{bpf_probe_read_kernel, generated::bpf_probe_read_kernel_str};
use swbpf_common::slot::NAME_LEN;

use crate::maps::offset;

/// How members are read.
pub trait Load: Copy {
    /// Whether the verifier knows the pointer's type: then it cannot be passed on as an integer.
    const IS_TYPED: bool;

    /// The value at an address; 0 where there is none.
    unsafe fn load<T: Copy>(at: *const T) -> T;
}

/// By a pointer whose type the verifier knows.
#[derive(Clone, Copy)]
pub struct Typed;

/// By an address.
#[derive(Clone, Copy)]
pub struct Checked;

impl Load for Typed {
    const IS_TYPED: bool = true;

    #[inline(always)]
    unsafe fn load<T: Copy>(at: *const T) -> T {
        // SAFETY: the caller's pointer is BTF-typed and the offset is the member's in this kernel.
        unsafe { at.read_volatile() }
    }
}

impl Load for Checked {
    const IS_TYPED: bool = false;

    #[inline(always)]
    unsafe fn load<T: Copy>(at: *const T) -> T {
        // SAFETY: the helper checks the address; all that is read is made of integers and pointers.
        unsafe { bpf_probe_read_kernel(at).unwrap_or(MaybeUninit::zeroed().assume_init()) }
    }
}

/// `struct cgroup_subsys_state`. `struct mem_cgroup` and `struct cgroup` begin with one.
#[derive(Clone, Copy)]
pub struct Css<L = Typed>(pub *const u8, PhantomData<L>);

/// `struct cgroup`
#[derive(Clone, Copy)]
pub struct Cgroup(pub *const u8);

/// `struct task_struct`
#[derive(Clone, Copy)]
pub struct Task<L = Typed>(pub *const u8, PhantomData<L>);

#[inline(always)]
unsafe fn member<L: Load, T: Copy>(base: *const u8, offset: u32) -> T {
    // SAFETY: the caller's.
    unsafe { L::load(base.add(offset as usize).cast::<T>()) }
}

impl<L> Css<L> {
    /// The state at `address`.
    #[inline(always)]
    pub fn new(address: *const u8) -> Self {
        Self(address, PhantomData)
    }
}

impl Css<Checked> {
    /// The memory cgroup of a `struct lruvec`, which is a member of its `struct mem_cgroup_per_node`.
    #[inline(always)]
    pub fn of_lruvec(lruvec: *const u8) -> Self {
        // SAFETY: mem_cgroup_per_node.memcg; the helper checks the address.
        let memcg = unsafe { Checked::load(lruvec.offset(offset!(lruvec_memcg) as isize).cast()) };
        Self::new(memcg)
    }
}

impl<L: Load> Css<L> {
    /// Number that no other state has, nor ever had.
    #[inline(always)]
    pub fn serial(self) -> u64 {
        // SAFETY: u64 cgroup_subsys_state.serial_nr
        unsafe { member::<L, _>(self.0, offset!(css_serial)) }
    }

    /// Id of its cgroup: the inode number of the directory.
    #[inline(always)]
    pub fn cgroup_id(self) -> u64 {
        // SAFETY: cgroup_subsys_state.cgroup -> cgroup.kn -> u64 kernfs_node.id
        unsafe {
            let cgroup: *const u8 = member::<L, _>(self.0, offset!(css_cgroup));
            let node: *const u8 = member::<L, _>(cgroup, offset!(cgroup_kn));
            member::<L, _>(node, offset!(kn_id))
        }
    }

    /// That of the parent cgroup.
    #[inline(always)]
    pub fn parent(self) -> Option<Self> {
        // SAFETY: cgroup_subsys_state.parent
        let parent: *const u8 = unsafe { member::<L, _>(self.0, offset!(css_parent)) };
        (!parent.is_null()).then_some(Self::new(parent))
    }
}

impl Css {
    /// Its cgroup.
    #[inline(always)]
    pub fn cgroup(self) -> Cgroup {
        // SAFETY: cgroup_subsys_state.cgroup
        unsafe { Cgroup(member::<Typed, _>(self.0, offset!(css_cgroup))) }
    }
}

impl Cgroup {
    /// Its own state, whichever controllers it has. What is above it there is what is above it in the tree, and its cgroup's
    /// id is the same as that of its state in any controller.
    #[inline(always)]
    pub fn css(self) -> Css {
        // `cgroup.self` stands at its begin.
        Css::new(self.0)
    }

    /// Address of the root of its hierarchy.
    #[inline(always)]
    pub fn root(self) -> u64 {
        // SAFETY: cgroup.root
        unsafe { member::<Typed, _>(self.0, offset!(cgroup_root)) }
    }

    /// Copies the name of its directory, cut off where it is longer, with its end mark.
    #[inline(always)]
    pub fn name(self, name: *mut [u8; NAME_LEN]) {
        // SAFETY: cgroup.kn -> const char *kernfs_node.name; the copy is as long as its target at most.
        unsafe {
            let node: *const u8 = member::<Typed, _>(self.0, offset!(cgroup_kn));
            let from: *const u8 = member::<Typed, _>(node, offset!(kn_name));
            bpf_probe_read_kernel_str(name.cast(), NAME_LEN as u32, from.cast());
        }
    }
}

/// A page counter of a memory cgroup.
#[derive(Clone, Copy)]
pub enum Counter {
    /// `mem_cgroup.memory`
    Memory,
    /// `mem_cgroup.memsw`, of version 1
    MemoryAndSwap,
}

impl<L: Load> Css<L> {
    /// Pages charged to the counter and its limit; none where it is no memory cgroup's or has no such counter.
    #[inline(always)]
    pub fn charged(self, counter: Counter) -> Option<(u64, u64)> {
        let (usage, max) = match counter {
            Counter::Memory => (offset!(memcg_usage), offset!(memcg_max)),
            Counter::MemoryAndSwap => (offset!(memsw_usage), offset!(memsw_max)),
        };
        if usage == 0 {
            return None;
        }
        // SAFETY: `struct mem_cgroup` begins with its state; the words lie beyond that, so the kernel checks the address.
        unsafe {
            let usage = bpf_probe_read_kernel(self.0.add(usage as usize).cast::<u64>()).ok()?;
            let max = bpf_probe_read_kernel(self.0.add(max as usize).cast::<u64>()).ok()?;
            Some((usage, max))
        }
    }
}

impl<L> Task<L> {
    /// The task at `address`.
    #[inline(always)]
    pub fn new(address: *const u8) -> Self {
        Self(address, PhantomData)
    }
}

impl<L: Load> Task<L> {
    /// The state by which its job is known.
    #[inline(always)]
    pub fn css(self) -> Css<L> {
        // SAFETY: task_struct.cgroups -> css_set.subsys[n], or css_set.dfl_cgrp
        unsafe {
            let set: *const u8 = member::<L, _>(self.0, offset!(task_cgroups));
            Css::new(member::<L, _>(set, offset!(css_set_css)))
        }
    }

    /// Thread id; 0 for the idle task of each CPU.
    #[inline(always)]
    pub fn pid(self) -> u32 {
        // SAFETY: pid_t task_struct.pid
        unsafe { member::<L, _>(self.0, offset!(task_pid)) }
    }

    /// Nanoseconds that it has run since it was last picked, without time that the hypervisor stole.
    #[inline(always)]
    pub fn stint_ns(self) -> u64 {
        // SAFETY: u64 task_struct.se.sum_exec_runtime, u64 task_struct.se.prev_sum_exec_runtime
        unsafe {
            let ran: u64 = member::<L, _>(self.0, offset!(task_ran));
            let before: u64 = member::<L, _>(self.0, offset!(task_ran_before));
            ran.wrapping_sub(before)
        }
    }

    /// The task that it reports its end to.
    #[inline(always)]
    pub fn parent(self) -> Self {
        // SAFETY: task_struct.real_parent
        unsafe { Self::new(member::<L, _>(self.0, offset!(task_parent))) }
    }

    /// Process id.
    #[inline(always)]
    pub fn tgid(self) -> u32 {
        // SAFETY: pid_t task_struct.tgid
        unsafe { member::<L, _>(self.0, offset!(task_tgid)) }
    }

    /// Its name.
    #[inline(always)]
    pub fn comm(self) -> [u8; 16] {
        // SAFETY: char task_struct.comm[16]
        unsafe {
            let low: u64 = member::<L, _>(self.0, offset!(task_comm));
            let high: u64 = member::<L, _>(self.0, offset!(task_comm) + 8);
            core::mem::transmute::<[u64; 2], [u8; 16]>([low, high])
        }
    }

    /// Whether its process was chosen to be killed for want of memory before.
    #[inline(always)]
    pub fn is_victim(self) -> bool {
        // SAFETY: task_struct.signal -> struct mm_struct *signal_struct.oom_mm
        unsafe {
            let signal: *const u8 = member::<L, _>(self.0, offset!(task_signal));
            let mm: *const u8 = member::<L, _>(signal, offset!(signal_oom_mm));
            !mm.is_null()
        }
    }
}
