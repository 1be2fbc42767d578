//! Commands of the raw namespace: which can travel in a capsule at all, and the way to the drive.
//!
//! An address list and a metadata buffer are pointers into the host's memory, which a capsule cannot carry. So a vector
//! command has one address here, in itself. By a convention of this server's own, off unless it is asked for, a vector
//! command of more addresses means as many that follow each other: the next sectors of a write or read, to the end of the
//! chunk at most, and the next chunks of a reset. A host that claims the drive for itself has that, and metadata behind the
//! data (`ocssd_nvme::ocssd20::Claim`). Deliberately not here: what the drive makes of a command.

use super::command::Transfer;
use super::commands::{Commands, Refusal};
use super::plan::CommandPlan;
use crate::dispatcher::Dispatcher;
use crate::raw_drive::RawShape;
use crate::raw_lane::{RawJob, RawLane};
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;
use ocssd_nvme::ocssd20::Claim;
use ocssd_nvme::{AddressList, IoOpcode, Sqe, StatusField};

/// Bits of CDW12 that are the count of a vector command, 0-based (OCSSD 2.0 section 3.4).
pub(super) const COUNT_MASK: u32 = 0x3F;

/// A command that a capsule can carry whole, of the host that has claimed the drive or of any.
///
/// # Errors
/// The status of one that it cannot.
pub(super) fn judge(
    sqe: &Sqe,
    transfer: Transfer,
    raw: &RawLane,
    is_claimed: bool,
) -> Result<CommandPlan, Status> {
    let shape = raw.drive.shape();
    let expected = data_bytes(sqe, shape) + if is_claimed { metadata_bytes(sqe, shape) } else { 0 };
    match sqe.io_opcode() {
        // The drive judges its ranges; here it has at least one.
        IoOpcode::DATASET_MANAGEMENT if transfer.bytes() >= 16 => return Ok(CommandPlan::Raw),
        IoOpcode::DATASET_MANAGEMENT => return Err(Status::INVALID_SGL_LENGTH),
        IoOpcode::CLAIM_DRIVE if transfer == Transfer::None => {
            return Claim::of(sqe).map(CommandPlan::Claim).ok_or(Status::INVALID_FIELD);
        }
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
    let runs = raw.runs_of_addresses || is_claimed;
    if is_many && (!runs || sqe.io_opcode() == IoOpcode::VECTOR_COPY) {
        return Err(Status::INVALID_FIELD);
    }
    // Where descriptors or metadata would go cannot be reached.
    if is_vector && sqe.mptr.0 != 0 {
        return Err(Status::INVALID_FIELD);
    }
    let bytes = u64::try_from(transfer.bytes()).expect("a length");
    if bytes == expected { Ok(CommandPlan::Raw) } else { Err(Status::INVALID_SGL_LENGTH) }
}

/// Bytes of data that a command moves by its own fields; 0 of one that is not known.
pub(super) fn data_bytes(sqe: &Sqe, shape: RawShape) -> u64 {
    match sqe.io_opcode() {
        // Its ranges, 0-based.
        IoOpcode::DATASET_MANAGEMENT => (u64::from(sqe.cdw10 & 0xFF) + 1) * 16,
        _ => sectors(sqe) * u64::from(shape.sector_bytes),
    }
}

/// Bytes of metadata that go with them in a claim.
fn metadata_bytes(sqe: &Sqe, shape: RawShape) -> u64 {
    sectors(sqe) * u64::from(shape.metadata_bytes)
}

/// Sectors that a command reads or writes.
fn sectors(sqe: &Sqe) -> u64 {
    match sqe.io_opcode() {
        IoOpcode::READ | IoOpcode::WRITE => u64::from(sqe.cdw12 & 0xFFFF) + 1,
        IoOpcode::VECTOR_READ | IoOpcode::VECTOR_WRITE => u64::from(sqe.cdw12 & COUNT_MASK) + 1,
        _ => 0,
    }
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
        let subsystem = dispatcher.subsystem.as_ref().expect("an association lies in a subsystem");
        let claim = subsystem.claim(self.open.get(key).sqe.nsid);
        if claim.is_some_and(|holder| holder != self.cntlid) {
            // It was claimed while the data was on its way.
            self.answer(key, Err(Status::RESERVATION_CONFLICT.into()), dispatcher);
            return true;
        }
        let is_claimed = claim.is_some();
        let raw = dispatcher.raw.as_mut().expect("the command was judged");
        if !raw.has_room() {
            return false;
        }
        let (sqe, shape) = (self.open.get(key).sqe, raw.drive.shape());
        let runs = raw.runs_of_addresses || is_claimed;
        let addresses = if runs && sqe.opcode & 0xF0 == IoOpcode::VECTOR_RESET.0 {
            run_of_addresses(&sqe, shape)
        } else {
            Vec::new()
        };
        let metadata_bytes = if is_claimed { metadata_bytes(&sqe, shape) } else { 0 };
        let metadata_bytes = usize::try_from(metadata_bytes).expect("it is less than a transfer");
        let command = self.open.get_mut(key);
        command.given += 1;
        command.running += 1;
        let (sqe, bytes) = (command.sqe, command.transfer.bytes());
        raw.put(RawJob { owner, sqe, addresses, piece: command.piece.take(), bytes, metadata_bytes });
        true
    }

    /// The drive becomes this host's alone, or everybody's again: only with nothing of another host on its way, and for a host
    /// whose data travels in capsules.
    pub(super) fn claim_raw(
        &self,
        nsid: u32,
        claim: Claim,
        dispatcher: &mut Dispatcher,
    ) -> Result<(u32, u32), Refusal> {
        let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
        let raw = dispatcher.raw.as_ref().expect("the command was judged");
        let has_capsules =
            subsystem.association(self.cntlid).is_some_and(|one| one.transport.fabrics.ioccsz > 0);
        if !has_capsules {
            return Err(Status::INVALID_FIELD.into());
        }
        if raw.open_jobs() > 0 {
            return Err(Refusal { status: StatusField::retry(Status::NAMESPACE_NOT_READY), dw0: 0 });
        }
        subsystem.set_claim(nsid, self.cntlid, claim)?;
        Ok((raw.drive.shape().metadata_bytes, 0))
    }
}
