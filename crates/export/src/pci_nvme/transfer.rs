//! What a command moves between the guest's memory and the drive, and where its pointers lead.
//!
//! A PRP has no length, so the command's own fields say how much it means.

use super::drive::Units;
use super::memory::{GuestMemory, Segment, Unmapped, are_writable, gather, scatter};
use super::{prp, sgl};
use ocssd_lightnvm::Status;
use ocssd_nvme::identify::IdentifyController;
use ocssd_nvme::ocssd20::{ChunkDescriptor, DsmRange};
use ocssd_nvme::sgl::SglDescriptor;
use ocssd_nvme::sqe::{GetLogPage, Psdt};
use ocssd_nvme::{AdminOpcode, HostAddress, IoOpcode, Sqe};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Way {
    #[default]
    Nowhere,
    ToDrive,
    ToHost,
}

/// What a command moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moves {
    /// Data, behind DPTR, and metadata, behind MPTR, go this way.
    pub(super) way: Way,
    /// Bytes of data.
    pub(super) data: u64,
    /// Bytes of metadata, if MPTR points to any. That of a reset goes to the host.
    pub(super) metadata: u64,
    /// Addresses in the list behind CDW10-11.
    pub(super) addresses: u32,
    /// Addresses in the list behind CDW14-15.
    pub(super) destinations: u32,
}

fn bytes(count: usize) -> u64 {
    u64::try_from(count).expect("a size of the specification")
}

impl Moves {
    /// What an I/O command moves.
    pub(super) fn of_io(sqe: &Sqe, units: &Units) -> Self {
        let (sector, oob) = (u64::from(units.sector_bytes), u64::from(units.oob_bytes));
        let sectors =
            |way, count: u64| Self { way, data: count * sector, metadata: count * oob, ..Self::default() };
        // NLB is 0-based: 16 bits of scalar commands, 6 bits of vector commands.
        let (scalar, vector) = ((sqe.cdw12 & 0xFFFF) + 1, (sqe.cdw12 & 0x3F) + 1);
        let list = if vector > 1 { vector } else { 0 };
        match sqe.io_opcode() {
            // On a 1.2 drive these are commands it does not have.
            IoOpcode::READ | IoOpcode::WRITE | IoOpcode::DATASET_MANAGEMENT if units.is_v12 => {
                Self::default()
            }
            IoOpcode::READ => sectors(Way::ToHost, scalar.into()),
            IoOpcode::WRITE => sectors(Way::ToDrive, scalar.into()),
            IoOpcode::DATASET_MANAGEMENT => {
                let ranges = u64::from(sqe.cdw10 & 0xFF) + 1;
                Self { way: Way::ToDrive, data: ranges * bytes(DsmRange::BYTES), ..Self::default() }
            }
            IoOpcode::VECTOR_READ => Self { addresses: list, ..sectors(Way::ToHost, vector.into()) },
            IoOpcode::VECTOR_WRITE => Self { addresses: list, ..sectors(Way::ToDrive, vector.into()) },
            IoOpcode::VECTOR_RESET => {
                let descriptors = if units.is_v12 { 0 } else { vector };
                let metadata = u64::from(descriptors) * bytes(ChunkDescriptor::BYTES);
                Self { way: Way::ToHost, metadata, addresses: list, ..Self::default() }
            }
            IoOpcode::VECTOR_COPY => Self { addresses: list, destinations: list, ..Self::default() },
            _ => Self::default(),
        }
    }

    /// What an admin command moves by DPTR.
    pub(super) fn of_admin(sqe: &Sqe, units: &Units) -> Self {
        let to_host = |data| Self { way: Way::ToHost, data, ..Self::default() };
        match sqe.admin_opcode() {
            AdminOpcode::IDENTIFY | AdminOpcode::GEOMETRY => to_host(bytes(IdentifyController::BYTES)),
            AdminOpcode::GET_LOG_PAGE => to_host(GetLogPage::of(sqe).byte_count()),
            AdminOpcode::GET_BBT if units.is_v12 => to_host(units.bad_block_table_bytes),
            // Its list lies behind CDW10-11, not DPTR.
            AdminOpcode::SET_BBT if units.is_v12 => {
                let count = (sqe.cdw12 & 0xFFFF) + 1;
                Self { addresses: if count > 1 { count } else { 0 }, ..Self::default() }
            }
            _ => Self::default(),
        }
    }
}

/// The memory of a command while it is submitted; kept from command to command.
#[derive(Debug, Default)]
pub(super) struct Staging {
    pub(super) data: Vec<u8>,
    pub(super) metadata: Vec<u8>,
    pub(super) addresses: Vec<u64>,
    pub(super) destinations: Vec<u64>,
    data_segments: Vec<Segment>,
    metadata_segments: Vec<Segment>,
    way: Way,
}

/// What cannot be read or written is an error of the transfer.
fn failed(_: Unmapped) -> Status {
    Status::DATA_TRANSFER_ERROR
}

