//! The 64-byte submission queue entry, and one typed view per command.
//!
//! ```text
//! byte 0   opcode            byte 8   CDW2          byte 40  CDW10
//! byte 1   PSDT 7:6, FUSE 1:0 byte 12 CDW3          ...
//! byte 2   CID               byte 16  MPTR          byte 60  CDW15
//! byte 4   NSID              byte 24  DPTR (PRP1, PRP2 or one SGL descriptor)
//! ```
//! [`Sqe`] holds the raw dwords. Each command has a struct that is read out of an entry with `of` and becomes one
//! with the builder of the same name, e.g. [`ReadWrite::of`] and [`Sqe::write`]. `of` looks at its own dwords only,
//! so the caller first matches the opcode. Source: NVMe base 1.4 section 4.2; the views name theirs.

mod admin;
mod scalar;
mod vector;
mod vector12;

pub use admin::{Abort, GetFeatures, GetLogPage, Identify, SetFeatures};
pub use scalar::{DatasetManagement, ReadWrite};
pub use vector::{Vector, VectorCopy};
pub use vector12::{GetBbt, PpaIo, SetBbt};

use crate::address::HostAddress;
use crate::opcode::{AdminOpcode, IoOpcode};
use crate::sgl::SglDescriptor;
use crate::wire::{put, u16_at, u32_at, u64_at};

/// One submission queue entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sqe {
    /// Opcode; which command it is depends on the queue.
    pub opcode: u8,
    /// Whether the command is half of a fused pair.
    pub fuse: Fuse,
    /// How DPTR and MPTR are to be read.
    pub psdt: Psdt,
    /// Command identifier, unique among the commands in progress on its queue.
    pub cid: u16,
    /// Namespace the command is for.
    pub nsid: u32,
    /// Command dword 2.
    pub cdw2: u32,
    /// Command dword 3.
    pub cdw3: u32,
    /// Metadata pointer. For a vector reset, where the chunk descriptors are returned; 0 is none.
    pub mptr: HostAddress,
    /// First half of the data pointer.
    pub prp1: HostAddress,
    /// Second half of the data pointer.
    pub prp2: HostAddress,
    /// Command dword 10.
    pub cdw10: u32,
    /// Command dword 11.
    pub cdw11: u32,
    /// Command dword 12.
    pub cdw12: u32,
    /// Command dword 13.
    pub cdw13: u32,
    /// Command dword 14.
    pub cdw14: u32,
    /// Command dword 15.
    pub cdw15: u32,
}

/// Fused operation, CDW0 bits 9:8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fuse {
    /// 00b: a command of its own.
    #[default]
    Normal,
    /// 01b: first of a fused pair.
    First,
    /// 10b: second of a fused pair.
    Second,
    /// 11b: reserved.
    Reserved,
}

/// PRP or SGL for data transfer, CDW0 bits 15:14.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Psdt {
    /// 00b: DPTR holds PRPs, MPTR a contiguous buffer.
    #[default]
    Prp,
    /// 01b: DPTR holds an SGL descriptor, MPTR a contiguous buffer.
    SglContiguousMetadata,
    /// 10b: DPTR holds an SGL descriptor, MPTR points to one.
    SglSegmentMetadata,
    /// 11b: reserved.
    Reserved,
}

impl Sqe {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 64;

    /// An I/O command with all dwords zero.
    pub(crate) fn io(opcode: IoOpcode, nsid: u32) -> Self {
        Self { opcode: opcode.0, nsid, ..Self::default() }
    }

    /// An admin command with all dwords zero.
    fn admin(opcode: AdminOpcode, nsid: u32) -> Self {
        Self { opcode: opcode.0, nsid, ..Self::default() }
    }

    /// The same command with identifier `cid`.
    pub fn with_cid(self, cid: u16) -> Self {
        Self { cid, ..self }
    }

    /// The same command with its data at these PRPs.
    pub fn with_prps(self, prp1: HostAddress, prp2: HostAddress) -> Self {
        Self { psdt: Psdt::Prp, prp1, prp2, ..self }
    }

    /// The same command with its data behind an SGL descriptor; metadata, if any, stays contiguous.
    pub fn with_sgl(self, sgl: &SglDescriptor) -> Self {
        let bytes = sgl.encode();
        let (prp1, prp2) = (HostAddress(u64_at(&bytes, 0)), HostAddress(u64_at(&bytes, 8)));
        Self { psdt: Psdt::SglContiguousMetadata, prp1, prp2, ..self }
    }

    /// The same command with its metadata at `mptr`.
    pub fn with_mptr(self, mptr: HostAddress) -> Self {
        Self { mptr, ..self }
    }

    /// The opcode, if the entry came from an admin queue.
    pub fn admin_opcode(&self) -> AdminOpcode {
        AdminOpcode(self.opcode)
    }

    /// The opcode, if the entry came from an I/O queue.
    pub fn io_opcode(&self) -> IoOpcode {
        IoOpcode(self.opcode)
    }

    /// The data pointer as an SGL descriptor, or `None` if PSDT says it holds PRPs.
    pub fn sgl(&self) -> Option<SglDescriptor> {
        if matches!(self.psdt, Psdt::Prp | Psdt::Reserved) {
            return None;
        }
        let mut bytes = [0; SglDescriptor::BYTES];
        put(&mut bytes, 0, &self.prp1.0.to_le_bytes());
        put(&mut bytes, 8, &self.prp2.0.to_le_bytes());
        Some(SglDescriptor::decode(&bytes))
    }

