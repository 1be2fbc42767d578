//! The geometry: the drive's shape, limits and typical times, 4096 bytes.
//!
//! Sector size and metadata size are not in it; they come from Identify Namespace. Source: OCSSD 2.0 section 3.1,
//! table "Geometry data structure". The specification prints the reserved area after CLBA as bytes 127:73; it starts
//! at 76.

use crate::wire::{ShortInput, bit, fixed, flag, put, u16_at, u32_at};
use ocssd_lightnvm::{LbaFormat, LbaFormatError};
use std::fmt;

/// The drive's shape. Fields are named as in the specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Major version: 2. liblightnvm also treats 3 as 2.0, so 3 decodes too.
    pub mjr: u8,
    /// Minor version.
    pub mnr: u8,
    /// How addresses are packed.
    pub lbaf: LbaFormat,
    /// Media and controller capabilities.
    pub mccap: Mccap,
    /// Wear-level index delta threshold: the host should keep every index within this of the average.
    pub wit: u8,
    /// Groups, at least 1.
    pub num_grp: u16,
    /// Parallel units per group, at least 1.
    pub num_pu: u16,
    /// Chunks per parallel unit, at least 1.
    pub num_chk: u32,
    /// Logical blocks per chunk, at least 1.
    pub clba: u32,
    /// Minimum write size in logical blocks, at least 1. Writes are aligned to it.
    pub ws_min: u32,
    /// Optimal write size in logical blocks.
    pub ws_opt: u32,
    /// Logical blocks that must be written after a block before it can be read; 0 is no restriction.
    pub mw_cunits: u32,
    /// Most open chunks in the controller; 0 is unlimited.
    pub maxoc: u32,
    /// Most open chunks per parallel unit; 0 is bounded by `maxoc` alone.
    pub maxocpu: u32,
    /// TRDT: typical read time of a write unit, nanoseconds.
    pub trdt_ns: u32,
    /// TRDM: maximum read time of a write unit, nanoseconds.
    pub trdm_ns: u32,
    /// TWRT: typical write time of a write unit, nanoseconds.
    pub twrt_ns: u32,
    /// TWRM: maximum write time of a write unit, nanoseconds.
    pub twrm_ns: u32,
    /// TCRST: typical chunk reset time, nanoseconds.
    pub tcrst_ns: u32,
    /// TCRSM: maximum chunk reset time, nanoseconds.
    pub tcrsm_ns: u32,
}

/// Media and controller capabilities, MCCAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mccap {
    /// Bit 0: Vector Chunk Copy is supported.
    pub vector_copy: bool,
    /// Bit 1: a free chunk may be reset again.
    pub multiple_resets: bool,
    /// Bit 2: an open chunk may be reset. Reserved in the specification; QEMU uses it so, and hosts that do not know
    /// it ignore it.
    pub early_reset: bool,
}

/// Why bytes are not a geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeometryError {
    /// The input ends too early.
    Short(ShortInput),
    /// The major version is not that of OCSSD 2.0.
    Version {
        /// MJR as found.
        mjr: u8,
    },
    /// The address format does not fit into 64 bits.
    LbaFormat(LbaFormatError),
    /// A count that must be at least 1 is 0.
    Zero {
        /// The field's name.
        field: &'static str,
    },
    /// A count needs more bits than the LBA format gives it.
    Narrow {
        /// The count's name.
        field: &'static str,
        /// The count.
        count: u32,
        /// The bits it has.
        bits: u8,
    },
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(short) => short.fmt(f),
            Self::Version { mjr: 1 } => f.write_str(
                "byte 0 of the geometry should be 2, but it is 1: this is an OCSSD 1.2 drive; decode it as a 1.2 identify",
            ),
            Self::Version { mjr } => {
                write!(f, "byte 0 of the geometry should be 2 (OCSSD 2.0), but it is {mjr}; is this an open-channel drive?")
            }
            Self::LbaFormat(error) => error.fmt(f),
            Self::Zero { field } => {
                write!(f, "{field} of the geometry should be at least 1, but it is 0; such a drive has no address")
            }
            Self::Narrow { field, count, bits } => write!(
                f,
                "{field} of the geometry is {count}, but its LBA format gives that part of an address only {bits} bits; \
                 lengthen the part"
            ),
        }
    }
}