fn join(low: u32, high: u32) -> HostAddress {
    HostAddress(u64::from(low) | u64::from(high) << 32)
}

impl Staging {
    /// Follows a command's pointers and copies what goes to the drive. A transfer above the limit is left empty: the drive
    /// refuses it.
    ///
    /// # Errors
    /// The status of what is wrong with the pointers.
    pub(super) fn load<M: GuestMemory>(
        &mut self,
        memory: &M,
        sqe: &Sqe,
        moves: &Moves,
        limit: u64,
    ) -> Result<(), Status> {
        if sqe.psdt == Psdt::Reserved {
            return Err(Status::INVALID_FIELD);
        }
        self.way = moves.way;
        self.data_segments.clear();
        self.metadata_segments.clear();
        self.addresses.clear();
        self.destinations.clear();
        let (data, metadata) = if moves.data > limit {
            (0, 0)
        } else {
            let metadata = if sqe.mptr.0 == 0 { 0 } else { moves.metadata };
            (index(moves.data), index(metadata))
        };
        resize(&mut self.data, data);
        resize(&mut self.metadata, metadata);
        self.follow(memory, sqe)?;
        for (at, count, into) in [
            (join(sqe.cdw10, sqe.cdw11), moves.addresses, &mut self.addresses),
            (join(sqe.cdw14, sqe.cdw15), moves.destinations, &mut self.destinations),
        ] {
            load_list(memory, at, count, into)?;
        }
        match moves.way {
            Way::Nowhere => Ok(()),
            Way::ToDrive => {
                gather(memory, &self.data_segments, &mut self.data).map_err(failed)?;
                gather(memory, &self.metadata_segments, &mut self.metadata).map_err(failed)
            }
            Way::ToHost => {
                let sound = are_writable(memory, &self.data_segments)
                    && are_writable(memory, &self.metadata_segments);
                if sound { Ok(()) } else { Err(Status::DATA_TRANSFER_ERROR) }
            }
        }
    }

    /// Where data and metadata lie.
    fn follow<M: GuestMemory>(&mut self, memory: &M, sqe: &Sqe) -> Result<(), Status> {
        let to_host = self.way == Way::ToHost;
        let (data, metadata) = (self.data.len(), self.metadata.len());
        follow_data(memory, sqe, (data, to_host), &mut self.data_segments)?;
        if metadata == 0 {
            return Ok(());
        }
        if sqe.psdt != Psdt::SglSegmentMetadata {
            self.metadata_segments.push(Segment { at: Some(sqe.mptr), bytes: metadata });
            return Ok(());
        }
        let mut descriptor = [0; SglDescriptor::BYTES];
        memory.read(sqe.mptr, &mut descriptor).map_err(failed)?;
        let descriptor = SglDescriptor::decode(&descriptor);
        sgl::walk(memory, &descriptor, (metadata, to_host), &mut self.metadata_segments)
    }

    /// Copies to the guest what the drive has put there. Returns how many bytes.
    pub(super) fn store<M: GuestMemory>(&self, memory: &M) -> u64 {
        if self.way != Way::ToHost {
            return 0;
        }
        let stored = scatter(memory, &self.data_segments, &self.data)
            .and_then(|()| scatter(memory, &self.metadata_segments, &self.metadata));
        stored.expect("it was writable when the command began, and nothing came between");
        self.moved()
    }

    /// Bytes of data and metadata.
    pub(super) fn moved(&self) -> u64 {
        bytes(self.data.len() + self.metadata.len())
    }
}

/// Appends where the `bytes` bytes lie that DPTR points to, `to_host` or from it.
///
/// # Errors
/// The status of what is wrong with the pointers.
pub(super) fn follow_data<M: GuestMemory>(
    memory: &M,
    sqe: &Sqe,
    (bytes, to_host): (usize, bool),
    segments: &mut Vec<Segment>,
) -> Result<(), Status> {
    match sqe.sgl() {
        None => prp::walk(memory, (sqe.prp1, sqe.prp2), bytes, segments),
        Some(first) => sgl::walk(memory, &first, (bytes, to_host), segments),
    }
}

fn index(count: u64) -> usize {
    usize::try_from(count).expect("at most a transfer")
}

/// Nothing of the command before shows through.
fn resize(buffer: &mut Vec<u8>, count: usize) {
    buffer.clear();
    buffer.resize(count, 0);
}

fn load_list<M: GuestMemory>(
    memory: &M,
    at: HostAddress,
    count: u32,
    into: &mut Vec<u64>,
) -> Result<(), Status> {
    for place in 0..u64::from(count) {
        let mut entry = [0; 8];
        memory.read(HostAddress(at.0.wrapping_add(8 * place)), &mut entry).map_err(failed)?;
        into.push(u64::from_le_bytes(entry));
    }
    Ok(())
}
