//! Requests of virtio-blk as bytes: the header in front, the ranges of a discard, the status behind.
//!
//! Source: VIRTIO 1.2, section 5.2.6. Deliberately not here: where in a guest's memory they lie.

/// What a request asks for (`type` of `struct virtio_blk_req`).
pub mod kind {
    /// Reads (VIRTIO_BLK_T_IN).
    pub const IN: u32 = 0;
    /// Writes (VIRTIO_BLK_T_OUT).
    pub const OUT: u32 = 1;
    /// Makes durable what has ended (VIRTIO_BLK_T_FLUSH).
    pub const FLUSH: u32 = 4;
    /// The device's name (VIRTIO_BLK_T_GET_ID).
    pub const GET_ID: u32 = 8;
    /// Ranges that are not needed any more (VIRTIO_BLK_T_DISCARD).
    pub const DISCARD: u32 = 11;
    /// Ranges that read as zeroes (VIRTIO_BLK_T_WRITE_ZEROES).
    pub const WRITE_ZEROES: u32 = 13;
}

/// Bytes of a sector of virtio-blk, whatever the device's blocks are (5.2.4: "expressed in 512-byte sectors").
pub const SECTOR_BYTES: u64 = 512;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 16;

/// Bytes of a range of a discard (`struct virtio_blk_discard_write_zeroes`).
pub const RANGE_BYTES: usize = 16;

/// Bytes of the device's name (VIRTIO_BLK_ID_BYTES).
pub const ID_BYTES: usize = 20;

/// How a request ended: the byte behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlkStatus {
    /// VIRTIO_BLK_S_OK.
    Ok,
    /// VIRTIO_BLK_S_IOERR.
    IoErr,
    /// VIRTIO_BLK_S_UNSUPP.
    Unsupp,
}

impl BlkStatus {
    /// As the byte.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::IoErr => 1,
            Self::Unsupp => 2,
        }
    }
}

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What is asked for: one of [`kind`], or anything.
    pub kind: u32,
    /// First sector, of 512 bytes; means something for reads and writes only.
    pub sector: u64,
}

impl Header {
    /// From its bytes.
    #[must_use]
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {
        Self { kind: le32(bytes, 0), sector: le64(bytes, 8) }
    }

    /// As its bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.kind.to_le_bytes());
        bytes[8..].copy_from_slice(&self.sector.to_le_bytes());
        bytes
    }
}

/// A range of a discard or of zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorRange {
    /// First sector.
    pub sector: u64,
    /// How many.
    pub count: u32,
    /// Bit 0: may be unmapped; the others are reserved.
    pub flags: u32,
}

/// The device may forget the range (`unmap` of `struct virtio_blk_discard_write_zeroes`).
pub const FLAG_UNMAP: u32 = 1;

impl SectorRange {
    /// From its bytes.
    #[must_use]
    pub fn decode(bytes: &[u8; RANGE_BYTES]) -> Self {
        Self { sector: le64(bytes, 0), count: le32(bytes, 8), flags: le32(bytes, 12) }
    }

    /// As its bytes.
    #[cfg(test)]
    pub fn encode(&self) -> [u8; RANGE_BYTES] {
        let mut bytes = [0; RANGE_BYTES];
        bytes[..8].copy_from_slice(&self.sector.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.count.to_le_bytes());
        bytes[12..].copy_from_slice(&self.flags.to_le_bytes());
        bytes
    }
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..][..4].try_into().expect("four bytes"))
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..][..8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_ranges_lie_as_the_specification_draws_them() {
        let header = Header { kind: kind::WRITE_ZEROES, sector: 0x0102_0304_0506_0708 };
        assert_eq!(header.encode(), [13, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(Header::decode(&header.encode()), header);
        let range = SectorRange { sector: 7, count: 0x0A0B, flags: FLAG_UNMAP };
        assert_eq!(range.encode(), [7, 0, 0, 0, 0, 0, 0, 0, 0x0B, 0x0A, 0, 0, 1, 0, 0, 0]);
        assert_eq!(SectorRange::decode(&range.encode()), range);
    }
}
