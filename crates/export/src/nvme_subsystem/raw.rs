//! Commands of the raw namespace: which can travel in a capsule at all, and the way to the drive.
//!
//! An address list and a metadata buffer are pointers into the host's memory, which a capsule cannot carry. So a vector
//! command has one address here, in itself. By a convention of this server's own, off unless it is asked for, a vector
//! command of more addresses means as many that follow each other: the next sectors of a write or read, to the end of the
//! chunk at most, and the next chunks of a reset. Deliberately not here: what the drive makes of a command.

use super::command::Transfer;
use super::commands::Commands;
use crate::dispatcher::Dispatcher;
use crate::raw_drive::RawShape;
use crate::raw_lane::{RawJob, RawLane};
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;
use ocssd_nvme::{AddressList, IoOpcode, Sqe};

/// Bits of CDW12 that are the count of a vector command, 0-based (OCSSD 2.0 section 3.4).
pub(super) const COUNT_MASK: u32 = 0x3F;

/// A command that a capsule can carry whole.
///
/// # Errors
/// The status of one that it cannot.
pub(super) fn judge(sqe: &Sqe, transfer: Transfer, raw: &RawLane) -> Result<(), Status> {
    let expected = data_bytes(sqe, raw.drive.shape());
    match sqe.io_opcode() {
        // The drive judges its ranges; here it has at least one.
        IoOpcode::DATASET_MANAGEMENT if transfer.bytes() >= 16 => return Ok(()),
        IoOpcode::DATASET_MANAGEMENT => return Err(Status::INVALID_SGL_LENGTH),
        IoOpcode::FLUSH
        | IoOpcode::READ
        | IoOpcode::WRITE
        | IoOpcode::VECTOR_RESET
        | IoOpcode::VECTOR_COPY
        | IoOpcode::VECTOR_READ
        | IoOpcode::VECTOR_WRITE => {}
        _ => return Err(Status::INVALID_OPCODE),
    }
    let is_vector = sqe.opcode & 0xF0 == IoOpcode::VECTOR_RESET.0;
    let is_many = is_vector && sqe.cdw12 & COUNT_MASK != 0;
    if is_many && (!raw.runs_of_addresses || sqe.io_opcode() == IoOpcode::VECTOR_COPY) {
        return Err(Status::INVALID_FIELD);
    }
    // Where descriptors or metadata would go cannot be reached.
    if is_vector && sqe.mptr.0 != 0 {
        return Err(Status::INVALID_FIELD);
    }
    let bytes = u64::try_from(transfer.bytes()).expect("a length");
    if bytes == expected { Ok(()) } else { Err(Status::INVALID_SGL_LENGTH) }
}

/// Bytes that a command moves by its own fields; 0 of one that is not known.
pub(super) fn data_bytes(sqe: &Sqe, shape: RawShape) -> u64 {
    let sectors = match sqe.io_opcode() {
        IoOpcode::READ | IoOpcode::WRITE => u64::from(sqe.cdw12 & 0xFFFF) + 1,
        IoOpcode::VECTOR_READ | IoOpcode::VECTOR_WRITE => u64::from(sqe.cdw12 & COUNT_MASK) + 1,
        // Its ranges, 0-based.
        IoOpcode::DATASET_MANAGEMENT => return (u64::from(sqe.cdw10 & 0xFF) + 1) * 16,
        _ => 0,
    };
    sectors * u64::from(shape.sector_bytes)
}

/// The addresses of a vector command of more than one, by the convention.
fn run_of_addresses(sqe: &Sqe, shape: RawShape) -> Vec<u64> {
    let vector = ocssd_nvme::sqe::Vector::of(sqe);
    let AddressList::Many { count, .. } = vector.lbas else { return Vec::new() };
    let first = u64::from(sqe.cdw11) << 32 | u64::from(sqe.cdw10);
    let step = if sqe.io_opcode() == IoOpcode::VECTOR_RESET { shape.chunk_stride } else { 1 };
    (0..u64::from(count)).map(|place| first.wrapping_add(place * step)).collect()
}

impl<P> Commands<P> {
    /// Gives a command to the raw drive; false if there is no room.
    pub(super) fn give_raw(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) -> bool {
        let owner = self.owner(key);
        let raw = dispatcher.raw.as_mut().expect("the command was judged");
        if !raw.has_room() {
            return false;
        }
        let addresses = match self.open.get(key).sqe {
            sqe if raw.runs_of_addresses && sqe.opcode & 0xF0 == IoOpcode::VECTOR_RESET.0 => {
                run_of_addresses(&sqe, raw.drive.shape())
            }
            _ => Vec::new(),
        };
        let command = self.open.get_mut(key);
        command.given += 1;
        command.running += 1;
        let (sqe, bytes) = (command.sqe, command.transfer.bytes());
        raw.put(RawJob { owner, sqe, addresses, piece: command.piece.take(), bytes });
        true
    }
}