    /// From the 64 bytes. Every pattern is an entry; reserved bits of byte 1 are dropped.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            opcode: bytes[0],
            fuse: Fuse::from_bits(bytes[1]),
            psdt: Psdt::from_bits(bytes[1] >> 6),
            cid: u16_at(bytes, 2),
            nsid: u32_at(bytes, 4),
            cdw2: u32_at(bytes, 8),
            cdw3: u32_at(bytes, 12),
            mptr: HostAddress(u64_at(bytes, 16)),
            prp1: HostAddress(u64_at(bytes, 24)),
            prp2: HostAddress(u64_at(bytes, 32)),
            cdw10: u32_at(bytes, 40),
            cdw11: u32_at(bytes, 44),
            cdw12: u32_at(bytes, 48),
            cdw13: u32_at(bytes, 52),
            cdw14: u32_at(bytes, 56),
            cdw15: u32_at(bytes, 60),
        }
    }

    /// The 64 bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = self.opcode;
        bytes[1] = self.psdt.to_bits() << 6 | self.fuse.to_bits();
        put(&mut bytes, 2, &self.cid.to_le_bytes());
        put(&mut bytes, 4, &self.nsid.to_le_bytes());
        put(&mut bytes, 8, &self.cdw2.to_le_bytes());
        put(&mut bytes, 12, &self.cdw3.to_le_bytes());
        put(&mut bytes, 16, &self.mptr.0.to_le_bytes());
        put(&mut bytes, 24, &self.prp1.0.to_le_bytes());
        put(&mut bytes, 32, &self.prp2.0.to_le_bytes());
        let dwords = [self.cdw10, self.cdw11, self.cdw12, self.cdw13, self.cdw14, self.cdw15];
        for (index, dword) in dwords.into_iter().enumerate() {
            put(&mut bytes, 40 + 4 * index, &dword.to_le_bytes());
        }
        bytes
    }
}

const _: () = assert!(Sqe::BYTES == 16 * 4, "a submission entry is sixteen dwords");

impl Fuse {
    fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Normal,
            1 => Self::First,
            2 => Self::Second,
            _ => Self::Reserved,
        }
    }

    fn to_bits(self) -> u8 {
        match self {
            Self::Normal => 0,
            Self::First => 1,
            Self::Second => 2,
            Self::Reserved => 3,
        }
    }
}

impl Psdt {
    fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Prp,
            1 => Self::SglContiguousMetadata,
            2 => Self::SglSegmentMetadata,
            _ => Self::Reserved,
        }
    }

    fn to_bits(self) -> u8 {
        match self {
            Self::Prp => 0,
            Self::SglContiguousMetadata => 1,
            Self::SglSegmentMetadata => 2,
            Self::Reserved => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sgl::{SUBTYPE_TRANSPORT, SglKind};

    #[test]
    fn every_byte_of_an_entry_is_where_the_table_puts_it() {
        let mut bytes = [0; 64];
        for (index, byte) in (0u8..).zip(bytes.iter_mut()) {
            *byte = index;
        }
        bytes[1] = 0b0100_0010;
        let sqe = Sqe::decode(&bytes);
        assert_eq!((sqe.opcode, sqe.fuse, sqe.psdt), (0, Fuse::Second, Psdt::SglContiguousMetadata));
        assert_eq!((sqe.cid, sqe.nsid), (0x0302, 0x0706_0504));
        assert_eq!((sqe.cdw2, sqe.cdw3), (0x0B0A_0908, 0x0F0E_0D0C));
        assert_eq!(sqe.mptr.0, 0x1716_1514_1312_1110);
        assert_eq!((sqe.prp1.0, sqe.prp2.0), (0x1F1E_1D1C_1B1A_1918, 0x2726_2524_2322_2120));
        assert_eq!((sqe.cdw10, sqe.cdw11, sqe.cdw12), (0x2B2A_2928, 0x2F2E_2D2C, 0x3332_3130));
        assert_eq!((sqe.cdw13, sqe.cdw14, sqe.cdw15), (0x3736_3534, 0x3B3A_3938, 0x3F3E_3D3C));
        assert_eq!(sqe.encode(), bytes);
    }

    #[test]
    fn reserved_bits_of_byte_1_are_dropped() {
        let mut bytes = [0; 64];
        bytes[1] = 0xFF;
        assert_eq!(Sqe::decode(&bytes).encode()[1], 0b1100_0011);
    }

    #[test]
    fn the_data_pointer_is_an_sgl_only_when_psdt_says_so() {
        let sgl = SglDescriptor {
            address: 0x10,
            length_bytes: 512,
            kind: SglKind::TransportDataBlock,
            subtype: SUBTYPE_TRANSPORT,
        };
        let sqe = Sqe::flush(1).with_sgl(&sgl);
        assert_eq!(sqe.sgl(), Some(sgl));
        assert_eq!(sqe.encode()[39], 0x5A);
        assert_eq!(sqe.with_prps(HostAddress(1), HostAddress(2)).sgl(), None);
    }
}
