//! Telling: everything from a [`Snapshot`](crate::snapshot::Snapshot) to what is read.

pub mod escape;
pub mod json;
pub mod openmetrics;
pub mod schema;
pub mod text;
pub mod units;

use std::io::{self, ErrorKind, Write};
use std::ops::ControlFlow;

use crate::error::Error;

/// Writes `text` to standard output at once. `Break` says that its reader has gone, which is no failure.
pub fn tell(text: &str) -> Result<ControlFlow<()>, Error> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    outcome(written).map_err(|source| Error::Stdout { source })
}

/// Writes `text` to standard error; where that is closed there is no one left to tell.
pub fn tell_aside(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

fn outcome(written: io::Result<()>) -> io::Result<ControlFlow<()>> {
    match written {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_has_gone_is_no_failure() {
        let gone = || Err(io::Error::from(ErrorKind::BrokenPipe));
        assert_eq!(outcome(gone()).ok(), Some(ControlFlow::Break(())));
        assert_eq!(outcome(Ok(())).ok(), Some(ControlFlow::Continue(())));
        assert!(outcome(Err(io::Error::from(ErrorKind::StorageFull))).is_err());
    }
}
