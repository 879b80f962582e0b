//! `/proc/PID/mountinfo`: where cgroup hierarchies are mounted.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::{Controller, Version};

/// Major and minor number of a mounted hierarchy: the same for all mounts of it.
pub type Device = (u32, u32);

/// One mount of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The directory of the hierarchy that is seen at `point`; not `/` in a container without a cgroup namespace.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
}

impl Mount {
    /// Directory of the cgroup `inside`, a path as `/proc/PID/cgroup` gives it, where this mount shows it.
    ///
    /// The kernel writes `/..` for what lies outside of the reader's cgroup namespace: no mount shows that.
    pub fn dir_of(&self, inside: &Path) -> Option<PathBuf> {
        let rest = inside.strip_prefix(&self.root).ok()?;
        let climbs = rest
            .components()
            .any(|part| matches!(part, std::path::Component::ParentDir));
        (!climbs).then(|| join(&self.point, rest))
    }

    /// The reverse: the path within the hierarchy of a directory below the mount point.
    pub fn inside_of(&self, dir: &Path) -> Option<PathBuf> {
        dir.strip_prefix(&self.point)
            .ok()
            .map(|rest| join(&self.root, rest))
    }
}

/// `Path::join`, which would put a slash at the end where `rest` is empty.
pub(super) fn join(base: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() {
        base.to_path_buf()
    } else {
        base.join(rest)
    }
}

/// One line of the mount table that is a cgroup hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountLine {
    pub device: Device,
    pub mount: Mount,
    pub version: Version,
    /// The controllers of a version 1 hierarchy; those of version 2 do not stand in the mount table.
    pub controllers: Vec<Controller>,
}

/// The cgroup hierarchies of a mount table. Lines that are odd, or other file systems, are left out.
pub fn parse(mountinfo: &[u8]) -> Vec<MountLine> {
    mountinfo
        .split(|&byte| byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

/// `36 35 0:32 ROOT POINT OPTIONS [TAG…] - TYPE SOURCE SUPER_OPTIONS`.
fn parse_line(line: &[u8]) -> Option<MountLine> {
    let mut fields = line.split(|&byte| byte == b' ');
    let device = parse_device(fields.nth(2)?)?;
    let mount = Mount {
        root: unescape(fields.next()?),
        point: unescape(fields.next()?),
    };
    let mut fields = fields.skip_while(|&field| field != b"-").skip(1);
    let version = match fields.next()? {
        b"cgroup" => Version::V1,
        b"cgroup2" => Version::V2,
        _ => return None,
    };
    let options = fields.nth(1)?;
    let controllers = match version {
        Version::V1 => options
            .split(|&byte| byte == b',')
            .filter_map(Controller::by_name)
            .collect(),
        Version::V2 => Vec::new(),
    };
    let absolute = mount.root.is_absolute() && mount.point.is_absolute();
    absolute.then_some(MountLine {
        device,
        mount,
        version,
        controllers,
    })
}

fn parse_device(field: &[u8]) -> Option<Device> {
    let (major, minor) = str::from_utf8(field).ok()?.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The kernel writes space, tab, newline, backslash and `#` of a path as three octal digits after a backslash.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            _ => bytes.push(byte),
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn finds_hierarchies_of_both_versions() {
        let table = b"23 1 0:4 / /proc rw - proc proc rw\n\
            33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
            35 31 0:32 /docker/x /sys/fs/cgroup/memory ro master:1 shared:2 - cgroup  rw,memory,xattr\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let lines = parse(table);
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0].controllers, [Controller::Cpu, Controller::Cpuacct]);
        assert_eq!(lines[1].mount.root, Path::new("/docker/x"));
        assert_eq!(lines[1].controllers, [Controller::Memory]);
        assert_eq!((lines[2].version, lines[2].device), (Version::V2, (0, 38)));
    }

    #[test]
    fn odd_lines_are_left_out() {
        for line in [
            "",
            " ",
            "1 2",
            "1 2 x:y / /a rw - cgroup c rw",
            "1 2 0:1 / /a rw cgroup c rw",
            "1 2 0:1 a b rw - cgroup c rw",
        ] {
            assert_eq!(parse(line.as_bytes()), [], "{line}");
        }
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(unescape(br"/a\040b\134040\011\"), Path::new("/a b\\040\t\\"));
        assert_eq!(unescape(br"/\400\08"), Path::new(r"/\400\08"));
    }

    #[test]
    fn paths_outside_of_the_view_have_no_directory() {
        let mount = Mount {
            root: "/docker/x".into(),
            point: "/cg".into(),
        };
        assert_eq!(mount.dir_of(Path::new("/docker/x/a")), Some("/cg/a".into()));
        assert_eq!(mount.dir_of(Path::new("/docker/x")), Some("/cg".into()));
        assert_eq!(mount.dir_of(Path::new("/docker/xy")), None);
        assert_eq!(mount.dir_of(Path::new("/docker/x/../y")), None);
        assert_eq!(mount.inside_of(Path::new("/cg/a")), Some("/docker/x/a".into()));
    }

    /// What the kernel does to a path.
    fn escape(path: &[u8]) -> String {
        path.iter()
            .fold(String::new(), |text, byte| format!("{text}\\{byte:03o}"))
    }

    proptest! {
        #[test]
        fn every_path_survives_the_kernels_escapes(path in prop::collection::vec(1u8.., 0..40)) {
            let read = unescape(escape(&path).as_bytes());
            prop_assert_eq!(read.as_os_str().as_bytes(), &path[..]);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            parse(&bytes);
        }

        #[test]
        fn no_line_of_its_words_makes_it_panic(line in "([0-9]{1,3}|/[a-z\\\\0-9]{0,6}|-|cgroup2?|rw,memory|0:3| |\n){0,30}") {
            parse(line.as_bytes());
        }
    }
}
