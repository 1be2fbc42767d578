//! Commands that are waited for.

use crate::boundary::{call, put, shared};
use crate::command::Command;
use crate::drive::Drive;
use crate::failure::Failure;
use crate::queues::Completion;
use ocssd_nvme::Cqe;
use std::ffi::c_int;

/// Hands over how a command ended.
///
/// # Safety
/// `completion` must be NULL or have room for one.
unsafe fn hand_over(cqe: &Cqe, completion: *mut Completion) -> Result<c_int, Failure> {
    let ended = Completion::of(cqe);
    if !completion.is_null() {
        // SAFETY: the caller's promise.
        unsafe { put(completion, "completion", ended)? };
    }
    Ok(c_int::from(ended.status_code()))
}

/// Carries out an admin command. `completion` may be NULL.
///
/// Returns 0 for success, the status (SCT and SC, above 0) if the drive refused or failed, or a negative number of errno.h
/// if the command did not reach the drive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_admin(
    drive: *mut Drive,
    command: *const Command,
    completion: *mut Completion,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open drive and a command.
        let (drive, command) = unsafe { (shared(drive, "drive")?, shared(command, "command")?) };
        let resolved = command.resolve_admin()?;
        let cqe = drive.core.enter()?.admin(&resolved, None)?;
        let cqe = cqe.expect("only event requests are held, and they were refused");
        // SAFETY: the header asks for NULL or room for a completion.
        unsafe { hand_over(&cqe, completion) }
    })
}

/// Carries out an I/O command and waits for its end: virtual time passes, the machine's is waited for. `completion` may be
/// NULL. Completions of other commands wait for their polls.
///
/// Returns as `ocssd_admin`; -EBUSY also if the command would change parallel units of an open target.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_io(
    drive: *mut Drive,
    command: *const Command,
    completion: *mut Completion,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open drive and a command.
        let (drive, command) = unsafe { (shared(drive, "drive")?, shared(command, "command")?) };
        let mut state = drive.core.enter()?;
        // SAFETY: the header asks for pointers as the struct says.
        let resolved = unsafe { command.resolve_io(state.units())? };
        let cqe = state.io(&resolved)?;
        // SAFETY: the header asks for NULL or room for a completion.
        unsafe { hand_over(&cqe, completion) }
    })
}
