//! What `squeue` writes of running jobs.

use super::Unknown;
use crate::job::id::{JobId, checked_job, number};

/// Characters of a job's name that are read.
const NAME_BYTES: usize = 64;

/// Raw id, id as it is shown, and the name: last, and cut or filled up to [`NAME_BYTES`], so that whatever it holds
/// cannot be taken for the next line.
pub(super) const FORMAT: &str = "%A|%i|%64j|";

/// A job that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The id that its cgroup has.
    pub raw: u32,
    /// The id as Slurm shows it: `123`, `123_4`, `123+1`.
    pub id: JobId,
    /// Its name, cut at 64 bytes; as its user wrote it, to be escaped where it is shown.
    pub name: String,
}

/// The jobs of an answer in [`FORMAT`].
pub fn jobs(answer: &[u8]) -> Result<Vec<Running>, Unknown> {
    let mut jobs = Vec::new();
    let mut rest = answer;
    while !rest.is_empty() {
        let (job, behind) = job(rest).ok_or(Unknown::Odd {
            program: "squeue",
            what: "a line is not in the form that was asked for",
        })?;
        jobs.push(job);
        rest = behind;
    }
    Ok(jobs)
}

/// The first job, and what follows it.
fn job(answer: &[u8]) -> Option<(Running, &[u8])> {
    let (raw, rest) = field(answer)?;
    let (id, rest) = field(rest)?;
    let (name, rest) = rest.split_at_checked(NAME_BYTES)?;
    let rest = rest.strip_prefix(b"|\n")?;
    let running = Running {
        raw: number(raw).and_then(checked_job)?,
        id: id.parse().ok()?,
        name: String::from_utf8_lossy(name)
            .trim_end_matches([' ', char::REPLACEMENT_CHARACTER])
            .to_owned(),
    };
    Some((running, rest))
}

/// What stands before the next separator.
fn field(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|&byte| byte == b'|')?;
    Some((str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(raw: u32, id: &str, name: &str) -> Vec<u8> {
        let mut name = name.as_bytes().to_vec();
        name.resize(NAME_BYTES, b' ');
        [format!("{raw}|{id}|").as_bytes(), &name, b"|\n"].concat()
    }

    #[test]
    fn names_cannot_forge_jobs() {
        let hostile = "a\n9|9|x|\n8|8";
        let answer = [
            line(7, "7", hostile),
            line(19, "4_1", "b | c"),
            line(3, "2+1", ""),
        ]
        .concat();
        let found = jobs(&answer).expect("jobs");
        let told: Vec<_> = found
            .iter()
            .map(|job| (job.raw, job.id.to_string(), job.name.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (7, "7".into(), hostile),
                (19, "4_1".into(), "b | c"),
                (3, "2+1".into(), "")
            ]
        );
    }

    #[test]
    fn a_name_may_be_cut_within_a_character() {
        let name = format!("{}\u{e9}", "x".repeat(NAME_BYTES - 1));
        let found = jobs(&line(7, "7", &name)).expect("jobs");
        assert_eq!(found[0].name, "x".repeat(NAME_BYTES - 1));
    }

    #[test]
    fn other_answers_are_odd() {
        assert_eq!(jobs(b""), Ok(Vec::new()));
        for answer in [
            &b"\n"[..],
            b"x",
            b"7|7|short|\n",
            b"0|7|",
            b"slurm_load_jobs error",
            &line(7, "x", "n"),
        ] {
            assert!(matches!(jobs(answer), Err(Unknown::Odd { .. })), "{answer:?}");
        }
    }

    proptest! {
        #[test]
        fn any_names_are_kept_apart(names in prop::collection::vec("(?s)[^ \u{fffd}].{0,20}[^ \u{fffd}]", 0..8)) {
            let names: Vec<_> = names.into_iter().filter(|name| name.len() <= NAME_BYTES).collect();
            let answer: Vec<u8> = names.iter().flat_map(|name| line(7, "7", name)).collect();
            let found = jobs(&answer).expect("jobs");
            prop_assert_eq!(found.into_iter().map(|job| job.name).collect::<Vec<_>>(), names);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = jobs(&bytes);
        }
    }
}
