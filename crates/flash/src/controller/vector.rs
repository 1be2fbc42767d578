//! Vector chunk reset, write, read and copy of OCSSD 2.0 (section 4): lists of up to 64 addresses.

use super::completion::{INVALID_FIELD, Refused, SHORT_BUFFER};
use super::front_end::{Begun, Controller, IoBuffers, Submission, Work};
use super::log_page::wire_descriptor;
use super::pending::{Counted, Shape};
use crate::addresses::AddressList;
use crate::exec::OperationKind;
use ocssd_lightnvm::{Geometry, Lba, Ppa};
use ocssd_nvme::address::ADDRESSES_MAX;
use ocssd_nvme::ocssd20::ChunkDescriptor;
use ocssd_nvme::sqe::{Vector, VectorCopy};
use ocssd_nvme::{AddressList as WireList, IoOpcode, Sqe};

/// Room for the addresses of any vector command.
pub(super) const ENTRIES_MAX: usize = 64;
const _: () = assert!(ENTRIES_MAX == ADDRESSES_MAX as usize, "the count has 6 bits");

/// The addresses of one vector command.
pub(super) struct Entries {
    ppas: [Ppa; ENTRIES_MAX],
    count: usize,
    /// The first as it came, for the error log.
    pub(super) first: Lba,
}

impl Entries {
    /// Decodes the address of the command, or its list.
    fn of(geometry: &Geometry, wire: WireList<Lba>, list: &[u64]) -> Result<Self, Refused> {
        let count = usize::from(wire.count());
        let one;
        let list = match wire {
            WireList::One(lba) => {
                one = [lba.0];
                &one[..]
            }
            WireList::Many { .. } => list.get(..count).ok_or(SHORT_BUFFER)?,
        };
        let mut ppas = [Ppa::NOWHERE; ENTRIES_MAX];
        for (ppa, &lba) in ppas.iter_mut().zip(list) {
            *ppa = geometry.ppa_of(Lba(lba));
        }
        assert_eq!(list.len(), count, "an address per entry");
        Ok(Self { ppas, count, first: Lba(list[0]) })
    }

    pub(super) fn ppas(&self) -> &[Ppa] {
        &self.ppas[..self.count]
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.count).expect("at most 64")
    }
}

/// The count of a vector command has 6 bits; a host that asks for more sets bits above, and must not get fewer.
pub(super) fn check_count(sqe: &Sqe) -> Result<(), Refused> {
    if sqe.cdw12 & 0xFFC0 == 0 { Ok(()) } else { Err(INVALID_FIELD) }
}

impl Controller {
    pub(super) fn vector(
        &mut self,
        submission: &Submission,
        buffers: &mut IoBuffers<'_>,
    ) -> Result<Begun, Refused> {
        check_count(&submission.sqe)?;
        let vector = Vector::of(&submission.sqe);
        let entries = Entries::of(self.geometry(), vector.lbas, buffers.lba_list)?;
        match submission.sqe.io_opcode() {
            IoOpcode::VECTOR_RESET => self.vector_reset(submission, &entries, buffers),
            IoOpcode::VECTOR_COPY => self.vector_copy(submission, &entries, buffers),
            opcode => {
                let (data, oob) = self.sector_buffers(submission, entries.count(), buffers)?;
                let (counted, kind) = if opcode == IoOpcode::VECTOR_READ {
                    let report = self.features.media_feedback.vhecc;
                    let policy = self.read_policy(entries.count(), report, vector.limited_retry);
                    (Counted::Read, OperationKind::Read(policy))
                } else {
                    assert_eq!(opcode, IoOpcode::VECTOR_WRITE, "the opcode was judged before");
                    (Counted::Write, self.write_kind(false))
                };
                let addresses = AddressList::List(entries.ppas());
                let (shape, lba) = (Shape::Vector, entries.first);
                Ok(self.execute(submission, Work { shape, counted, kind, lba, addresses, data, oob }))
            }
        }
    }

    /// Resets, and returns the chunks as they are then if the command points to room for their descriptors.
    fn vector_reset(
        &mut self,
        submission: &Submission,
        entries: &Entries,
        buffers: &mut IoBuffers<'_>,
    ) -> Result<Begun, Refused> {
        let wanted = submission.sqe.mptr.0 != 0 || !buffers.metadata.is_empty();
        let bytes = if wanted { entries.ppas().len() * ChunkDescriptor::BYTES } else { 0 };
        let room = buffers.metadata.get_mut(..bytes).ok_or(SHORT_BUFFER)?;
        let work = Work {
            shape: Shape::Vector,
            counted: Counted::Neither,
            kind: OperationKind::Reset,
            lba: entries.first,
            addresses: AddressList::List(entries.ppas()),
            data: &mut [],
            oob: &mut [],
        };
        assert!(room.len().is_multiple_of(ChunkDescriptor::BYTES), "room for whole descriptors");
        let begun = self.execute(submission, work);
        if begun == Begun::InDrive {
            self.describe(entries, room);
        }
        Ok(begun)
    }

    /// A descriptor per entry; zeros where there is no such chunk.
    fn describe(&self, entries: &Entries, room: &mut [u8]) {
        for (place, ppa) in room.chunks_exact_mut(ChunkDescriptor::BYTES).zip(entries.ppas()) {
            if ppa.chunk.0 < self.geometry().chunk_count() {
                place.copy_from_slice(&wire_descriptor(&self.flash.chunk(ppa.chunk)).encode());
            } else {
                place.fill(0);
            }
        }
    }

    fn vector_copy(
        &mut self,
        submission: &Submission,
        from: &Entries,
        buffers: &mut IoBuffers<'_>,
    ) -> Result<Begun, Refused> {
        let copy = VectorCopy::of(&submission.sqe);
        let to = Entries::of(self.geometry(), copy.destinations, buffers.destination_list)?;
        assert_eq!(from.count(), to.count(), "both lists take their length from one field");
        let work = Work {
            shape: Shape::Vector,
            counted: Counted::Neither,
            kind: OperationKind::Copy(AddressList::List(to.ppas())),
            lba: from.first,
            addresses: AddressList::List(from.ppas()),
            data: &mut [],
            oob: &mut [],
        };
        Ok(self.execute(submission, work))
    }
}
