//! Scalar I/O: Read, Write, Flush and Dataset Management.
//!
//! Source: NVM command set (NVMe 1.4 sections 6.7, 6.8, 6.9, 6.15); OCSSD 2.0 makes these the mandatory I/O commands.

use super::Sqe;
use crate::address::Lba;
use crate::opcode::IoOpcode;
use crate::wire::{bit, byte, flag, join, low_half, split};

/// Read or Write of consecutive logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadWrite {
    /// SLBA, CDW10-11: first logical block.
    pub slba: Lba,
    /// NLB + 1, CDW12 bits 15:0: how many blocks, 1 to 65,536.
    pub block_count: u32,
    /// LR, CDW12 bit 31: limit the effort to recover from errors.
    pub limited_retry: bool,
    /// FUA, CDW12 bit 30: media, not cache, before the command completes.
    pub force_unit_access: bool,
}

impl ReadWrite {
    /// The view of a Read or Write entry.
    pub fn of(sqe: &Sqe) -> Self {
        Self {
            slba: Lba(join(sqe.cdw10, sqe.cdw11)),
            block_count: u32::from(low_half(sqe.cdw12)) + 1,
            limited_retry: bit(sqe.cdw12, 31),
            force_unit_access: bit(sqe.cdw12, 30),
        }
    }

    /// Places the fields into `sqe`.
    fn place(self, mut sqe: Sqe) -> Sqe {
        assert!((1..=1 << 16).contains(&self.block_count), "1 to 65536 blocks, not {}", self.block_count);
        (sqe.cdw10, sqe.cdw11) = split(self.slba.0);
        sqe.cdw12 = (self.block_count - 1) | flag(self.limited_retry, 31) | flag(self.force_unit_access, 30);
        sqe
    }
}

/// Dataset Management. The ranges are in the data buffer: see [`crate::ocssd20::DsmRange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatasetManagement {
    /// NR + 1, CDW10 bits 7:0: how many ranges, 1 to 256.
    pub range_count: u16,
    /// AD, CDW11 bit 2: deallocate, which is a chunk reset on OCSSD 2.0. Without it the command is advice only.
    pub deallocate: bool,
    /// IDW, CDW11 bit 1: the ranges will be written as a whole.
    pub integral_write: bool,
    /// IDR, CDW11 bit 0: the ranges will be read as a whole.
    pub integral_read: bool,
}

impl DatasetManagement {
    /// The view of a Dataset Management entry.
    pub fn of(sqe: &Sqe) -> Self {
        Self {
            range_count: u16::from(byte(sqe.cdw10, 0)) + 1,
            deallocate: bit(sqe.cdw11, 2),
            integral_write: bit(sqe.cdw11, 1),
            integral_read: bit(sqe.cdw11, 0),
        }
    }
}

impl Sqe {
    /// Flush (00h).
    pub fn flush(nsid: u32) -> Self {
        Self::io(IoOpcode::FLUSH, nsid)
    }

    /// Scalar Read (02h).
    ///
    /// # Panics
    /// If the block count is not 1 to 65,536.
    pub fn read(nsid: u32, read: ReadWrite) -> Self {
        read.place(Self::io(IoOpcode::READ, nsid))
    }

    /// Scalar Write (01h).
    ///
    /// # Panics
    /// If the block count is not 1 to 65,536.
    pub fn write(nsid: u32, write: ReadWrite) -> Self {
        write.place(Self::io(IoOpcode::WRITE, nsid))
    }

    /// Dataset Management (09h).
    ///
    /// # Panics
    /// If the range count is not 1 to 256.
    pub fn dataset_management(nsid: u32, dsm: DatasetManagement) -> Self {
        assert!((1..=256).contains(&dsm.range_count), "1 to 256 ranges, not {}", dsm.range_count);
        let mut sqe = Self::io(IoOpcode::DATASET_MANAGEMENT, nsid);
        sqe.cdw10 = u32::from(dsm.range_count) - 1;
        sqe.cdw11 = flag(dsm.deallocate, 2) | flag(dsm.integral_write, 1) | flag(dsm.integral_read, 0);
        sqe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_placed_in_its_dwords() {
        let write = ReadWrite {
            slba: Lba(0x1122_3344_5566_7788),
            block_count: 24,
            limited_retry: true,
            force_unit_access: false,
        };
        let bytes = Sqe::write(7, write).with_cid(9).encode();
        assert_eq!((bytes[0], bytes[2], bytes[4]), (0x01, 9, 7));
        assert_eq!(bytes[40..48], [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        assert_eq!(bytes[48..52], [23, 0, 0, 0x80]);
        assert_eq!(ReadWrite::of(&Sqe::decode(&bytes)), write);
    }

    #[test]
    fn the_largest_read_has_65536_blocks_and_fua_is_bit_30() {
        let read =
            ReadWrite { slba: Lba(0), block_count: 65_536, limited_retry: false, force_unit_access: true };
        let sqe = Sqe::read(1, read);
        assert_eq!((sqe.opcode, sqe.cdw12), (0x02, 0x4000_FFFF));
        assert_eq!(ReadWrite::of(&sqe), read);
    }

    #[test]
    fn dataset_management_counts_ranges_from_one_and_ad_is_bit_2() {
        let dsm = DatasetManagement {
            range_count: 256,
            deallocate: true,
            integral_write: false,
            integral_read: true,
        };
        let sqe = Sqe::dataset_management(1, dsm);
        assert_eq!((sqe.opcode, sqe.cdw10, sqe.cdw11), (0x09, 0xFF, 0b101));
        assert_eq!(DatasetManagement::of(&sqe), dsm);
    }

    #[test]
    fn flush_is_opcode_zero() {
        assert_eq!(Sqe::flush(3).encode()[..8], [0, 0, 0, 0, 3, 0, 0, 0]);
    }
}
