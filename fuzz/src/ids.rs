//! Ids and lists as Slurm writes them and as they are typed.

use swbpf::job::cgroup::slurm::JobDirName;
use swbpf::job::id::JobId;
use swbpf::job::slurm::expand;

/// Most nodes of a list, and the longest name.
const MOST_NODES: usize = 65_536;
const LONGEST_NODE: usize = 255;
/// Nodes of a list that is read again: of longer ones there is no time to try many.
const MOST_AGAIN: usize = 1000;

/// An id means the same when it is written as it is shown.
pub fn job_id(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(id) = text.parse::<JobId>() {
        let shown = id.to_string();
        assert_eq!(shown.parse().as_ref(), Ok(&id), "{shown}");
    }
    if let Some(name) = JobDirName::from_dir(text) {
        assert!(name.to_string().parse::<JobId>().is_ok(), "{name}");
    }
}

/// A list is bounded, and names that are written out mean themselves.
pub fn nodelist(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let Ok(names) = expand(text) else { return };
    assert!(names.len() <= MOST_NODES);
    let is_whole = |name: &String| (1..=LONGEST_NODE).contains(&name.len());
    assert!(names.iter().all(is_whole), "{names:?}");
    if (1..=MOST_AGAIN).contains(&names.len()) {
        assert_eq!(expand(&names.join(",")).as_ref(), Ok(&names), "{text}");
    }
}
