//! Who a client is, by the kernel's word.

use std::{io, os::fd::AsRawFd};

use tokio::net::UnixStream;

/// Groups of one process (`NGROUPS_MAX`).
const MAX_GROUPS: usize = 65_536;

/// A client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its effective user id as it connected.
    pub uid: u32,
    /// Whether it sees the jobs of all.
    sees_all: bool,
}

impl Peer {
    /// The one at the other end. Root and the members of `admins` see the jobs of all.
    pub fn of(stream: &UnixStream, admins: Option<u32>) -> io::Result<Self> {
        let credentials = stream.peer_cred()?;
        let is_admin = match admins {
            Some(admins) => credentials.gid() == admins || groups(stream)?.contains(&admins),
            None => false,
        };
        Ok(Self {
            uid: credentials.uid(),
            sees_all: credentials.uid() == 0 || is_admin,
        })
    }

    /// A user who sees the own jobs alone.
    #[cfg(test)]
    pub fn user(uid: u32) -> Self {
        Self { uid, sees_all: false }
    }

    /// Whose records it sees alone; `None`: those of all.
    pub fn sees(&self) -> Option<u32> {
        (!self.sees_all).then_some(self.uid)
    }

    /// Whether it may see the job of `uid`; of one whose user is not known, only who sees all may.
    pub fn may_see(&self, uid: Option<u32>) -> bool {
        self.sees_all || uid == Some(self.uid)
    }
}

/// The supplementary groups of the process at the other end (`SO_PEERGROUPS` of unix(7)).
fn groups(stream: &UnixStream) -> io::Result<Vec<u32>> {
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut length = size_of_val(groups.as_slice()) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, which is what the vector has.
        let result = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let needed = length as usize / size_of::<libc::gid_t>();
        if result == 0 {
            groups.truncate(needed);
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        // It has told how much room it needs.
        if error.raw_os_error() != Some(libc::ERANGE) || needed <= groups.len() || needed > MAX_GROUPS {
            return Err(error);
        }
        groups.resize(needed, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_peer_is_who_the_kernel_says() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let own = rustix::process::geteuid().as_raw();
        let peer = Peer::of(&one, None).expect("a peer");
        assert_eq!((peer.uid, peer.sees_all), (own, own == 0));
        let mut expected: Vec<u32> = rustix::process::getgroups()
            .expect("groups")
            .into_iter()
            .map(rustix::process::Gid::as_raw)
            .collect();
        let mut found = groups(&one).expect("groups");
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
        let group = rustix::process::getegid().as_raw();
        assert!(Peer::of(&one, Some(group)).expect("a peer").sees_all);
    }

    #[test]
    fn a_user_sees_the_own_jobs_alone() {
        let user = Peer::user(7);
        assert!(user.may_see(Some(7)));
        assert!(!user.may_see(Some(8)) && !user.may_see(Some(0)) && !user.may_see(None));
        let admin = Peer {
            uid: 7,
            sees_all: true,
        };
        assert!(admin.may_see(Some(8)) && admin.may_see(None));
    }
}
