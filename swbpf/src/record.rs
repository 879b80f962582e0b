//! Keep: the records of jobs, one file each, of one JSON object a line.

mod dir;
mod writer;

pub use dir::Dir;
pub use writer::Writer;
