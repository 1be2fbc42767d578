//! Which raw commands may go to a drive that has targets: those that change nothing of what a target has leased.
//!
//! A target trusts what it knows of its chunks; a reset behind its back would be found as damage. Reads are free, and so is
//! every change of units without an open target, as on LightNVM's drives. Deliberately not here: whether the command is
//! right; that is the controller's.

use crate::command::Resolved;
use crate::failure::Failure;
use ocssd_flash::Config;
use ocssd_flash::config::Revision;
use ocssd_lightnvm::media_manager::MediaManager;
use ocssd_lightnvm::{Geometry, Lba, Ppa};
use ocssd_nvme::ocssd20::DsmRange;
use ocssd_nvme::sqe::{DatasetManagement, ReadWrite, Vector, VectorCopy};
use ocssd_nvme::{AddressList, IoOpcode};

/// Refuses a command that changes units of a target that is open. `is_open` says so of a lease by its name.
pub fn check(
    config: &Config,
    manager: &MediaManager,
    is_open: impl Fn(&str) -> bool,
    command: &Resolved,
) -> Result<(), Failure> {
    let changed = changed(command);
    if changed.is_empty() {
        return Ok(());
    }
    if config.revision == Revision::V12 {
        return Err(Failure::new(
            libc::EBUSY,
            "a drive of OCSSD 1.2 takes no raw writes and erases while a target is open; close the target first",
        ));
    }
    let geometry: &Geometry = &config.geometry;
    for lba in changed {
        let ppa = geometry.ppa_of(Lba(lba));
        if ppa == Ppa::NOWHERE {
            continue;
        }
        let unit = geometry.pu_of(ppa.chunk);
        if let Some(lease) = manager.holder(unit).filter(|lease| is_open(&lease.name)) {
            return Err(Failure::new(
                libc::EBUSY,
                format!(
                    "{lba:#x} lies on parallel unit {}, which the open target \"{}\" has; raw commands may read it only",
                    unit.0, lease.name
                ),
            ));
        }
    }
    Ok(())
}

/// An address of each chunk a command may change.
fn changed(command: &Resolved) -> Vec<u64> {
    let of = |list: AddressList<Lba>, given: &[u64]| match list {
        AddressList::One(lba) => vec![lba.0],
        AddressList::Many { .. } => given.to_vec(),
    };
    match command.sqe.io_opcode() {
        IoOpcode::VECTOR_RESET | IoOpcode::VECTOR_WRITE => of(Vector::of(&command.sqe).lbas, &command.lbas),
        IoOpcode::VECTOR_COPY => of(VectorCopy::of(&command.sqe).destinations, &command.destinations),
        // A write lies in one chunk, or is refused.
        IoOpcode::WRITE => vec![ReadWrite::of(&command.sqe).slba.0],
        IoOpcode::DATASET_MANAGEMENT if DatasetManagement::of(&command.sqe).deallocate => {
            // SAFETY: the data of a command are there during its call.
            let data = unsafe { command.data.as_shared() };
            let ranges = data.chunks_exact(DsmRange::BYTES).take(256);
            ranges.filter_map(|range| DsmRange::decode(range).ok()).map(|range| range.slba.0).collect()
        }
        _ => Vec::new(),
    }
}
