//! Submission entries for the commands that open-channel hosts send, so that C programs need not count bits.

use crate::boundary::{call, put};
use crate::command::Command;
use crate::failure::Failure;
use ocssd_lightnvm::Lba;
use ocssd_nvme::log_page::LogPageId;
use ocssd_nvme::sqe::{GetLogPage, ReadWrite, Vector, VectorCopy};
use ocssd_nvme::{AddressList, HostAddress, IoOpcode, Sqe};
use std::ffi::{c_int, c_void};
use std::ptr;

/// The one namespace of a drive.
const NSID: u32 = 1;

impl Command {
    const fn of(entry: [u8; 64]) -> Self {
        Self {
            entry,
            data: ptr::null_mut(),
            data_bytes: 0,
            metadata: ptr::null_mut(),
            metadata_bytes: 0,
            lbas: ptr::null(),
            destinations: ptr::null(),
            lba_count: 0,
            destination_count: 0,
        }
    }
}

/// The addresses of a vector command, in the entry if there is one.
///
/// # Safety
/// `lbas` must be NULL or point to `count` numbers.
unsafe fn addresses(lbas: *const u64, count: u32, name: &str) -> Result<AddressList<Lba>, Failure> {
    let counted = u8::try_from(count).ok().filter(|count| (1..=64).contains(count));
    let counted = counted.ok_or_else(|| {
        Failure::invalid(format!("a command has 1 to 64 addresses, but {count} were given"))
    })?;
    if lbas.is_null() {
        return Err(Failure::invalid(format!("{name} is NULL, but has {count} addresses")));
    }
    if counted > 1 {
        return Ok(AddressList::Many { at: HostAddress(0), count: counted });
    }
    // SAFETY: there is one address, by the caller's promise; it may be misaligned.
    Ok(AddressList::One(Lba(unsafe { lbas.read_unaligned() })))
}

/// Fills in a Geometry command (admin, E2h): `page` gets 4096 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_prepare_geometry(command: *mut Command, page: *mut c_void) -> c_int {
    let prepared = Command { data: page, data_bytes: 4096, ..Command::of(Sqe::geometry(NSID).encode()) };
    // SAFETY: the header asks for room for a command.
    call(|| unsafe { put(command, "command", prepared) }.map(|()| 0))
}

/// Fills in a Get Log Page command (admin, 02h) for `bytes` bytes of a page from byte `offset` on; both are multiples of 4.
/// The chunk log is page 0xCA of namespace 1, 32 bytes a chunk (`struct ocssd_chunk`); pages of the controller have namespace
/// 0xFFFFFFFF.
///
/// Errors: -EINVAL if there is nothing to read, or a number is no multiple of 4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_prepare_log_page(
    command: *mut Command,
    page: u8,
    nsid: u32,
    offset: u64,
    data: *mut c_void,
    bytes: u64,
) -> c_int {
    call(|| {
        if bytes == 0 || bytes > 1 << 34 || !bytes.is_multiple_of(4) || !offset.is_multiple_of(4) {
            return Err(Failure::invalid(format!(
                "a log page is read in dwords, but {bytes} bytes from {offset} on were asked for"
            )));
        }
        let get = GetLogPage {
            lid: LogPageId(page),
            lsp: 0,
            retain_event: false,
            dword_count: bytes / 4,
            offset_bytes: offset,
            csi: 0,
        };
        let entry = Sqe::get_log_page(nsid, get).encode();
        // SAFETY: the header asks for room for a command.
        unsafe { put(command, "command", Command { data, data_bytes: bytes, ..Command::of(entry) })? };
        Ok(0)
    })
}

