//! Giving up what root may do.

use std::io;

use rustix::{
    io::Errno,
    thread::{
        CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};

/// Leaves this thread, the only one of its process, these capabilities, of those that it has; what it executes has none.
pub fn keep_only(kept: CapabilitySet) -> io::Result<()> {
    clear_ambient_capability_set()?;
    for capability in bounding() {
        match remove_capability_from_bounding_set(capability) {
            // Without CAP_SETPCAP nobody may. Then what follows alone keeps programs from gaining anything.
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    set_no_new_privs(true)?;
    let has = rustix::thread::capabilities(None)?.permitted;
    let sets = CapabilitySets {
        effective: kept & has,
        permitted: kept & has,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, sets)?)
}

/// Whether `works` is true of this thread while it has no capability but these, of those that it has.
pub fn is_enough(kept: CapabilitySet, works: impl FnOnce() -> bool) -> io::Result<bool> {
    let had = rustix::thread::capabilities(None)?;
    let effective = kept & had.effective;
    set_capabilities(None, CapabilitySets { effective, ..had })?;
    let is_enough = works();
    set_capabilities(None, had)?;
    Ok(is_enough)
}

/// Those that an executed program could be given, each on its own; also those of newer kernels, which have no name here.
fn bounding() -> impl Iterator<Item = CapabilitySet> {
    let all = (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit));
    let known = all.map(|one| (one, capability_is_in_bounding_set(one)));
    // The kernel refuses to tell of one that it does not know.
    known
        .map_while(|(one, is_in)| Some((one, is_in.ok()?)))
        .filter_map(|(one, is_in)| is_in.then_some(one))
}
