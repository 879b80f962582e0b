//! A network and a host name of its own, so that no port is open to anyone else and none is taken already.
//!
//! Daemons bind to what the name of their host resolves to; here that is `localhost` on every machine.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;
use std::{io, thread};

use rustix::process::{Gid, Uid};
use rustix::thread::{
    LinkNameSpaceType, UnshareFlags, move_into_link_name_space, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

use super::config::HOST;

/// Glibc takes a machine whose only address is 127.0.0.1 for one without a network, and resolves nothing.
const SECOND_ADDRESS: &str = "127.0.0.2/8";

/// The namespaces; they are gone when this and all processes in them are.
#[derive(Debug, Clone)]
pub struct Namespaces {
    files: Arc<[(File, LinkNameSpaceType)]>,
}

impl Namespaces {
    /// Makes them; without a network where the machine's own is to be used.
    ///
    /// # Panics
    ///
    /// Where this process may not.
    pub fn create(with_network: bool) -> Self {
        // A thread of its own: what it leaves by `unshare` is not to come back.
        let made = thread::spawn(move || make(with_network))
            .join()
            .expect("the thread ends");
        let files = made.expect("a network and a host name of its own");
        Self { files: files.into() }
    }

    /// Lets `command` run in them, as this user where one is given.
    pub fn enter(&self, command: &mut Command, user: Option<(u32, u32)>) {
        let namespaces = self.clone();
        let become_user = move || {
            namespaces.join()?;
            user.map_or(Ok(()), |(uid, gid)| become_user(uid, gid))
        };
        // SAFETY: nothing but system calls that are allowed between fork and exec.
        unsafe { command.pre_exec(become_user) };
    }

    fn join(&self) -> io::Result<()> {
        for (file, kind) in self.files.iter() {
            move_into_link_name_space(file.as_fd(), Some(*kind))?;
        }
        Ok(())
    }
}

/// Only the raw calls, each for the calling thread, are safe between fork and exec.
fn become_user(uid: u32, gid: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_groups(&[gid])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

fn make(with_network: bool) -> io::Result<Vec<(File, LinkNameSpaceType)>> {
    // SAFETY: neither flag changes memory or file descriptors.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUTS)? };
    rustix::system::sethostname(HOST.as_bytes())?;
    let uts = File::open("/proc/thread-self/ns/uts")?;
    let mut files = vec![(uts, LinkNameSpaceType::HostNameAndNISDomainName)];
    if with_network {
        files.push((make_network()?, LinkNameSpaceType::Network));
    }
    Ok(files)
}

fn make_network() -> io::Result<File> {
    // SAFETY: as above.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
    for arguments in [
        &["link", "set", "lo", "up"][..],
        &["address", "add", SECOND_ADDRESS, "dev", "lo"],
    ] {
        let status = Command::new("ip").args(arguments).status()?;
        if !status.success() {
            return Err(io::Error::other(format!("ip {arguments:?}: {status}")));
        }
    }
    File::open("/proc/thread-self/ns/net")
}
