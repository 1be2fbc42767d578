//! OCSSD 2.0 vector commands: chunk reset, write, read and copy.
//!
//! ```text
//! CDW10-11  LBAL: the LBA itself if NLB = 0, else where the list is
//! CDW12     NLB 5:0 (0-based), reserved 30:6, LR 31 (not for reset)
//! CDW14-15  DLBAL, copy only
//! ```
//! Decision: a copy of one block holds the destination LBA itself in DLBAL, although the specification's text asks
//! for a list there; every host does so. Source: OCSSD 2.0 section 4.

use super::Sqe;
use crate::address::{AddressList, HostAddress, Lba};
use crate::opcode::IoOpcode;
use crate::wire::{bit, flag, join, split};

/// A vector reset, write or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// LBAL and NLB. For a reset, one LBA per chunk.
    pub lbas: AddressList<Lba>,
    /// LR: limit the effort to recover from errors. A reset has no such bit and ignores it.
    pub limited_retry: bool,
}

impl Vector {
    /// The view of a vector reset, write or read entry.
    pub fn of(sqe: &Sqe) -> Self {
        Self {
            lbas: AddressList::from_wire(join(sqe.cdw10, sqe.cdw11), sqe.cdw12),
            limited_retry: bit(sqe.cdw12, 31),
        }
    }

    /// Places the fields into `sqe`.
    fn place(self, mut sqe: Sqe) -> Sqe {
        let (bits, nlb) = self.lbas.to_wire();
        (sqe.cdw10, sqe.cdw11) = split(bits);
        sqe.cdw12 = nlb | flag(self.limited_retry, 31);
        sqe
    }
}

/// A vector copy: block i of the sources goes to address i of the destinations, data and metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorCopy {
    /// LBAL: where the blocks are.
    pub sources: AddressList<Lba>,
    /// DLBAL: where they go. As many as there are sources.
    pub destinations: AddressList<Lba>,
    /// LR: limit the effort to recover from errors.
    pub limited_retry: bool,
}

impl VectorCopy {
    /// The view of a vector copy entry. Both lists take their length from NLB.
    pub fn of(sqe: &Sqe) -> Self {
        Self {
            sources: AddressList::from_wire(join(sqe.cdw10, sqe.cdw11), sqe.cdw12),
            destinations: AddressList::from_wire(join(sqe.cdw14, sqe.cdw15), sqe.cdw12),
            limited_retry: bit(sqe.cdw12, 31),
        }
    }
}

impl Sqe {
    /// Vector Chunk Reset (90h). With `descriptors_at`, the drive writes one fresh chunk descriptor (32 bytes) per
    /// entry there; address 0 cannot be used, as it means none.
    ///
    /// # Panics
    /// If the list's count is not 2 to 64.
    pub fn vector_reset(nsid: u32, chunks: AddressList<Lba>, descriptors_at: Option<HostAddress>) -> Self {
        let reset = Vector { lbas: chunks, limited_retry: false };
        reset.place(Self::io(IoOpcode::VECTOR_RESET, nsid)).with_mptr(descriptors_at.unwrap_or_default())
    }

    /// Vector Chunk Write (91h).
    ///
    /// # Panics
    /// If the list's count is not 2 to 64.
    pub fn vector_write(nsid: u32, write: Vector) -> Self {
        write.place(Self::io(IoOpcode::VECTOR_WRITE, nsid))
    }

    /// Vector Chunk Read (92h).
    ///
    /// # Panics
    /// If the list's count is not 2 to 64.
    pub fn vector_read(nsid: u32, read: Vector) -> Self {
        read.place(Self::io(IoOpcode::VECTOR_READ, nsid))
    }

    /// Vector Chunk Copy (93h).
    ///
    /// # Panics
    /// If the lists differ in length, or a count is not 2 to 64.
    pub fn vector_copy(nsid: u32, copy: VectorCopy) -> Self {
        let (from, to) = (copy.sources.count(), copy.destinations.count());
        assert!(from == to, "a copy has one destination per source, not {to} for {from}");
        let sources = Vector { lbas: copy.sources, limited_retry: copy.limited_retry };
        let mut sqe = sources.place(Self::io(IoOpcode::VECTOR_COPY, nsid));
        (sqe.cdw14, sqe.cdw15) = split(copy.destinations.to_wire().0);
        sqe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: AddressList<Lba> = AddressList::Many { at: HostAddress(0x0000_7FFF_0000_1000), count: 64 };

    #[test]
    fn a_write_of_a_list_is_placed_in_its_dwords() {
        let write = Vector { lbas: LIST, limited_retry: true };
        let bytes = Sqe::vector_write(1, write).with_mptr(HostAddress(0x2000)).encode();
        assert_eq!((bytes[0], bytes[17]), (0x91, 0x20));
        assert_eq!(bytes[40..48], [0x00, 0x10, 0x00, 0x00, 0xFF, 0x7F, 0x00, 0x00]);
        assert_eq!(bytes[48..52], [63, 0, 0, 0x80]);
        assert_eq!(Vector::of(&Sqe::decode(&bytes)), write);
    }

    #[test]
    fn a_read_of_one_block_holds_the_address_itself() {
        let read = Vector { lbas: AddressList::One(Lba(0x12_3456)), limited_retry: false };
        let sqe = Sqe::vector_read(1, read);
        assert_eq!((sqe.opcode, sqe.cdw10, sqe.cdw11, sqe.cdw12), (0x92, 0x12_3456, 0, 0));
        assert_eq!(Vector::of(&sqe), read);
    }

    #[test]
    fn a_reset_returns_descriptors_through_mptr_and_has_no_limited_retry() {
        let sqe = Sqe::vector_reset(1, LIST, Some(HostAddress(0x3000)));
        assert_eq!((sqe.opcode, sqe.cdw12, sqe.mptr), (0x90, 63, HostAddress(0x3000)));
        let bare = Sqe::vector_reset(1, AddressList::One(Lba(5)), None);
        assert_eq!((bare.mptr, Vector::of(&bare).lbas), (HostAddress(0), AddressList::One(Lba(5))));
    }

    #[test]
    fn a_copy_names_its_destinations_in_the_last_two_dwords() {
        let destinations = AddressList::Many { at: HostAddress(0x1_0000_2000), count: 64 };
        let copy = VectorCopy { sources: LIST, destinations, limited_retry: false };
        let sqe = Sqe::vector_copy(1, copy);
        assert_eq!((sqe.opcode, sqe.cdw14, sqe.cdw15), (0x93, 0x2000, 1));
        assert_eq!(VectorCopy::of(&sqe), copy);
    }

    #[test]
    fn a_copy_of_one_block_holds_both_addresses_itself() {
        let (sources, destinations) = (AddressList::One(Lba(1)), AddressList::One(Lba(2)));
        let copy = VectorCopy { sources, destinations, limited_retry: true };
        assert_eq!(VectorCopy::of(&Sqe::vector_copy(1, copy)), copy);
    }
}
