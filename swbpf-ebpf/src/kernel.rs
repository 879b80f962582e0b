//! The only file that follows pointers of the kernel.
//!
//! Each starts at a BTF-typed argument, so that the verifier checks the member at each offset, and the kernel turns a
//! load from a bad address into 0.

use aya_ebpf::helpers::{bpf_probe_read_kernel, generated::bpf_probe_read_kernel_str};
use swbpf_common::slot::NAME_LEN;

use crate::maps::offset;

/// `struct cgroup_subsys_state`. `struct mem_cgroup` and `struct cgroup` begin with one.
#[derive(Clone, Copy)]
pub struct Css(pub *const u8);

/// `struct cgroup`
#[derive(Clone, Copy)]
pub struct Cgroup(pub *const u8);

/// `struct task_struct`
#[derive(Clone, Copy)]
pub struct Task(pub *const u8);

#[inline(always)]
unsafe fn member<T: Copy>(base: *const u8, offset: u32) -> T {
    // SAFETY: the caller's base is BTF-typed and the offset is the member's in this kernel.
    unsafe { base.add(offset as usize).cast::<T>().read_volatile() }
}

impl Css {
    /// Number that no other state has, nor ever had.
    #[inline(always)]
    pub fn serial(self) -> u64 {
        // SAFETY: u64 cgroup_subsys_state.serial_nr
        unsafe { member(self.0, offset!(css_serial)) }
    }

    /// Its cgroup.
    #[inline(always)]
    pub fn cgroup(self) -> Cgroup {
        // SAFETY: cgroup_subsys_state.cgroup
        unsafe { Cgroup(member(self.0, offset!(css_cgroup))) }
    }

    /// Id of its cgroup: the inode number of the directory.
    #[inline(always)]
    pub fn cgroup_id(self) -> u64 {
        // SAFETY: cgroup.kn -> u64 kernfs_node.id
        unsafe {
            let node: *const u8 = member(self.cgroup().0, offset!(cgroup_kn));
            member(node, offset!(kn_id))
        }
    }

    /// That of the parent cgroup.
    #[inline(always)]
    pub fn parent(self) -> Option<Self> {
        // SAFETY: cgroup_subsys_state.parent
        let parent: *const u8 = unsafe { member(self.0, offset!(css_parent)) };
        (!parent.is_null()).then_some(Self(parent))
    }
}

impl Cgroup {
    /// Its own state, whichever controllers it has. What is above it there is what is above it in the tree, and its cgroup's
    /// id is the same as that of its state in any controller.
    #[inline(always)]
    pub fn css(self) -> Css {
        // `cgroup.self` stands at its begin.
        Css(self.0)
    }

    /// Address of the root of its hierarchy.
    #[inline(always)]
    pub fn root(self) -> u64 {
        // SAFETY: cgroup.root
        unsafe { member(self.0, offset!(cgroup_root)) }
    }

    /// Copies the name of its directory, cut off where it is longer, with its end mark.
    #[inline(always)]
    pub fn name(self, name: *mut [u8; NAME_LEN]) {
        // SAFETY: cgroup.kn -> const char *kernfs_node.name; the copy is as long as its target at most.
        unsafe {
            let node: *const u8 = member(self.0, offset!(cgroup_kn));
            let from: *const u8 = member(node, offset!(kn_name));
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

impl Css {
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

impl Task {
    /// The state by which its job is known.
    #[inline(always)]
    pub fn css(self) -> Css {
        // SAFETY: task_struct.cgroups -> css_set.subsys[n], or css_set.dfl_cgrp
        unsafe {
            let set: *const u8 = member(self.0, offset!(task_cgroups));
            Css(member(set, offset!(css_set_css)))
        }
    }

    /// Thread id; 0 for the idle task of each CPU.
    #[inline(always)]
    pub fn pid(self) -> u32 {
        // SAFETY: pid_t task_struct.pid
        unsafe { member(self.0, offset!(task_pid)) }
    }

    /// Nanoseconds that it has run since it was last picked, without time that the hypervisor stole.
    #[inline(always)]
    pub fn stint_ns(self) -> u64 {
        // SAFETY: u64 task_struct.se.sum_exec_runtime, u64 task_struct.se.prev_sum_exec_runtime
        unsafe {
            let ran: u64 = member(self.0, offset!(task_ran));
            let before: u64 = member(self.0, offset!(task_ran_before));
            ran.wrapping_sub(before)
        }
    }

    /// The task that it reports its end to.
    #[inline(always)]
    pub fn parent(self) -> Self {
        // SAFETY: task_struct.real_parent
        unsafe { Self(member(self.0, offset!(task_parent))) }
    }

    /// Process id.
    #[inline(always)]
    pub fn tgid(self) -> u32 {
        // SAFETY: pid_t task_struct.tgid
        unsafe { member(self.0, offset!(task_tgid)) }
    }

    /// Its name.
    #[inline(always)]
    pub fn comm(self) -> [u8; 16] {
        // SAFETY: char task_struct.comm[16]
        unsafe {
            let low: u64 = member(self.0, offset!(task_comm));
            let high: u64 = member(self.0, offset!(task_comm) + 8);
            core::mem::transmute::<[u64; 2], [u8; 16]>([low, high])
        }
    }
}
