//! `cargo xtask btf-fixture IN OUT`: the part of a kernel's BTF that sw-bpf asks about, for tests on kernels that do not run here.
//!
//! IN is a whole blob, such as `/sys/kernel/btf/vmlinux` of that kernel. What is kept, is kept with all its members, numbers and
//! arguments; what these refer to is kept by name and size alone. What the kernel lacks, OUT lacks too.

mod blob;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use blob::{Blob, ENUM, ENUM64, FUNC, STRUCT, TYPEDEF, Type, UNION};

/// Reduce a kernel's BTF to what the tests read
#[derive(clap::Args)]
pub struct Args {
    /// The whole blob
    input: PathBuf,
    /// Where to write the reduced one: tests/fixtures/btf/RELEASE.btf
    output: PathBuf,
}

/// Structures whose members are read, and some beside them.
const STRUCTS: [&str; 14] = [
    "cgroup",
    "cgroup_root",
    "cgroup_subsys_state",
    "css_set",
    "kernfs_node",
    "lruvec",
    "mem_cgroup",
    "mem_cgroup_per_node",
    "obj_cgroup",
    "page_counter",
    "sched_entity",
    "signal_struct",
    "task_struct",
    "pt_regs",
];
const ENUMS: [&str; 3] = ["cgroup_subsys_id", "memcg_stat_item", "node_stat_item"];
/// Begins of the names of tracepoints.
const TRACEPOINTS: [&str; 6] = ["cgroup_", "mark_victim", "memcg_", "mod_memcg_", "oom_", "sched_"];
/// Parts of the names of functions.
const FUNCTIONS: [&str; 5] = ["memcg", "mem_cgroup", "page_counter", "rstat", "oom_"];

/// Writes it.
pub fn run(args: &Args) -> Result<()> {
    let bytes = fs::read(&args.input).with_context(|| args.input.display().to_string())?;
    let whole = Blob::parse(&bytes).with_context(|| args.input.display().to_string())?;
    let reduced = Reduction::of(&whole).bytes();
    fs::write(&args.output, &reduced).with_context(|| args.output.display().to_string())?;
    println!(
        "{}: {} bytes of {}",
        args.output.display(),
        reduced.len(),
        bytes.len()
    );
    Ok(())
}

/// A blob that grows by what is kept of another.
struct Reduction<'a> {
    whole: &'a Blob,
    kept: Blob,
    /// Number of a type in the whole blob, and in the kept one.
    numbers: HashMap<u32, u32>,
    names: HashMap<&'a [u8], u32>,
}

impl<'a> Reduction<'a> {
    fn of(whole: &'a Blob) -> Blob {
        let mut reduction = Self {
            whole,
            kept: Blob::default(),
            numbers: HashMap::new(),
            names: HashMap::new(),
        };
        for (number, found) in (1..).zip(&whole.types) {
            if is_root(whole, found) {
                reduction.keep(number);
            }
        }
        reduction.kept
    }

    /// The number of `number` among what is kept; 0, which is `void`, where there is no such type.
    fn keep(&mut self, number: u32) -> u32 {
        if let Some(known) = self.numbers.get(&number) {
            return *known;
        }
        let Some(found) = number
            .checked_sub(1)
            .and_then(|at| self.whole.types.get(at as usize))
        else {
            return 0;
        };
        // Entered before its members are, which may lead back to it.
        self.kept.types.push(Type::default());
        let new = self.kept.types.len() as u32;
        self.numbers.insert(number, new);
        let is_by_name = matches!(found.kind, STRUCT | UNION | ENUM | ENUM64)
            && !self.whole.name(found.name).is_empty()
            && !is_root(self.whole, found);
        let mut copy = found.clone();
        if is_by_name {
            copy.body.clear();
        }
        copy.name = self.name(found.name);
        for at in copy.names() {
            copy.body[at] = self.name(copy.body[at]);
        }
        for at in copy.types() {
            copy.body[at] = self.keep(copy.body[at]);
        }
        if copy.refers() {
            copy.payload = self.keep(copy.payload);
        }
        self.kept.types[new as usize - 1] = copy;
        new
    }

    fn name(&mut self, at: u32) -> u32 {
        let name = self.whole.name(at);
        let strings = &mut self.kept.strings;
        *self.names.entry(name).or_insert_with(|| {
            let at = strings.len() as u32;
            strings.extend(name.iter().chain(&[0]));
            at
        })
    }
}

fn is_root(blob: &Blob, found: &Type) -> bool {
    let Ok(name) = std::str::from_utf8(blob.name(found.name)) else {
        return false;
    };
    match found.kind {
        STRUCT => STRUCTS.contains(&name),
        ENUM | ENUM64 => ENUMS.contains(&name),
        TYPEDEF => name
            .strip_prefix("btf_trace_")
            .is_some_and(|hook| TRACEPOINTS.iter().any(|begin| hook.starts_with(begin))),
        FUNC => FUNCTIONS.iter().any(|part| name.contains(part)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct cgroup { struct other *next; }`, `struct other` with a member of its own, and a structure that nobody asks about.
    fn whole() -> Blob {
        let mut blob = Blob::default();
        let mut name = |text: &str| {
            let at = blob.strings.len() as u32;
            blob.strings.extend(text.bytes().chain([0]));
            at
        };
        name("");
        let names = ["cgroup", "next", "other", "own", "alone"].map(&mut name);
        let [cgroup, next, other, own, alone] = names;
        let structure = |name, body: &[u32]| Type {
            name,
            kind: STRUCT,
            payload: 8,
            body: body.to_vec(),
            ..Type::default()
        };
        blob.types = vec![
            structure(alone, &[]),
            structure(other, &[own, 0, 0]),
            Type {
                kind: blob::PTR,
                payload: 2,
                ..Type::default()
            },
            structure(cgroup, &[next, 3, 0]),
        ];
        blob
    }

    #[test]
    fn what_is_asked_about_is_kept_and_the_rest_by_name() {
        let kept = Blob::parse(&Reduction::of(&whole()).bytes()).expect("BTF");
        let told: Vec<_> = kept
            .types
            .iter()
            .map(|found| (kept.name(found.name), found.body.len()))
            .collect();
        assert_eq!(told, [(&b"cgroup"[..], 3), (b"", 0), (b"other", 0)]);
        assert_eq!(kept.name(kept.types[0].body[0]), b"next");
        assert_eq!(kept.types[0].body[1], 2, "the pointer");
        assert_eq!(kept.types[1].payload, 3, "what it points to");
        assert!(!kept.strings.windows(5).any(|part| part == b"alone"));
    }
}
