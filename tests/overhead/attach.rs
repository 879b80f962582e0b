//! What is attached to the kernel's hooks while a load runs.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use swbpf::job::cgroup::{Controller, Hierarchies};
use swbpf::kernel::layout::Hierarchy;
use swbpf::kernel::support::{self, Facts, Plan};
use swbpf::probe::{Floor, Probe, Room, Start};

use crate::cgroups::Place;
use crate::report::grouped;

/// Room for cgroups, at least: that of few is no special case.
const LEAST_CAPACITY: usize = 64;

/// What a load is measured under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// No program.
    None,
    /// Programs that do nothing, on the hooks of the hot paths.
    Empty,
    /// Ours, and no cgroup is tracked.
    Untracked,
    /// Ours, with so many cgroups tracked, that of the load among them.
    Tracked(usize),
}

impl Display for Variant {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Empty => f.write_str("empty"),
            Self::Untracked => f.write_str("untracked"),
            Self::Tracked(1) => f.write_str("tracked"),
            Self::Tracked(cgroups) => write!(f, "tracked among {}", grouped(*cgroups)),
        }
    }
}

/// What is attached. Dropped: detached.
#[derive(Default)]
pub struct Attached {
    _empty: Option<Floor>,
    _ours: Option<Probe>,
}

/// How programs get into this kernel.
pub struct Kernel {
    plan: Plan,
    own_cgroup: Option<PathBuf>,
}

impl Kernel {
    /// Looks at this machine.
    pub fn plan(hierarchies: &Hierarchies) -> Result<Self> {
        let own = hierarchies.cgroup_of_pid(std::process::id())?;
        let version = hierarchies
            .version_of(Controller::Memory)
            .context("no hierarchy counts memory")?;
        Ok(Self {
            plan: support::plan(&mut Facts::gather(), Hierarchy::Of(Controller::Memory), version)?,
            own_cgroup: own.nearest_dir(Controller::Memory).map(|dir| dir.path.clone()),
        })
    }

    /// Attaches what `variant` says, and tracks the last cgroups of `place`.
    pub fn attach(&self, variant: Variant, place: &Place) -> Result<Attached> {
        let tracked = match variant {
            Variant::None => return Ok(Attached::default()),
            Variant::Empty => {
                return Ok(Attached {
                    _empty: Some(Floor::load(&self.plan)?),
                    _ours: None,
                });
            }
            Variant::Untracked => 0,
            Variant::Tracked(cgroups) => cgroups,
        };
        Ok(Attached {
            _empty: None,
            _ours: Some(self.probe(place, tracked)?),
        })
    }

    /// Ours, with `cgroups` tracked.
    pub fn probe(&self, place: &Place, cgroups: usize) -> Result<Probe> {
        let capacity = LEAST_CAPACITY.max(place.ids.len() + 1);
        let mut probe = Probe::load(
            &self.plan,
            Room::targets(u32::try_from(capacity)?),
            self.own_cgroup.as_deref(),
        )?;
        for id in place.ids.iter().rev().take(cgroups) {
            probe.track(*id, Start::default(), 0)?;
        }
        Ok(probe)
    }
}
