//! A submission entry with the memory its pointers name, as C gives it and as the controller takes it.
//!
//! A pointer is either in the command beside the entry, with its length, or in the entry itself as an address of this
//! process; then the entry's own count says how much lies there. Address lists are copied at once, so that their alignment
//! does not matter. Deliberately not here: what a command means to the drive.

use crate::boundary::Memory;
use crate::failure::Failure;
use ocssd_flash::config::Revision;
use ocssd_nvme::ocssd20::ChunkDescriptor;
use ocssd_nvme::{AdminOpcode, IoOpcode, Sqe};
use std::ffi::c_void;

/// An NVMe command: the submission entry, and the memory it moves.
///
/// `data` is what DPTR would point to; the entry's own DPTR is not looked at. Metadata and address lists may be given here,
/// or by the entry (MPTR, LBAL in CDW10-11, DLBAL in CDW14-15) as addresses of this process, if the pointer here is NULL: then
/// the entry's count says how long they are, `oob_bytes` of metadata per sector, 32 bytes per chunk of a vector reset, 8
/// bytes per LBA. A command with one LBA holds it in the entry itself. Data, metadata and lists must not overlap, and must
/// stay where they are until the command has ended.
#[repr(C)]
pub struct Command {
    /// The 64 bytes of the submission entry, little-endian. The command identifier is the caller's: it comes back in the
    /// completion, and may be used twice.
    pub entry: [u8; 64],
    /// What is written, or where to put what is read; NULL for none.
    pub data: *mut c_void,
    /// Bytes of data.
    pub data_bytes: u64,
    /// Metadata, or where a vector reset puts the chunks' descriptors; NULL for what MPTR points to.
    pub metadata: *mut c_void,
    /// Bytes of metadata.
    pub metadata_bytes: u64,
    /// The list of LBAs of a vector command with more than one, or of the blocks of a Set Bad Block Table (F1h) of 1.2; NULL
    /// for what LBAL (CDW10-11) points to. The list of F1h may also be given as `data`.
    pub lbas: *const u64,
    /// The list of destinations of a vector copy, likewise; NULL for what DLBAL points to.
    pub destinations: *const u64,
    /// LBAs of the list.
    pub lba_count: u32,
    /// LBAs of the list of destinations.
    pub destination_count: u32,
}

/// A command whose pointers have been looked at.
pub struct Resolved {
    /// The entry.
    pub entry: [u8; 64],
    /// The entry, taken apart.
    pub sqe: Sqe,
    /// What DPTR stands for.
    pub data: Memory,
    /// What MPTR stands for.
    pub metadata: Memory,
    /// What LBAL stands for.
    pub lbas: Vec<u64>,
    /// What DLBAL stands for.
    pub destinations: Vec<u64>,
}

/// What of the drive decides how long something is.
#[derive(Clone, Copy)]
pub struct Units {
    /// Metadata of a sector.
    pub oob_bytes: u32,
    /// The revision spoken.
    pub revision: Revision,
}

/// The 64 bits of two dwords.
fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// A pointer that came as a number in the entry.
fn pointer(bits: u64) -> Result<*const c_void, Failure> {
    let address = usize::try_from(bits);
    let address =
        address.map_err(|_| Failure::invalid(format!("{bits:#x} is no address of this process")))?;
    Ok(std::ptr::with_exposed_provenance(address))
}

/// Copies a list of LBAs.
///
/// # Safety
/// `from` must be NULL, or point to `count` numbers of 64 bits.
unsafe fn copy_list(from: *const u64, count: usize) -> Vec<u64> {
    if from.is_null() {
        // The controller finds it too short.
        return Vec::new();
    }
    // SAFETY: within the list the caller promises; it may be misaligned.
    (0..count).map(|index| unsafe { from.add(index).read_unaligned() }).collect()
}

impl Command {
    /// Looks at an admin command's pointers, and copies its list.
    ///
    /// # Safety
    /// What the pointers name must be there, as the struct says.
    pub unsafe fn resolve_admin(&self, units: Units) -> Result<Resolved, Failure> {
        let data = Memory::new(self.data, self.data_bytes, "data")?;
        let sqe = Sqe::decode(&self.entry);
        let (metadata, mut lbas, destinations) = (Memory::NONE, Vec::new(), Vec::new());
        let count = marked_count(&sqe, units);
        if count > 1 && data.bytes() == 0 {
            // SAFETY: the caller's promise.
            lbas = unsafe { list(self.lbas, self.lba_count, join(sqe.cdw10, sqe.cdw11), count, "lbas")? };
        }
        Ok(Resolved { entry: self.entry, sqe, data, metadata, lbas, destinations })
    }