impl std::error::Error for GeometryError {}

impl Mccap {
    /// From the dword; reserved bits are ignored.
    pub fn from_bits(bits: u32) -> Self {
        Self { vector_copy: bit(bits, 0), multiple_resets: bit(bits, 1), early_reset: bit(bits, 2) }
    }

    /// The dword.
    pub fn to_bits(self) -> u32 {
        flag(self.vector_copy, 0) | flag(self.multiple_resets, 1) | flag(self.early_reset, 2)
    }
}

impl Geometry {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;

    /// Chunks of the whole drive. Two counts of 16 bits and one of 32 multiply to less than 2^64.
    pub fn chunk_count(&self) -> u64 {
        u64::from(self.num_grp) * u64::from(self.num_pu) * u64::from(self.num_chk)
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`GeometryError`] for short input, another version, a count of zero, or counts that the LBA format cannot
    /// address.
    pub fn decode(bytes: &[u8]) -> Result<Self, GeometryError> {
        let bytes =
            fixed::<{ Self::BYTES }>("the OCSSD 2.0 geometry", bytes).map_err(GeometryError::Short)?;
        if !matches!(bytes[0], 2 | 3) {
            return Err(GeometryError::Version { mjr: bytes[0] });
        }
        let lbaf = LbaFormat {
            group_bits: bytes[8],
            pu_bits: bytes[9],
            chunk_bits: bytes[10],
            sector_bits: bytes[11],
        };
        let geometry = Self {
            mjr: bytes[0],
            mnr: bytes[1],
            lbaf: lbaf.checked().map_err(GeometryError::LbaFormat)?,
            mccap: Mccap::from_bits(u32_at(bytes, 16)),
            wit: bytes[32],
            num_grp: u16_at(bytes, 64),
            num_pu: u16_at(bytes, 66),
            num_chk: u32_at(bytes, 68),
            clba: u32_at(bytes, 72),
            ws_min: u32_at(bytes, 128),
            ws_opt: u32_at(bytes, 132),
            mw_cunits: u32_at(bytes, 136),
            maxoc: u32_at(bytes, 140),
            maxocpu: u32_at(bytes, 144),
            trdt_ns: u32_at(bytes, 192),
            trdm_ns: u32_at(bytes, 196),
            twrt_ns: u32_at(bytes, 200),
            twrm_ns: u32_at(bytes, 204),
            tcrst_ns: u32_at(bytes, 208),
            tcrsm_ns: u32_at(bytes, 212),
        };
        geometry.judge()
    }

    /// The geometry, if every count is at least 1 and can be addressed.
    fn judge(self) -> Result<Self, GeometryError> {
        let counts = [
            ("NUM_GRP", u32::from(self.num_grp), self.lbaf.group_bits),
            ("NUM_PU", u32::from(self.num_pu), self.lbaf.pu_bits),
            ("NUM_CHK", self.num_chk, self.lbaf.chunk_bits),
            ("CLBA", self.clba, self.lbaf.sector_bits),
        ];
        for (field, count, bits) in counts {
            if count == 0 {
                return Err(GeometryError::Zero { field });
            }
            if u64::from(count - 1) >> bits != 0 {
                return Err(GeometryError::Narrow { field, count, bits });
            }
        }
        for (field, size) in [("WS_MIN", self.ws_min), ("WS_OPT", self.ws_opt)] {
            if size == 0 {
                return Err(GeometryError::Zero { field });
            }
        }
        Ok(self)
    }

