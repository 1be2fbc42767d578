//! The 960-byte descriptor of a 1.2 configuration group: the shape and times of its media.
//!
//! Source: OCSSD 1.2 section 3.1, table "Configuration Group Data Structure".

use super::media_table::MediaTable;
use crate::wire::{array_at, bit, byte, flag, put, u16_at, u32_at};
use std::fmt;

/// One configuration group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescriptor {
    /// MTYPE: media type, 0 is NAND.
    pub mtype: u8,
    /// FMTYPE: bits per cell.
    pub fmtype: FlashKind,
    /// Channels.
    pub num_ch: u8,
    /// Luns per channel.
    pub num_lun: u8,
    /// Planes per lun.
    pub num_pln: u8,
    /// Blocks per plane.
    pub num_blk: u16,
    /// Pages per block.
    pub num_pg: u16,
    /// FPG_SZ: bytes of a page.
    pub fpg_sz_bytes: u16,
    /// CSECS: bytes of a sector.
    pub csecs_bytes: u16,
    /// SOS: metadata bytes of a sector.
    pub sos_bytes: u16,
    /// TRDT: typical page read time, nanoseconds.
    pub trdt_ns: u32,
    /// TRDM: maximum page read time, nanoseconds.
    pub trdm_ns: u32,
    /// TPRT: typical page program time, nanoseconds.
    pub tprt_ns: u32,
    /// TPRM: maximum page program time, nanoseconds.
    pub tprm_ns: u32,
    /// TBET: typical block erase time, nanoseconds.
    pub tbet_ns: u32,
    /// TBEM: maximum block erase time, nanoseconds.
    pub tbem_ns: u32,
    /// MPOS: which plane modes each operation has.
    pub mpos: PlaneSupport,
    /// MCCAP: media and controller capabilities.
    pub mccap: Mccap,
    /// CPAR: how many commands a channel runs in parallel.
    pub cpar: u16,
    /// Chip identity and page pairs.
    pub media_table: MediaTable,
}

/// Bits per cell, FMTYPE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashKind {
    /// 0: one bit.
    Slc,
    /// 1: two bits.
    Mlc,
    /// 2: three bits.
    Tlc,
}

/// Plane modes per operation, MPOS. Usual dwords: 010101h single, 030303h up to dual, 070707h up to quad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaneSupport {
    /// Bits 2:0.
    pub read: PlaneOperations,
    /// Bits 10:8.
    pub program: PlaneOperations,
    /// Bits 18:16.
    pub erase: PlaneOperations,
}

/// Plane modes of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaneOperations {
    /// Bit 0: one plane.
    pub single: bool,
    /// Bit 1: two planes together.
    pub dual: bool,
    /// Bit 2: four planes together.
    pub quad: bool,
}

/// Media and controller capabilities of 1.2, MCCAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mccap {
    /// Bit 0: blocks can be used as single-level cells.
    pub slc: bool,
    /// Bit 1: commands can be suspended.
    pub suspend: bool,
    /// Bit 2: scrambling can be switched.
    pub scramble: bool,
    /// Bit 3: the controller encrypts.
    pub encrypt: bool,
}

/// Why a group descriptor's bytes mean nothing. The place is in the text of the identify error around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupError {
    /// FMTYPE is not 0, 1 or 2.
    FlashKind {
        /// FMTYPE as found.
        found: u8,
    },
    /// The media table claims more pairs than it has room for.
    PairCount {
        /// The count as found.
        found: u16,
    },
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FlashKind { found } => {
                write!(
                    f,
                    "FMTYPE should be 0 (SLC), 1 (MLC) or 2 (TLC), but it is {found}; use one of the three"
                )
            }
            Self::PairCount { found } => write!(
                f,
                "the media table has room for {} page pairs, but claims {found}; the drive's identify is damaged",
                MediaTable::PAIRS_MAX
            ),
        }
    }
}

impl std::error::Error for GroupError {}

impl PlaneOperations {
    fn from_bits(bits: u8) -> Self {
        let bits = u32::from(bits);
        Self { single: bit(bits, 0), dual: bit(bits, 1), quad: bit(bits, 2) }
    }

    fn to_bits(self) -> u32 {
        flag(self.single, 0) | flag(self.dual, 1) | flag(self.quad, 2)
    }
}

impl PlaneSupport {
    /// From the dword; reserved bits are ignored.
    pub fn from_bits(bits: u32) -> Self {
        let of = |index| PlaneOperations::from_bits(byte(bits, index));
        Self { read: of(0), program: of(1), erase: of(2) }
    }

    /// The dword.
    pub fn to_bits(self) -> u32 {
        self.read.to_bits() | self.program.to_bits() << 8 | self.erase.to_bits() << 16
    }
}

impl Mccap {
    /// From the dword; reserved bits are ignored.
    pub fn from_bits(bits: u32) -> Self {
        Self { slc: bit(bits, 0), suspend: bit(bits, 1), scramble: bit(bits, 2), encrypt: bit(bits, 3) }
    }

