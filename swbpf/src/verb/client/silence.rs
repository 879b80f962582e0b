//! Why an agent does not answer, and what is done about it.

use std::{io, os::unix::ffi::OsStrExt, path::Path};

use tokio::time::error::Elapsed;

use super::WORDS;
use crate::{
    cli::SOCKET,
    error::NOTE,
    out::{self, escape},
    wire::{Misread, Reason, Refusal},
};

/// Why an agent does not answer.
pub enum Silence {
    /// There is none.
    Nobody,
    /// This user may not connect to its socket.
    Shut,
    /// It refuses.
    Refused(Refusal),
    /// What it says is not understood.
    Misread(Misread),
    /// It breaks off, or is too slow.
    Broken(String),
}

impl Silence {
    /// Why there is no one to ask, by whether the socket was found.
    pub fn before_asking(found: io::Result<bool>) -> Option<Self> {
        match found {
            Ok(true) => None,
            Ok(false) => Some(Self::Nobody),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(Self::Shut),
            Err(error) => Some(error.into()),
        }
    }

    /// Tells its user what goes on without the agent, where that is no matter of course.
    pub fn tell(&self, socket: &Path) {
        if let Some(why) = self.why(socket) {
            out::tell_aside(&format!("{NOTE}{why}: done without it\n"));
        }
    }

    fn why(&self, socket: &Path) -> Option<String> {
        let at = || escape::tail(socket.as_os_str().as_bytes(), WORDS);
        Some(match self {
            Self::Nobody if socket == Path::new(SOCKET) => return None,
            Self::Nobody => format!("there is no agent at {}", at()),
            Self::Shut => format!(
                "this user may not connect to the agent at {}, which is for all: ask the administrator to let users into its \
                 directory",
                at()
            ),
            Self::Refused(refusal) if refusal.reason == Reason::Absent => return None,
            Self::Refused(refusal) => {
                format!("the agent refuses: {}", escape::head(&refusal.message, WORDS))
            }
            Self::Misread(misread) => {
                format!(
                    "the agent is not understood: {}",
                    escape::head(misread.to_string(), WORDS)
                )
            }
            Self::Broken(why) => format!("the agent does not answer: {}", escape::head(why, WORDS)),
        })
    }
}

/// Tells a user whom the agent told of no such job whom it tells. Root is told of all that there is.
pub fn tell_who_may_ask() {
    if !rustix::process::geteuid().is_root() {
        out::tell_aside(&format!(
            "{NOTE}the agent tells this user nothing of it: it tells of a job to its user, to root and to the group of its \
             --admin-group: done without it\n"
        ));
    }
}

impl From<io::Error> for Silence {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<Misread> for Silence {
    fn from(misread: Misread) -> Self {
        Self::Misread(misread)
    }
}

impl From<Elapsed> for Silence {
    fn from(_: Elapsed) -> Self {
        Self::Broken("it took too long".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_may_not_be_looked_for_is_not_told_to_be_none() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert!(matches!(Silence::before_asking(Err(denied)), Some(Silence::Shut)));
        assert!(matches!(Silence::before_asking(Ok(false)), Some(Silence::Nobody)));
        assert!(Silence::before_asking(Ok(true)).is_none());
    }

    #[test]
    fn each_silence_has_its_cause_and_what_is_a_matter_of_course_has_none() {
        let own = Path::new("/run/other/agent.sock");
        let why = |silence: Silence| silence.why(own).unwrap_or_default();
        assert!(Silence::Nobody.why(Path::new(SOCKET)).is_none());
        assert!(why(Silence::Nobody).contains("no agent at /run/other/agent.sock"));
        let shut = why(Silence::Shut);
        assert!(
            shut.contains("may not connect to the agent at /run/other/agent.sock"),
            "{shut}"
        );
        let odd = serde_json::from_str::<u8>("x").expect_err("no number");
        for misread in [Misread::Nothing, Misread::Version(7), odd.into()] {
            let told = why(misread.into());
            assert!(
                told.starts_with("the agent is not understood: it") && told.contains("restart the agent"),
                "{told}"
            );
        }
        assert!(why(Silence::Broken("it ended".to_owned())).starts_with("the agent does not answer: it"));
        let refused = |reason| Silence::Refused(Refusal::new(reason, "because\u{1b}"));
        assert!(refused(Reason::Absent).why(own).is_none());
        let told = why(refused(Reason::Failed));
        assert!(
            told.starts_with("the agent refuses: because") && !told.contains('\u{1b}'),
            "{told}"
        );
    }
}