    /// Looks at an I/O command's pointers, and copies its lists.
    ///
    /// # Safety
    /// What the pointers name must be there, as the struct says.
    pub unsafe fn resolve_io(&self, units: Units) -> Result<Resolved, Failure> {
        let sqe = Sqe::decode(&self.entry);
        let data = Memory::new(self.data, self.data_bytes, "data")?;
        let metadata = self.metadata_memory(&sqe, units)?;
        if data.overlaps(metadata) {
            return Err(Failure::invalid("data and metadata overlap; give each memory of its own"));
        }
        let (mut lbas, mut destinations) = (Vec::new(), Vec::new());
        let count = vector_count(&sqe);
        if count > 1 {
            // SAFETY: the caller's promise.
            lbas = unsafe { list(self.lbas, self.lba_count, join(sqe.cdw10, sqe.cdw11), count, "lbas")? };
        }
        if count > 1 && sqe.io_opcode() == IoOpcode::VECTOR_COPY {
            let at = join(sqe.cdw14, sqe.cdw15);
            // SAFETY: the caller's promise.
            destinations =
                unsafe { list(self.destinations, self.destination_count, at, count, "destinations")? };
        }
        Ok(Resolved { entry: self.entry, sqe, data, metadata, lbas, destinations })
    }

    fn metadata_memory(&self, sqe: &Sqe, units: Units) -> Result<Memory, Failure> {
        if !self.metadata.is_null() || self.metadata_bytes > 0 {
            return Memory::new(self.metadata, self.metadata_bytes, "metadata");
        }
        let bytes = metadata_bytes(sqe, units);
        if sqe.mptr.0 == 0 || bytes == 0 {
            return Ok(Memory::NONE);
        }
        Memory::new(pointer(sqe.mptr.0)?, bytes, "MPTR of the entry")
    }
}

/// A list given beside the entry, or by the entry.
///
/// # Safety
/// As [`copy_list`], of both pointers.
unsafe fn list(
    given: *const u64,
    given_count: u32,
    in_entry: u64,
    count: usize,
    name: &str,
) -> Result<Vec<u64>, Failure> {
    if given.is_null() {
        if given_count > 0 {
            return Err(Failure::invalid(format!("{name} is NULL, but has {given_count} LBAs")));
        }
        // SAFETY: the caller's promise about the entry.
        return Ok(unsafe { copy_list(pointer(in_entry)?.cast(), count) });
    }
    let given_count = usize::try_from(given_count).expect("32 bits fit an index");
    // SAFETY: the caller's promise about the command.
    Ok(unsafe { copy_list(given, given_count.min(count)) })
}

/// Addresses of a vector command; 0 of others.
fn vector_count(sqe: &Sqe) -> usize {
    match sqe.io_opcode() {
        IoOpcode::VECTOR_RESET | IoOpcode::VECTOR_WRITE | IoOpcode::VECTOR_READ | IoOpcode::VECTOR_COPY => {
            // NLB is 0-based and has 6 bits.
            usize::try_from((sqe.cdw12 & 0x3F) + 1).expect("at most 64")
        }
        _ => 0,
    }
}

/// Addresses of a Set Bad Block Table of 1.2; 0 of other admin commands.
fn marked_count(sqe: &Sqe, units: Units) -> usize {
    let is_set = units.revision == Revision::V12 && sqe.admin_opcode() == AdminOpcode::SET_BBT;
    // NPPA is 0-based and has 16 bits (OCSSD 1.2 section 3.4).
    if is_set { usize::try_from((sqe.cdw12 & 0xFFFF) + 1).expect("at most 65 536") } else { 0 }
}