    /// The dword.
    pub fn to_bits(self) -> u32 {
        flag(self.slc, 0) | flag(self.suspend, 1) | flag(self.scramble, 2) | flag(self.encrypt, 3)
    }
}

impl GroupDescriptor {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 960;

    /// From the 960 bytes.
    ///
    /// # Errors
    /// [`GroupError`] if a field means nothing.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, GroupError> {
        let fmtype = match bytes[1] {
            0 => FlashKind::Slc,
            1 => FlashKind::Mlc,
            2 => FlashKind::Tlc,
            found => return Err(GroupError::FlashKind { found }),
        };
        let media_table =
            MediaTable::decode(&array_at(bytes, 64)).map_err(|found| GroupError::PairCount { found })?;
        Ok(Self {
            mtype: bytes[0],
            fmtype,
            num_ch: bytes[4],
            num_lun: bytes[5],
            num_pln: bytes[6],
            num_blk: u16_at(bytes, 8),
            num_pg: u16_at(bytes, 10),
            fpg_sz_bytes: u16_at(bytes, 12),
            csecs_bytes: u16_at(bytes, 14),
            sos_bytes: u16_at(bytes, 16),
            trdt_ns: u32_at(bytes, 20),
            trdm_ns: u32_at(bytes, 24),
            tprt_ns: u32_at(bytes, 28),
            tprm_ns: u32_at(bytes, 32),
            tbet_ns: u32_at(bytes, 36),
            tbem_ns: u32_at(bytes, 40),
            mpos: PlaneSupport::from_bits(u32_at(bytes, 44)),
            mccap: Mccap::from_bits(u32_at(bytes, 48)),
            cpar: u16_at(bytes, 52),
            media_table,
        })
    }

    /// The 960 bytes.
    ///
    /// # Panics
    /// If the media table does not fit.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let fmtype = match self.fmtype {
            FlashKind::Slc => 0,
            FlashKind::Mlc => 1,
            FlashKind::Tlc => 2,
        };
        put(&mut bytes, 0, &[self.mtype, fmtype]);
        put(&mut bytes, 4, &[self.num_ch, self.num_lun, self.num_pln]);
        let words = [self.num_blk, self.num_pg, self.fpg_sz_bytes, self.csecs_bytes, self.sos_bytes];
        for (index, word) in words.into_iter().enumerate() {
            put(&mut bytes, 8 + 2 * index, &word.to_le_bytes());
        }
        let times = [self.trdt_ns, self.trdm_ns, self.tprt_ns, self.tprm_ns, self.tbet_ns, self.tbem_ns];
        let capabilities = [self.mpos.to_bits(), self.mccap.to_bits()];
        for (index, dword) in times.into_iter().chain(capabilities).enumerate() {
            put(&mut bytes, 20 + 4 * index, &dword.to_le_bytes());
        }
        put(&mut bytes, 52, &self.cpar.to_le_bytes());
        put(&mut bytes, 64, &self.media_table.encode());
        bytes
    }
}

const _: () =
    assert!(64 + MediaTable::BYTES == GroupDescriptor::BYTES, "the media table ends the descriptor");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let mut bytes = [0; 960];
        bytes[1] = 1;
        bytes[4..7].copy_from_slice(&[16, 8, 2]);
        bytes[8..18].copy_from_slice(&[0xFC, 0x03, 0x00, 0x02, 0x00, 0x40, 0x00, 0x10, 0x10, 0x00]);
        for (value, offset) in (1..).zip((20..44).step_by(4)) {
            bytes[offset] = value;
        }
        bytes[44..47].copy_from_slice(&[1, 3, 7]);
        bytes[48] = 0b0110;
        bytes[52] = 9;
        bytes[64] = 0xEE;
        let group = GroupDescriptor::decode(&bytes).expect("a valid group");
        assert_eq!((group.fmtype, group.num_ch, group.num_lun, group.num_pln), (FlashKind::Mlc, 16, 8, 2));
        assert_eq!((group.num_blk, group.num_pg), (1020, 512));
        assert_eq!((group.fpg_sz_bytes, group.csecs_bytes, group.sos_bytes), (16_384, 4096, 16));
        assert_eq!((group.trdt_ns, group.trdm_ns, group.tprt_ns), (1, 2, 3));
        assert_eq!((group.tprm_ns, group.tbet_ns, group.tbem_ns), (4, 5, 6));
        assert!(group.mpos.read.single && !group.mpos.read.dual && group.mpos.program.dual);
        assert!(group.mpos.erase.quad && group.mccap.suspend && group.mccap.scramble && !group.mccap.slc);
        assert_eq!((group.cpar, group.media_table.id[0]), (9, 0xEE));
        assert_eq!(group.encode(), bytes);
    }

    #[test]
    fn illegal_fields_are_refused_with_a_sentence() {
        for (offset, value, says) in [(1, 3, "but it is 3"), (73, 4, "claims 1024")] {
            let mut bytes = [0; 960];
            bytes[offset] = value;
            let error = GroupDescriptor::decode(&bytes).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
