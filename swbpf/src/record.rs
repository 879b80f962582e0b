//! Keep: the records of jobs, one file each, of one JSON object a line.

mod acl;
mod backward;
mod brief;
mod dir;
mod find;
mod ids;
mod index;
mod keeper;
mod last;
mod list;
mod name;
mod prune;
mod reader;
mod users;
mod walk;
mod writer;

pub use acl::listed;
pub use brief::Brief;
pub use dir::{Dir, FileId, Inode, Run};
pub use find::{Found, Search, find, named};
pub use ids::{Ids, Match};
pub use index::Index;
pub use keeper::Keeper;
pub use last::{Last, Untold};
pub use list::{Filter, List, View, list};
pub use name::RecordName;
pub use prune::{Keep, Pruned};
pub use reader::{Record, Records};
pub use users::Whose;
pub use walk::Walk;
pub use writer::Writer;
