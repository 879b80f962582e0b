//! Where one cgroup lies in each of the hierarchies.

use std::collections::BTreeMap;
use std::path::Path;

use super::hierarchies::{Hierarchies, Hierarchy};
use super::membership::Membership;
use super::{Cgroup, CgroupDir, CgroupError, Controller, Place, Version, kernfile};

impl Hierarchies {
    /// The cgroup at `inside` of `hierarchy`; in the other hierarchies the one of the same path, else the nearest
    /// above it: Slurm gives the tasks of a step cgroups of their own in some hierarchies only.
    pub(super) fn cgroup_inside(&self, hierarchy: &Hierarchy, inside: &Path) -> Result<Cgroup, CgroupError> {
        let places = self.places(|other| {
            inside.ancestors().find_map(|above| {
                Some(Place {
                    dir: other.dir_of(above)?,
                    exact: above == inside,
                })
            })
        });
        let main = match places.get(&Controller::Memory) {
            Some(Place { dir, exact: true }) => dir.clone(),
            _ => hierarchy.dir_of(inside).ok_or_else(|| CgroupError::Gone {
                path: inside.to_path_buf(),
            })?,
        };
        Cgroup::new(main, places)
    }

    /// The cgroup of process `pid`, whose memberships are given. Its cgroup in another hierarchy counts as the same
    /// where it has the same path, else as one whose limits hold for the process too.
    ///
    /// A root holds the whole machine, so it is taken only where the process is in the root everywhere: a Slurm job
    /// whose memory is not constrained is in the root of that hierarchy and in a cgroup of its own in another.
    pub(super) fn cgroup_of_members(&self, pid: u32, members: &[Membership]) -> Result<Cgroup, CgroupError> {
        let mut found = self
            .by_rank()
            .filter_map(|hierarchy| Some((hierarchy, hierarchy.membership(members)?)));
        let first = found.next().ok_or(CgroupError::NotMounted)?;
        let is_root = |(_, inside): &(&Hierarchy, &Path)| inside.parent().is_none();
        let (hierarchy, inside) = if is_root(&first) {
            found.find(|f| !is_root(f)).unwrap_or(first)
        } else {
            first
        };
        let main = hierarchy.dir_of(inside).ok_or_else(|| {
            let path = inside.to_path_buf();
            if hierarchy.shows(inside) {
                CgroupError::Gone { path }
            } else {
                CgroupError::NotVisible { pid, path }
            }
        })?;
        let places = self.places(|other| {
            let there = other.membership(members)?;
            Some(Place {
                dir: other.dir_of(there)?,
                exact: there == inside,
            })
        });
        Cgroup::new(main, places)
    }

    /// For each controller that is mounted, what `find` says of its hierarchy. On version 2 a cgroup can be without the
    /// controller: the one that has it then lies above.
    pub(super) fn places(&self, find: impl Fn(&Hierarchy) -> Option<Place>) -> BTreeMap<Controller, Place> {
        let mounted = |controller| {
            let found = find(self.hierarchy(controller)?)?;
            Some((controller, with_controller(found, controller)?))
        };
        Controller::ALL.into_iter().filter_map(mounted).collect()
    }
}

/// The place itself where its cgroup has the controller, else the nearest one above it that has.
fn with_controller(place: Place, controller: Controller) -> Option<Place> {
    if place.dir.version == Version::V1 || has_controller(&place.dir.path, controller) {
        return Some(place);
    }
    let path = place
        .dir
        .ancestors()
        .find(|dir| has_controller(dir, controller))?;
    let path = path.to_path_buf();
    Some(Place {
        dir: CgroupDir { path, ..place.dir },
        exact: false,
    })
}

/// Whether a cgroup of version 2 has a controller. Every one counts CPU time and can be frozen. One whose list of controllers
/// may not be read is taken to have it: then its files say why they cannot be read either.
fn has_controller(dir: &Path, controller: Controller) -> bool {
    let always = matches!(controller, Controller::Cpuacct | Controller::Freezer);
    let is_listed = |text: String| {
        text.split_ascii_whitespace()
            .any(|name| name == controller.name())
    };
    always || kernfile::read_text(&dir.join("cgroup.controllers")).map_or(true, is_listed)
}
