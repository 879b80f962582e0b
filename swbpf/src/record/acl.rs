//! Who may read a record: its owner, and whom its access control list names (acl(5)), in the form of
//! `linux/posix_acl_xattr.h`.

use std::{fs::File, io, os::unix::fs::MetadataExt};

use rustix::{
    fs::{XattrFlags, fgetxattr, fsetxattr},
    io::Errno,
};

const NAME: &str = "system.posix_acl_access";
const VERSION: u32 = 2;
/// Tags of entries.
const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;
/// The permission.
const READ: u16 = 4;
const READ_AND_WRITE: u16 = 6;
/// Of an entry that names nobody.
const NO_ID: u32 = u32::MAX;
/// Longest list that is read: some hundred users.
const MAX_BYTES: usize = 4096;

/// Lets one user read a file that belongs to this one, who could not be kept from changing it if it were the user's own.
pub fn let_read(file: &File, uid: u32) -> io::Result<()> {
    let entries = [
        (OWNER, READ_AND_WRITE, NO_ID),
        (USER, READ, uid),
        (GROUP, 0, NO_ID),
        // The most that the two before may.
        (MASK, READ, NO_ID),
        (OTHERS, 0, NO_ID),
    ];
    let mut list = VERSION.to_le_bytes().to_vec();
    for (tag, permission, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permission.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    Ok(fsetxattr(file, NAME, &list, XattrFlags::empty())?)
}

/// The users beside root who may read a file: those whom its list names, and its owner.
pub fn readers(file: &File) -> io::Result<Vec<u32>> {
    let mut list = [0; MAX_BYTES];
    let mut readers = match fgetxattr(file, NAME, &mut list) {
        Ok(length) => listed(list.get(..length).unwrap_or_default()),
        Err(Errno::NODATA | Errno::NOTSUP) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let metadata = file.metadata()?;
    if metadata.uid() != 0 && metadata.mode() & 0o400 != 0 {
        readers.push(metadata.uid());
    }
    readers.sort_unstable();
    readers.dedup();
    Ok(readers)
}

/// The users whom a list lets read.
pub fn listed(list: &[u8]) -> Vec<u32> {
    let Some((version, entries)) = list.split_first_chunk() else {
        return Vec::new();
    };
    if u32::from_le_bytes(*version) != VERSION {
        return Vec::new();
    }
    let entries = entries.chunks_exact(8).map(|entry| {
        let half = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
        let id = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
        (half(0), half(2), id)
    });
    let entries: Vec<_> = entries.collect();
    let may_any = entries
        .iter()
        .all(|(tag, permission, _)| *tag != MASK || permission & READ != 0);
    let users = entries
        .into_iter()
        .filter(|(tag, permission, _)| may_any && *tag == USER && permission & READ != 0);
    users.map(|(.., id)| id).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::fchown;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whoever_was_let_read_is_found() {
        let temp = tempfile::tempdir().expect("a directory");
        let file = File::create(temp.path().join("file")).expect("made");
        let own = rustix::process::geteuid().as_raw();
        let before: Vec<u32> = [own].into_iter().filter(|uid| *uid != 0).collect();
        assert_eq!(readers(&file).expect("told"), before);
        match let_read(&file, 4711) {
            // A file system without lists.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return,
            result => result.expect("changed"),
        }
        let mut after = before;
        after.push(4711);
        after.sort_unstable();
        assert_eq!(readers(&file).expect("told"), after);
    }

    #[test]
    fn an_owner_is_a_reader() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let temp = tempfile::tempdir().expect("a directory");
        let file = File::create(temp.path().join("file")).expect("made");
        fchown(&file, Some(4712), None).expect("given away");
        assert_eq!(readers(&file).expect("told"), [4712]);
    }

    #[test]
    fn what_the_mask_takes_is_not_given() {
        let entry = |tag: u16, permission: u16, id: u32| {
            let mut bytes = tag.to_le_bytes().to_vec();
            bytes.extend(permission.to_le_bytes());
            bytes.extend(id.to_le_bytes());
            bytes
        };
        let list = |mask| {
            let mut list = VERSION.to_le_bytes().to_vec();
            list.extend(entry(USER, READ, 7));
            list.extend(entry(USER, 0, 8));
            list.extend(entry(MASK, mask, NO_ID));
            list
        };
        assert_eq!(listed(&list(READ)), [7]);
        assert_eq!(listed(&list(0)), [0; 0]);
    }

    proptest! {
        #[test]
        fn any_list_is_read(list: Vec<u8>) {
            let _ = listed(&list);
        }
    }
}
