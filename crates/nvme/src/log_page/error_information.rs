//! One 64-byte entry of the error information log (LID 01h); the newest is first.
//!
//! Source: NVMe base 1.4 figure 193.

use crate::address::Lba;
use crate::status::StatusField;
use crate::wire::{ShortInput, fixed, put, u16_at, u32_at, u64_at};

/// One command that failed, with more detail than its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorLogEntry {
    /// Counts errors from 1; 0 marks an entry that holds nothing.
    pub error_count: u64,
    /// Submission queue of the command.
    pub sqid: u16,
    /// Identifier of the command.
    pub cid: u16,
    /// Status of its completion.
    pub status: StatusField,
    /// Phase tag of its completion.
    pub phase: bool,
    /// Where in the command the error is: byte 7:0, bit 10:8; FFFFh is nowhere in particular.
    pub parameter_error_location: u16,
    /// First block that failed.
    pub lba: Lba,
    /// Namespace.
    pub nsid: u32,
    /// Vendor log page with more; 0 is none.
    pub vendor_log_page: u8,
    /// Command specific information.
    pub command_specific: u64,
}

impl ErrorLogEntry {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 64;

    /// From the first 64 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("an error log entry", bytes)?;
        let status = u16_at(bytes, 12);
        Ok(Self {
            error_count: u64_at(bytes, 0),
            sqid: u16_at(bytes, 8),
            cid: u16_at(bytes, 10),
            status: StatusField::from_bits(status >> 1),
            phase: status & 1 == 1,
            parameter_error_location: u16_at(bytes, 14),
            lba: Lba(u64_at(bytes, 16)),
            nsid: u32_at(bytes, 24),
            vendor_log_page: bytes[28],
            command_specific: u64_at(bytes, 32),
        })
    }

    /// The 64 bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let status = self.status.to_bits() << 1 | u16::from(self.phase);
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.error_count.to_le_bytes());
        for (index, word) in
            [self.sqid, self.cid, status, self.parameter_error_location].into_iter().enumerate()
        {
            put(&mut bytes, 8 + 2 * index, &word.to_le_bytes());
        }
        put(&mut bytes, 16, &self.lba.0.to_le_bytes());
        put(&mut bytes, 24, &self.nsid.to_le_bytes());
        bytes[28] = self.vendor_log_page;
        put(&mut bytes, 32, &self.command_specific.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let mut bytes = [0; 64];
        bytes[..16].copy_from_slice(&[7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0x01, 0x85, 0xFF, 0xFF]);
        bytes[16] = 0x33;
        bytes[24] = 1;
        bytes[28] = 0xCA;
        bytes[32] = 9;
        let entry = ErrorLogEntry {
            error_count: 7,
            sqid: 1,
            cid: 2,
            status: StatusField::rule(Status::WRITE_FAULT),
            phase: true,
            parameter_error_location: 0xFFFF,
            lba: Lba(0x33),
            nsid: 1,
            vendor_log_page: 0xCA,
            command_specific: 9,
        };
        assert_eq!(ErrorLogEntry::decode(&bytes), Ok(entry));
        assert_eq!(entry.encode(), bytes);
        assert!(ErrorLogEntry::decode(&bytes[..63]).is_err());
    }
}
