//! Keep: the records of jobs, one file each, of one JSON object a line.

mod acl;
mod backward;
mod dir;
mod find;
mod keeper;
mod last;
mod list;
mod name;
mod prune;
mod reader;
mod users;
mod writer;

pub use acl::listed;
pub use dir::Dir;
pub use find::{Found, Match, find, matches};
pub use keeper::Keeper;
pub use last::{Last, Untold};
pub use list::{Filter, View, list, state};
pub use name::RecordName;
pub use prune::{Keep, Pruned};
pub use reader::{Record, Records};
pub use users::Whose;
pub use writer::Writer;
