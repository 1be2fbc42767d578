//! The 16-byte completion queue entry.
//!
//! ```text
//! byte  0        4        8      10     12     14
//!       | DW0    | DW1    | SQHD | SQID | CID  | phase bit 0, status field bits 15:1 |
//! ```
//! For vector commands DW0 and DW1 together are a bitmap: bit i set means entry i has the status of this completion
//! (OCSSD 2.0 section 4). Source: NVMe base 1.4 section 4.6.

use crate::status::StatusField;
use crate::wire::{join, put, split, u16_at, u32_at};

/// One completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cqe {
    /// Dword 0: the command's own result.
    pub dw0: u32,
    /// Dword 1: reserved by NVMe, upper half of the bitmap for vector commands.
    pub dw1: u32,
    /// Submission queue head: slots before it may be reused.
    pub sqhd: u16,
    /// Submission queue the command came from.
    pub sqid: u16,
    /// The command's identifier.
    pub cid: u16,
    /// Phase tag: flips each time the completion queue wraps.
    pub phase: bool,
    /// How the command ended.
    pub status: StatusField,
}

impl Cqe {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 16;

    /// DW1:DW0 as the bitmap of failed entries of a vector command; bit 0 is the first entry.
    pub fn failed_entries(&self) -> u64 {
        join(self.dw0, self.dw1)
    }

    /// The same completion with `bitmap` in DW1:DW0.
    pub fn with_failed_entries(mut self, bitmap: u64) -> Self {
        (self.dw0, self.dw1) = split(bitmap);
        self
    }

    /// From the 16 bytes. Every pattern is a completion.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let tail = u16_at(bytes, 14);
        Self {
            dw0: u32_at(bytes, 0),
            dw1: u32_at(bytes, 4),
            sqhd: u16_at(bytes, 8),
            sqid: u16_at(bytes, 10),
            cid: u16_at(bytes, 12),
            phase: tail & 1 == 1,
            status: StatusField::from_bits(tail >> 1),
        }
    }

    /// The 16 bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.dw0.to_le_bytes());
        put(&mut bytes, 4, &self.dw1.to_le_bytes());
        put(&mut bytes, 8, &self.sqhd.to_le_bytes());
        put(&mut bytes, 10, &self.sqid.to_le_bytes());
        put(&mut bytes, 12, &self.cid.to_le_bytes());
        let tail = self.status.to_bits() << 1 | u16::from(self.phase);
        put(&mut bytes, 14, &tail.to_le_bytes());
        bytes
    }
}

const _: () = assert!(Cqe::BYTES == 4 * 4, "a completion is four dwords");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;

    /// Out-of-order write (2F2h) with DNR, phase 1: DW3 bits 31:17 hold 42F2h.
    const BYTES: [u8; 16] = [0x01, 0, 0, 0, 0, 0, 0, 0x80, 0x34, 0x12, 0x02, 0x00, 0xCD, 0xAB, 0xE5, 0x85];

    fn completion() -> Cqe {
        Cqe {
            dw0: 1,
            dw1: 0x8000_0000,
            sqhd: 0x1234,
            sqid: 2,
            cid: 0xABCD,
            phase: true,
            status: StatusField::rule(Status::OUT_OF_ORDER),
        }
    }

    #[test]
    fn fields_sit_where_the_table_puts_them() {
        assert_eq!(completion().encode(), BYTES);
        assert_eq!(Cqe::decode(&BYTES), completion());
    }

    #[test]
    fn the_bitmap_spans_both_dwords() {
        let bitmap = 1 << 63 | 1;
        assert_eq!(completion().failed_entries(), bitmap);
        let moved = completion().with_failed_entries(1 << 32);
        assert_eq!((moved.dw0, moved.dw1), (0, 1));
    }
}
