//! The only file that follows pointers of the kernel.
//!
//! Each starts at a BTF-typed argument, so that the verifier checks the member at each offset, and the kernel turns a
//! load from a bad address into 0.

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
    /// Its state in the hierarchy by which jobs are told apart; none where it belongs to another one.
    #[inline(always)]
    pub fn css(self) -> Option<Css> {
        let offset = offset!(cgroup_css);
        if offset == 0 {
            return Some(Css(self.0));
        }
        // SAFETY: cgroup.subsys[n]
        let css: *const u8 = unsafe { member(self.0, offset) };
        (!css.is_null()).then_some(Css(css))
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
