//! The 16-byte SGL descriptor that may stand in a command's data pointer.
//!
//! Needed by fabric transports, whose commands never carry PRPs. Deliberately not here: walking segments.
//! Source: NVMe base 1.4 section 4.4, figures "Generic SGL Descriptor" and "SGL Descriptor Types".

use crate::wire::{array_at, put, u32_at, u64_at};

/// One SGL descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SglDescriptor {
    /// Bytes 7:0: a memory address, or an offset into the capsule, by `kind` and `subtype`.
    pub address: u64,
    /// Bytes 11:8: length in bytes.
    pub length_bytes: u32,
    /// Byte 15 bits 7:4.
    pub kind: SglKind,
    /// Byte 15 bits 3:0.
    pub subtype: u8,
}

/// What an SGL descriptor describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SglKind {
    /// 0h: a block of data.
    DataBlock,
    /// 1h: data to be dropped.
    BitBucket,
    /// 2h: another segment of descriptors.
    Segment,
    /// 3h: the last segment of descriptors.
    LastSegment,
    /// 4h: a block of data under a remote key.
    KeyedDataBlock,
    /// 5h: data that the transport moves (NVMe/TCP).
    TransportDataBlock,
    /// Anything else.
    Other(u8),
}

/// Subtype of [`SglKind::DataBlock`]: `address` is an offset into the command capsule.
pub const SUBTYPE_OFFSET: u8 = 0x1;
/// Subtype of [`SglKind::TransportDataBlock`]: the transport alone knows where the data is.
pub const SUBTYPE_TRANSPORT: u8 = 0xA;

impl SglDescriptor {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 16;

    /// From the data pointer's 16 bytes. Every pattern is a descriptor.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let [identifier] = array_at(bytes, 15);
        Self {
            address: u64_at(bytes, 0),
            length_bytes: u32_at(bytes, 8),
            kind: SglKind::from_bits(identifier >> 4),
            subtype: identifier & 0xF,
        }
    }

    /// The data pointer's 16 bytes.
    ///
    /// # Panics
    /// If `subtype` or an [`SglKind::Other`] needs more than 4 bits.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let kind = self.kind.to_bits();
        assert!(kind < 16 && self.subtype < 16, "SGL type {kind} and subtype {} are 4 bits", self.subtype);
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.address.to_le_bytes());
        put(&mut bytes, 8, &self.length_bytes.to_le_bytes());
        bytes[15] = kind << 4 | self.subtype;
        bytes
    }
}

impl SglKind {
    fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::DataBlock,
            1 => Self::BitBucket,
            2 => Self::Segment,
            3 => Self::LastSegment,
            4 => Self::KeyedDataBlock,
            5 => Self::TransportDataBlock,
            other => Self::Other(other),
        }
    }

    fn to_bits(self) -> u8 {
        match self {
            Self::DataBlock => 0,
            Self::BitBucket => 1,
            Self::Segment => 2,
            Self::LastSegment => 3,
            Self::KeyedDataBlock => 4,
            Self::TransportDataBlock => 5,
            Self::Other(other) => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_data_block_is_5ah_in_the_last_byte() {
        let mut bytes = [0; 16];
        bytes[9] = 0x10;
        bytes[15] = 0x5A;
        let sgl = SglDescriptor {
            address: 0,
            length_bytes: 4096,
            kind: SglKind::TransportDataBlock,
            subtype: SUBTYPE_TRANSPORT,
        };
        assert_eq!(SglDescriptor::decode(&bytes), sgl);
        assert_eq!(sgl.encode(), bytes);
    }

    #[test]
    fn every_identifier_round_trips() {
        for identifier in 0..=u8::MAX {
            let mut bytes = [7; 16];
            bytes[12..15].fill(0);
            bytes[15] = identifier;
            assert_eq!(SglDescriptor::decode(&bytes).encode(), bytes);
        }
    }
}
