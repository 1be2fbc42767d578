//! Chunk descriptors: 32 bytes per chunk, in log page CAh and in the reply to a vector reset.
//!
//! Decision: WP is relative to SLBA and always filled; see `docs/ppa.md`. Source: OCSSD 2.0 section 3.2, table "Chunk
//! Information Log Page".

use super::geometry::Geometry;
use crate::address::Lba;
use crate::wire::{ShortInput, fixed, put, u64_at};
use std::fmt;

/// One chunk, as the drive reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkDescriptor {
    /// CS: the chunk's state.
    pub cs: ChunkState,
    /// CT: how the chunk is written, and whether its size differs from CLBA.
    pub ct: ChunkType,
    /// WLI: wear-level index, 0 new to 255 end of life; never falls.
    pub wli: u8,
    /// SLBA: the chunk's first address.
    pub slba: Lba,
    /// CNLB: blocks in the chunk.
    pub cnlb: u64,
    /// WP: next block to write, relative to `slba`. Free is 0; closed is `cnlb`, or less after an early close;
    /// offline has no meaning.
    pub wp: u64,
}

/// Chunk state, CS: exactly one of four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChunkState {
    /// 01h: reset, nothing written.
    Free,
    /// 02h: no more writes until it is reset.
    Closed,
    /// 04h: partly written.
    Open,
    /// 08h: never usable again.
    Offline,
}

/// Chunk type, CT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkType {
    /// Bits 1:0: how the chunk is written.
    pub kind: ChunkKind,
    /// Bit 4: CNLB differs from the geometry's CLBA.
    pub size_deviates: bool,
}

/// How a chunk is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// 01h: in order, from the write pointer.
    SequentialWrite,
    /// 02h: anywhere.
    RandomWrite,
}

const SIZE_DEVIATES: u8 = 0x10;

/// Why bytes are not a chunk descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkDescriptorError {
    /// The input ends too early.
    Short(ShortInput),
    /// CS is not exactly one of the four states.
    State {
        /// CS as found.
        cs: u8,
    },
    /// CT is not one of the two kinds, with or without the size flag.
    Type {
        /// CT as found.
        ct: u8,
    },
}

impl fmt::Display for ChunkDescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(short) => short.fmt(f),
            Self::State { cs } => write!(
                f,
                "byte 0 of a chunk descriptor should be 01h (free), 02h (closed), 04h (open) or 08h (offline), but it is \
                 {cs:02X}h; is the log page offset a multiple of 32?"
            ),
            Self::Type { ct } => write!(
                f,
                "byte 1 of a chunk descriptor should be 01h (sequential) or 02h (random), plus 10h if the size deviates, \
                 but it is {ct:02X}h; is the log page offset a multiple of 32?"
            ),
        }
    }
}

impl std::error::Error for ChunkDescriptorError {}

impl ChunkState {
    /// The state of a CS byte, or `None` if it is not exactly one state.
    pub fn from_bits(cs: u8) -> Option<Self> {
        match cs {
            0x01 => Some(Self::Free),
            0x02 => Some(Self::Closed),
            0x04 => Some(Self::Open),
            0x08 => Some(Self::Offline),
            _ => None,
        }
    }

    /// The CS byte.
    pub fn to_bits(self) -> u8 {
        match self {
            Self::Free => 0x01,
            Self::Closed => 0x02,
            Self::Open => 0x04,
            Self::Offline => 0x08,
        }
    }
}

impl ChunkType {
    /// The type of a CT byte, or `None` if it has both kinds, neither, or reserved bits.
    pub fn from_bits(ct: u8) -> Option<Self> {
        let kind = match ct & !SIZE_DEVIATES {
            0x01 => ChunkKind::SequentialWrite,
            0x02 => ChunkKind::RandomWrite,
            _ => return None,
        };
        Some(Self { kind, size_deviates: ct & SIZE_DEVIATES != 0 })
    }

    /// The CT byte.
    pub fn to_bits(self) -> u8 {
        let kind = match self.kind {
            ChunkKind::SequentialWrite => 0x01,
            ChunkKind::RandomWrite => 0x02,
        };
        kind | if self.size_deviates { SIZE_DEVIATES } else { 0 }
    }
}

impl ChunkDescriptor {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 32;

    /// From the first 32 bytes.
    ///
    /// # Errors
    /// [`ChunkDescriptorError`] for short input or an illegal state or type.
    pub fn decode(bytes: &[u8]) -> Result<Self, ChunkDescriptorError> {
        let bytes =
            fixed::<{ Self::BYTES }>("a chunk descriptor", bytes).map_err(ChunkDescriptorError::Short)?;
        let [cs, ct, wli, ..] = *bytes;
        Ok(Self {
            cs: ChunkState::from_bits(cs).ok_or(ChunkDescriptorError::State { cs })?,
            ct: ChunkType::from_bits(ct).ok_or(ChunkDescriptorError::Type { ct })?,
            wli,
            slba: Lba(u64_at(bytes, 8)),
            cnlb: u64_at(bytes, 16),
            wp: u64_at(bytes, 24),
        })
    }