/// Bytes that MPTR of an entry stands for.
fn metadata_bytes(sqe: &Sqe, units: Units) -> u64 {
    let oob = u64::from(units.oob_bytes);
    let vector = u64::try_from(vector_count(sqe)).expect("at most 64");
    let descriptor = u64::try_from(ChunkDescriptor::BYTES).expect("32 bytes");
    match sqe.io_opcode() {
        IoOpcode::VECTOR_RESET if units.revision == Revision::V20 => vector * descriptor,
        IoOpcode::VECTOR_WRITE | IoOpcode::VECTOR_READ => vector * oob,
        // NLB of scalar commands is 0-based and has 16 bits.
        IoOpcode::READ | IoOpcode::WRITE => (u64::from(sqe.cdw12 & 0xFFFF) + 1) * oob,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::Lba;
    use ocssd_nvme::sqe::{Vector, VectorCopy};
    use ocssd_nvme::{AddressList, HostAddress};

    const UNITS: Units = Units { oob_bytes: 16, revision: Revision::V20 };

    fn command(sqe: Sqe) -> Command {
        Command {
            entry: sqe.encode(),
            data: std::ptr::null_mut(),
            data_bytes: 0,
            metadata: std::ptr::null_mut(),
            metadata_bytes: 0,
            lbas: std::ptr::null(),
            destinations: std::ptr::null(),
            lba_count: 0,
            destination_count: 0,
        }
    }

    fn many(list: &[u64]) -> AddressList<Lba> {
        let at = HostAddress(u64::try_from(list.as_ptr().expose_provenance()).unwrap());
        AddressList::Many { at, count: u8::try_from(list.len()).unwrap() }
    }

    #[test]
    fn pointers_of_the_entry_are_followed_as_far_as_its_count_says() {
        let (from, to, mut oob) = ([1u64, 2, 3], [7u64, 8, 9], [0u8; 48]);
        let copy = VectorCopy { sources: many(&from), destinations: many(&to), limited_retry: false };
        // SAFETY: all that is pointed to are variables of this function.
        let resolved = unsafe { command(Sqe::vector_copy(1, copy)).resolve_io(UNITS) }.unwrap();
        assert_eq!((resolved.lbas.as_slice(), resolved.destinations.as_slice()), (&from[..], &to[..]));
        assert_eq!((resolved.data.bytes(), resolved.metadata.bytes()), (0, 0));
        let mptr = HostAddress(u64::try_from(oob.as_mut_ptr().expose_provenance()).unwrap());
        let read = Sqe::vector_read(1, Vector { lbas: many(&from), limited_retry: false }).with_mptr(mptr);
        // SAFETY: as above.
        let resolved = unsafe { command(read).resolve_io(UNITS) }.unwrap();
        assert_eq!(resolved.metadata.bytes(), 48);
    }

    #[test]
    fn pointers_beside_the_entry_come_first_and_are_checked() {
        let (list, mut data) = ([1u64, 2], [0u8; 64]);
        let sqe = Sqe::vector_write(1, Vector { lbas: many(&list), limited_retry: false });
        let other = [5u64, 6, 7];
        let given = Command { lbas: other.as_ptr(), lba_count: 3, ..command(sqe) };
        // SAFETY: all that is pointed to are variables of this function.
        let resolved = unsafe { given.resolve_io(UNITS) }.unwrap();
        assert_eq!(resolved.lbas.as_slice(), [5, 6], "no more than the entry counts");
        let start: *mut c_void = data.as_mut_ptr().cast();
        let wrong = [
            Command { lba_count: 1, ..command(sqe) },
            Command { data_bytes: 1, ..command(sqe) },
            Command { metadata_bytes: 1, ..command(sqe) },
            Command {
                data: start,
                data_bytes: 33,
                metadata: start.wrapping_byte_add(32),
                metadata_bytes: 32,
                ..command(sqe)
            },
        ];
        for (case, wrong) in wrong.iter().enumerate() {
            // SAFETY: as above.
            assert!(unsafe { wrong.resolve_io(UNITS) }.is_err(), "case {case}");
        }
    }

    #[test]
    fn a_list_that_is_not_there_is_left_to_the_controller() {
        let nowhere = AddressList::Many { at: HostAddress(0), count: 4 };
        let sqe = Sqe::vector_read(1, Vector { lbas: nowhere, limited_retry: false });
        // SAFETY: nothing is pointed to.
        let resolved = unsafe { command(sqe).resolve_io(UNITS) }.unwrap();
        assert_eq!(resolved.lbas.as_slice(), [0u64; 0]);
    }
}