    /// The 4096 bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let LbaFormat { group_bits, pu_bits, chunk_bits, sector_bits } = self.lbaf;
        bytes[0] = self.mjr;
        bytes[1] = self.mnr;
        put(&mut bytes, 8, &[group_bits, pu_bits, chunk_bits, sector_bits]);
        put(&mut bytes, 16, &self.mccap.to_bits().to_le_bytes());
        bytes[32] = self.wit;
        put(&mut bytes, 64, &self.num_grp.to_le_bytes());
        put(&mut bytes, 66, &self.num_pu.to_le_bytes());
        let dwords = [
            (68, self.num_chk),
            (72, self.clba),
            (128, self.ws_min),
            (132, self.ws_opt),
            (136, self.mw_cunits),
            (140, self.maxoc),
            (144, self.maxocpu),
            (192, self.trdt_ns),
            (196, self.trdm_ns),
            (200, self.twrt_ns),
            (204, self.twrm_ns),
            (208, self.tcrst_ns),
            (212, self.tcrsm_ns),
        ];
        for (offset, dword) in dwords {
            put(&mut bytes, offset, &dword.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The CNEX 2.0 TLC drive of liblightnvm's documents, placed by hand.
    fn cnex_bytes() -> [u8; 4096] {
        let mut bytes = [0; 4096];
        bytes[0] = 2;
        bytes[8..12].copy_from_slice(&[3, 2, 11, 13]);
        bytes[16] = 0b011;
        bytes[32] = 10;
        bytes[64] = 8;
        bytes[66] = 4;
        bytes[68..70].copy_from_slice(&[0xC2, 0x05]); // 1474
        bytes[72..74].copy_from_slice(&[0x00, 0x18]); // 6144
        bytes[128] = 24;
        bytes[132] = 24;
        bytes[136] = 192;
        bytes[140] = 5;
        bytes[144] = 6;
        bytes[192..194].copy_from_slice(&[0x40, 0x9C]); // 40,000
        bytes[196] = 1;
        bytes[200] = 2;
        bytes[204] = 3;
        bytes[208] = 4;
        bytes[212..216].copy_from_slice(&[0x00, 0x2D, 0x31, 0x01]); // 20,000,000
        bytes
    }

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let geometry = Geometry::decode(&cnex_bytes()).expect("a valid geometry");
        let shape = (geometry.num_grp, geometry.num_pu, geometry.num_chk, geometry.clba);
        assert_eq!((geometry.mjr, geometry.mnr, geometry.wit, shape), (2, 0, 10, (8, 4, 1474, 6144)));
        assert_eq!((geometry.ws_min, geometry.ws_opt, geometry.mw_cunits), (24, 24, 192));
        assert_eq!((geometry.maxoc, geometry.maxocpu), (5, 6));
        assert_eq!((geometry.trdt_ns, geometry.trdm_ns), (40_000, 1));
        assert_eq!((geometry.twrt_ns, geometry.twrm_ns), (2, 3));
        assert_eq!((geometry.tcrst_ns, geometry.tcrsm_ns), (4, 20_000_000));
        assert_eq!(geometry.mccap, Mccap { vector_copy: true, multiple_resets: true, early_reset: false });
        assert_eq!(geometry.lbaf.group_offset(), 26);
        assert_eq!(geometry.chunk_count(), 47_168);
        assert_eq!(geometry.encode(), cnex_bytes());
    }

    #[test]
    fn unusable_geometries_are_refused_with_a_sentence() {
        let rows: [(usize, &[u8], &str); 10] = [
            (0, &[1], "1.2 drive"),
            (0, &[9], "it is 9"),
            (8, &[60], "sum to 86"),
            (64, &[0], "NUM_GRP"),
            (66, &[0], "NUM_PU"),
            (68, &[0, 0], "NUM_CHK"),
            (72, &[0, 0], "CLBA"),
            (64, &[9], "NUM_GRP of the geometry is 9"),
            (128, &[0], "WS_MIN"),
            (132, &[0], "WS_OPT"),
        ];
        for (offset, patch, says) in rows {
            let mut bytes = cnex_bytes();
            put(&mut bytes, offset, patch);
            let error = Geometry::decode(&bytes).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn short_input_is_refused() {
        let error = Geometry::decode(&cnex_bytes()[..4095]).expect_err("a byte is missing").to_string();
        assert!(error.contains("ends after 4095"), "{error}");
    }
}