    /// The 32 bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &[self.cs.to_bits(), self.ct.to_bits(), self.wli]);
        put(&mut bytes, 8, &self.slba.0.to_le_bytes());
        put(&mut bytes, 16, &self.cnlb.to_le_bytes());
        put(&mut bytes, 24, &self.wp.to_le_bytes());
        bytes
    }
}

const _: () =
    assert!(ChunkDescriptor::BYTES * 128 == 4096, "a 4 KiB read of the log page is 128 whole descriptors");

/// Byte offset of a chunk's descriptor in log page CAh: `((grp * NUM_PU) + pu) * NUM_CHK + chk`, times 32.
///
/// `None` if the drive has no such chunk.
pub fn descriptor_offset(geometry: &Geometry, grp: u64, pu: u64, chk: u64) -> Option<u64> {
    let (num_pu, num_chk) = (u64::from(geometry.num_pu), u64::from(geometry.num_chk));
    if grp >= u64::from(geometry.num_grp) || pu >= num_pu || chk >= num_chk {
        return None;
    }
    // Overflows only from 2^59 chunks on, which is 16 EiB of log.
    ((grp * num_pu + pu) * num_chk + chk).checked_mul(32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ocssd20::{LbaFormat, Mccap};

    const BYTES: [u8; 32] = [
        0x04, 0x11, 7, 0, 0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00, 0x18, 0, 0, 0, 0,
        0, 0, 0x18, 0x01, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let descriptor = ChunkDescriptor {
            cs: ChunkState::Open,
            ct: ChunkType { kind: ChunkKind::SequentialWrite, size_deviates: true },
            wli: 7,
            slba: Lba(0x1122_3344_5566_7788),
            cnlb: 6144,
            wp: 280,
        };
        assert_eq!(ChunkDescriptor::decode(&BYTES), Ok(descriptor));
        assert_eq!(descriptor.encode(), BYTES);
    }

    #[test]
    fn only_four_states_and_four_types_are_legal() {
        let states: Vec<u8> = (0..=255).filter(|cs| ChunkState::from_bits(*cs).is_some()).collect();
        assert_eq!(states, [1, 2, 4, 8]);
        let types: Vec<u8> = (0..=255).filter(|ct| ChunkType::from_bits(*ct).is_some()).collect();
        assert_eq!(types, [0x01, 0x02, 0x11, 0x12]);
        for cs in states {
            assert_eq!(ChunkState::from_bits(cs).map(ChunkState::to_bits), Some(cs));
        }
        for ct in types {
            assert_eq!(ChunkType::from_bits(ct).map(ChunkType::to_bits), Some(ct));
        }
    }

    #[test]
    fn illegal_bytes_are_refused_with_a_sentence() {
        for (offset, byte, says) in [(0, 0x06, "06h"), (0, 0, "00h"), (1, 0x03, "03h"), (1, 0x20, "20h")] {
            let mut bytes = BYTES;
            bytes[offset] = byte;
            let error = ChunkDescriptor::decode(&bytes).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
        let error = ChunkDescriptor::decode(&BYTES[..31]).expect_err("a byte is missing").to_string();
        assert!(error.contains("ends after 31"), "{error}");
    }

    #[test]
    fn the_log_page_has_no_holes() {
        let lbaf = LbaFormat { group_bits: 3, pu_bits: 3, chunk_bits: 8, sector_bits: 13 };
        let geometry = Geometry {
            mjr: 2,
            mnr: 0,
            lbaf,
            mccap: Mccap::default(),
            wit: 0,
            num_grp: 2,
            num_pu: 3,
            num_chk: 5,
            clba: 6144,
            ws_min: 24,
            ws_opt: 24,
            mw_cunits: 192,
            maxoc: 0,
            maxocpu: 0,
            trdt_ns: 0,
            trdm_ns: 0,
            twrt_ns: 0,
            twrm_ns: 0,
            tcrst_ns: 0,
            tcrsm_ns: 0,
        };
        let mut expected = 0;
        for (grp, pu, chk) in (0..2).flat_map(|g| (0..3).flat_map(move |p| (0..5).map(move |c| (g, p, c)))) {
            assert_eq!(descriptor_offset(&geometry, grp, pu, chk), Some(expected));
            expected += 32;
        }
        for (grp, pu, chk) in [(2, 0, 0), (0, 3, 0), (0, 0, 5)] {
            assert_eq!(descriptor_offset(&geometry, grp, pu, chk), None);
        }
    }
}
