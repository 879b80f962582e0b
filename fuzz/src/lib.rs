//! What each fuzz target does with one input. It panics where sw-bpf does, and where what it makes of the input cannot be right.
//!
//! The inputs of the target `NAME` are in `corpus/NAME`.

#![allow(clippy::missing_panics_doc, reason = "a panic is what a target is for")]

pub mod agent;
pub mod btf;
pub mod command;
pub mod files;
pub mod ids;
pub mod records;
pub mod slurm;

/// A target: what it does with an input.
pub type Target = fn(&[u8]);

/// All targets by their names.
pub const TARGETS: [(&str, Target); 19] = [
    ("btf", btf::btf),
    ("cgroup_files", files::cgroup_files),
    ("command_line", command::command_line),
    ("gathered", records::gathered),
    ("http", agent::http),
    ("job_id", ids::job_id),
    ("left", agent::left),
    ("metrics", records::metrics),
    ("nodelist", ids::nodelist),
    ("proc_files", files::proc_files),
    ("record", records::record),
    ("record_names", records::record_names),
    ("scontrol_config", slurm::scontrol_config),
    ("scontrol_json", slurm::scontrol_json),
    ("scontrol_text", slurm::scontrol_text),
    ("snapshot", records::snapshot),
    ("squeue", slurm::squeue),
    ("srun", slurm::srun),
    ("wire", agent::wire),
];

/// Asserts that a text can be written to a terminal: lines of printable ASCII.
fn check_shown(text: &str) {
    let odd = |c: char| c != '\n' && !(' '..='~').contains(&c);
    assert!(!text.contains(odd), "{text:?}");
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// What once was a fault, or leads into every corner, is tried wherever the tests run.
    #[test]
    fn the_corpus_is_got_over() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (name, target) in TARGETS {
            let inputs = fs::read_dir(root.join("corpus").join(name)).expect(name);
            let mut count = 0;
            for input in inputs {
                target(&fs::read(input.expect(name).path()).expect(name));
                count += 1;
            }
            assert!(count > 0, "{name} has no inputs");
        }
    }

    #[test]
    fn each_corpus_has_its_target() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let dirs = fs::read_dir(corpus).expect("the corpus");
        let mut names: Vec<String> = dirs
            .map(|dir| {
                dir.expect("a directory")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        assert_eq!(names, TARGETS.map(|(name, _)| name));
    }
}
