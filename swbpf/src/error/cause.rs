//! What is at the bottom of a failure.

use std::error::Error as Cause;
use std::io;

use aya::maps::MapError;
use aya::programs::ProgramError;
use rustix::io::Errno;

use super::Error;

/// Whether one of the causes is that this process has as many open files as it may.
pub fn is_for_too_many_files(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        io_error(cause).and_then(Errno::from_io_error) == Some(Errno::MFILE)
            || matches!(cause.downcast_ref(), Some(Error::TooManyFiles { .. }))
    })
}

/// The answer of a system call, also where it stands in an error that does not name it as its cause.
fn io_error<'a>(cause: &'a (dyn Cause + 'static)) -> Option<&'a io::Error> {
    if let Some(ProgramError::IOError(error)) = cause.downcast_ref() {
        return Some(error);
    }
    if let Some(MapError::IoError(error)) = cause.downcast_ref() {
        return Some(error);
    }
    cause.downcast_ref()
}
