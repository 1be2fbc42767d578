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
        let mut state = drive.core.enter()?;
        // SAFETY: the header asks for pointers as the struct says.
        let resolved = unsafe { command.resolve_admin(state.units())? };
        let cqe = state.admin(&resolved, None)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::{ocssd_drive_close, ocssd_drive_open};
    use crate::target::{ocssd_target_close, ocssd_target_open};
    use ocssd_base::Prng;
    use std::ptr::{null, null_mut};

    /// An entry of any bits, more often of some that mean something.
    fn entry(prng: &mut Prng) -> [u8; 64] {
        let mut entry = [0; 64];
        for word in entry.chunks_exact_mut(8) {
            let shift = prng.below(64);
            word.copy_from_slice(&(prng.next_u64() >> shift).to_le_bytes());
        }
        let known = [0x00, 0x01, 0x02, 0x06, 0x09, 0x0A, 0x90, 0x91, 0x92, 0x93, 0xE2];
        if let Some(&opcode) = known.get(usize::try_from(prng.below(14)).expect("small")) {
            entry[0] = opcode;
            (entry[1], entry[4]) = (0, 1);
            entry[5..8].fill(0);
        }
        entry
    }

    #[test]
    fn entries_of_any_bits_are_answered_by_a_drive_with_and_without_targets() {
        const SEED: u64 = 5;
        let mut prng = Prng::new(SEED);
        let (mut drive, mut target) = (null_mut(), null_mut());
        let (mut data, mut metadata) = (vec![0u8; 1 << 18], vec![0u8; 4096]);
        let mut answered = std::collections::BTreeMap::new();
        // SAFETY: the handles are those of the library, and every pointer is beside the entry, with its length.
        unsafe {
            assert_eq!(ocssd_drive_open(c"tiny".as_ptr(), null(), &raw mut drive), 0);
            for number in 0..4000 {
                if number == 2000 {
                    let opened =
                        ocssd_target_open(drive, c"linear".as_ptr(), c"pu:1-2".as_ptr(), &raw mut target);
                    assert_eq!(opened, 0);
                }
                let lbas: Vec<u64> = (0..64).map(|_| prng.next_u64() >> 54).collect();
                let command = Command {
                    entry: entry(&mut prng),
                    data: data.as_mut_ptr().cast(),
                    data_bytes: prng.below(1 << 18),
                    metadata: metadata.as_mut_ptr().cast(),
                    metadata_bytes: prng.below(4096),
                    lbas: lbas.as_ptr(),
                    destinations: lbas.as_ptr(),
                    lba_count: 64,
                    destination_count: 64,
                };
                let is_admin = prng.below(4) == 0;
                let by = if is_admin { ocssd_admin } else { ocssd_io };
                let result = by(drive, &raw const command, null_mut());
                assert!(
                    result >= 0 || [-libc::EBUSY, -libc::EINVAL].contains(&result),
                    "seed {SEED}, entry {number} {:x?}: {result}",
                    command.entry
                );
                *answered.entry(result).or_insert(0) += 1;
            }
            assert_eq!((ocssd_target_close(&raw mut target), ocssd_drive_close(&raw mut drive)), (0, 0));
        }
        for result in [0, 0x001, 0x002, 0x004, 0x2F2, -libc::EBUSY] {
            assert!(answered.contains_key(&result), "seed {SEED}: nothing ended with {result}: {answered:?}");
        }
    }
}
