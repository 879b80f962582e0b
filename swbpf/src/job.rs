//! WHO is measured: cgroups and, beyond them, the jobs that they belong to.

pub mod cgroup;
pub mod find;
pub mod id;
pub mod kernfile;
pub mod slurm;
