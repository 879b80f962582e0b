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
    /// Tells its user what goes on without the agent, where that is no matter of course.
    pub fn tell(&self, socket: &Path) {
        if let Some(why) = self.why(socket) {
            out::tell_aside(&format!(
                "{NOTE}the agent does not answer: {why}: done without it\n"
            ));
        }
    }

    fn why(&self, socket: &Path) -> Option<String> {
        let at = || escape::tail(socket.as_os_str().as_bytes(), WORDS);
        Some(match self {
            Self::Nobody if socket == Path::new(SOCKET) => return None,
            Self::Nobody => format!("there is none at {}", at()),
            Self::Shut => format!(
                "this user may not connect to {}, which is for all: ask the administrator to let users into its directory",
                at()
            ),
            Self::Refused(refusal) if refusal.reason == Reason::Absent => return None,
            Self::Refused(refusal) => escape::head(&refusal.message, WORDS),
            Self::Misread(misread) => escape::head(misread.to_string(), WORDS),
            Self::Broken(why) => escape::head(why, WORDS),
        })
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
    fn each_silence_has_its_cause_and_what_is_a_matter_of_course_has_none() {
        let own = Path::new("/run/other/agent.sock");
        let why = |silence: Silence| silence.why(own).unwrap_or_default();
        assert!(Silence::Nobody.why(Path::new(SOCKET)).is_none());
        assert!(why(Silence::Nobody).contains("none at /run/other/agent.sock"));
        assert!(why(Silence::Shut).contains("may not connect to /run/other/agent.sock"));
        assert!(why(Misread::Nothing.into()).contains("restart the agent"));
        let refused = |reason| Silence::Refused(Refusal::new(reason, "because\u{1b}"));
        assert!(refused(Reason::Absent).why(own).is_none());
        let told = why(refused(Reason::Failed));
        assert!(told.contains("because") && !told.contains('\u{1b}'), "{told}");
    }
}
