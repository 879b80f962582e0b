//! Reads of the kernel's own files (cgroupfs, procfs, sysfs): bounded in length and lenient about what stands in them.
//!
//! Cgroups and processes come and go while they are read, and parts of their files are written by whoever owns
//! them. So a file that is too long is an error, a number that is none is `None`, and nothing here panics.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::io::Errno;

/// Longest file that [`read`] accepts: a hundred times what any of them has under normal conditions.
pub const MAX_BYTES: u64 = 1 << 20;

/// What most of them have: they are then read in one go.
const USUAL_BYTES: usize = 4096;

/// The file's bytes; an error where it is longer than [`MAX_BYTES`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, MAX_BYTES)
}

/// The file's bytes; an error where it is longer than `max` bytes.
pub fn read_up_to(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    File::open(path)?
        .take(max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("longer than {max} bytes"),
        ));
    }
    Ok(bytes)
}

/// The file's text; bytes that are not UTF-8 are replaced.
pub fn read_text(path: &Path) -> io::Result<String> {
    read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The single number of a file such as `memory.current`.
pub fn number(text: &str) -> Option<u64> {
    text.trim_ascii().parse().ok()
}

/// The lines `key number` of a file such as `memory.stat`; other lines are left out.
pub fn keyed(text: &str) -> HashMap<&str, u64> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(key, value)| Some((key, number(value)?)))
        .collect()
}

/// The fields of `/proc/PID/stat` behind the name of the process, the state first.
///
/// The name may hold spaces and brackets, so the last closing bracket ends it.
pub fn stat_fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    stat.rsplit_once(')')
        .map(|(_, behind)| behind.split_ascii_whitespace())
}

/// Whether the error says that the cgroup or process has gone while it was read.
///
/// A file that was open when its cgroup was removed answers `ENODEV`, that of an ended process `ESRCH`.
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || matches!(Errno::from_io_error(error), Some(Errno::NODEV | Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_over_the_bound_is_an_error() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").expect("a file");
        assert_eq!(read_up_to(&path, 5).expect("within the bound"), b"12345");
        assert_eq!(
            read_up_to(&path, 4).expect_err("over the bound").kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[test]
    fn keyed_keeps_what_is_a_number() {
        let values = keyed("anon 1\nodd\nfile -3\nslab 99999999999999999999999\n\nkernel 7\n");
        assert_eq!(values, HashMap::from([("anon", 1), ("kernel", 7)]));
    }

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let fields: Vec<_> = stat_fields("12 (a) R (b) S 1 2").expect("a name").collect();
        assert_eq!(fields, ["S", "1", "2"]);
        assert!(stat_fields("12 no name").is_none());
    }

    proptest! {
        #[test]
        fn no_text_makes_them_panic(text in "(?s).{0,200}") {
            number(&text);
            keyed(&text);
            if let Some(fields) = stat_fields(&text) { fields.for_each(drop); }
        }
    }
}
