//! Keep: the records of jobs, one file each, of one JSON object a line.

mod acl;
mod dir;
mod keeper;
mod name;
mod writer;

pub use acl::readers;
pub use dir::Dir;
pub use keeper::Keeper;
pub use name::RecordName;
pub use writer::Writer;