/// Fills in a vector reset (0x90), write (0x91) or read (0x92) of `count` addresses (I/O). For a reset each is the first of
/// its chunk. Data and metadata may be set in the command afterwards. The list of more than one address must stay where it is
/// until the command has ended.
///
/// Errors: -EINVAL for another opcode, or no or more than 64 addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_prepare_vector(
    command: *mut Command,
    opcode: u8,
    lbas: *const u64,
    count: u32,
    data: *mut c_void,
    data_bytes: u64,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for as many addresses as the count says.
        let list = unsafe { addresses(lbas, count, "lbas")? };
        let vector = Vector { lbas: list, limited_retry: false };
        let sqe = match IoOpcode(opcode) {
            IoOpcode::VECTOR_RESET => Sqe::vector_reset(NSID, list, None),
            IoOpcode::VECTOR_WRITE => Sqe::vector_write(NSID, vector),
            IoOpcode::VECTOR_READ => Sqe::vector_read(NSID, vector),
            _ => {
                return Err(Failure::invalid(format!(
                    "opcode {opcode:#04x} is none of 0x90 (reset), 0x91 (write), 0x92 (read)"
                )));
            }
        };
        let (lbas, lba_count) = if count > 1 { (lbas, count) } else { (ptr::null(), 0) };
        let prepared = Command { data, data_bytes, lbas, lba_count, ..Command::of(sqe.encode()) };
        // SAFETY: the header asks for room for a command.
        unsafe { put(command, "command", prepared)? };
        Ok(0)
    })
}

/// Fills in a vector copy (I/O, 93h) of `count` sectors inside the drive.
///
/// Errors: -EINVAL for no or more than 64 addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_prepare_copy(
    command: *mut Command,
    sources: *const u64,
    destinations: *const u64,
    count: u32,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for as many addresses as the count says, in both lists.
        let (from, to) = unsafe {
            (addresses(sources, count, "sources")?, addresses(destinations, count, "destinations")?)
        };
        let sqe =
            Sqe::vector_copy(NSID, VectorCopy { sources: from, destinations: to, limited_retry: false });
        let mut prepared = Command::of(sqe.encode());
        if count > 1 {
            (prepared.lbas, prepared.lba_count) = (sources, count);
            (prepared.destinations, prepared.destination_count) = (destinations, count);
        }
        // SAFETY: the header asks for room for a command.
        unsafe { put(command, "command", prepared)? };
        Ok(0)
    })
}

/// Fills in a scalar write (0x01), read (0x02) or flush (0x00; the rest is then 0 and NULL) of `count` sectors from `lba` on
/// (I/O).
///
/// Errors: -EINVAL for another opcode, or no or more than 65536 sectors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_prepare_scalar(
    command: *mut Command,
    opcode: u8,
    lba: u64,
    count: u32,
    data: *mut c_void,
    data_bytes: u64,
) -> c_int {
    call(|| {
        let scalar =
            ReadWrite { slba: Lba(lba), block_count: count, limited_retry: false, force_unit_access: false };
        let fits = (1..=1 << 16).contains(&count);
        let sqe = match IoOpcode(opcode) {
            IoOpcode::FLUSH => Sqe::flush(NSID),
            IoOpcode::WRITE if fits => Sqe::write(NSID, scalar),
            IoOpcode::READ if fits => Sqe::read(NSID, scalar),
            _ => {
                return Err(Failure::invalid(format!(
                    "opcode {opcode:#04x} with {count} sectors is neither 0x00 (flush) nor 0x01 (write) or 0x02 (read) of 1 to \
                     65536 sectors"
                )));
            }
        };
        // SAFETY: the header asks for room for a command.
        unsafe { put(command, "command", Command { data, data_bytes, ..Command::of(sqe.encode()) })? };
        Ok(0)
    })
}

/// One chunk in the chunk information log page, 32 bytes, little-endian (OCSSD 2.0 section 3.2.2).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// 1 free, 2 closed, 4 open, 8 offline.
    pub state: u8,
    /// 1: written in order.
    pub kind: u8,
    /// Wear index: 0 new, 255 at its end.
    pub wear_index: u8,
    /// Zero.
    pub reserved: [u8; 5],
    /// LBA of its first sector.
    pub slba: u64,
    /// Sectors.
    pub sectors: u64,
    /// The next sector to write, from its first; all ones if it is offline.
    pub write_pointer: u64,
}

const _: () = assert!(size_of::<Chunk>() == ocssd_nvme::ocssd20::ChunkDescriptor::BYTES);
