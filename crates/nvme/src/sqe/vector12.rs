//! OCSSD 1.2 commands: erase, write and read by physical page address, and the bad block table.
//!
//! Source: OCSSD 1.2 sections 3.3, 3.4 and 4.

use super::Sqe;
use crate::address::{AddressList, WireAddress};
use crate::ocssd12::{BlockFlags, BlockFlagsError, IoFlags, PlaneModeError, Ppa};
use crate::opcode::{AdminOpcode, IoOpcode};
use crate::wire::{byte, join, low_half, split};

/// An erase, write or read of physical pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PpaIo {
    /// CDW10-11 and NPPA (CDW12 bits 5:0). An erase ignores the page and sector of each address.
    pub ppas: AddressList<Ppa>,
    /// The flags of CDW12.
    pub flags: IoFlags,
}

impl PpaIo {
    /// The view of a 1.2 erase, write or read entry.
    ///
    /// # Errors
    /// [`PlaneModeError`] if the plane mode is the reserved value 3.
    pub fn of(sqe: &Sqe) -> Result<Self, PlaneModeError> {
        let ppas = AddressList::from_wire(join(sqe.cdw10, sqe.cdw11), sqe.cdw12);
        Ok(Self { ppas, flags: IoFlags::from_cdw12(sqe.cdw12)? })
    }

    /// Places the fields into `sqe`.
    fn place(self, mut sqe: Sqe) -> Sqe {
        let (bits, nppa) = self.ppas.to_wire();
        (sqe.cdw10, sqe.cdw11) = split(bits);
        sqe.cdw12 = nppa | self.flags.to_cdw12();
        sqe
    }
}

/// Get Bad Block Table: the table of the lun that an address lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetBbt {
    /// CDW10-11; channel and lun count, the rest is ignored.
    pub lun: Ppa,
}

impl GetBbt {
    /// The view of a Get Bad Block Table entry.
    pub fn of(sqe: &Sqe) -> Self {
        Self { lun: Ppa(join(sqe.cdw10, sqe.cdw11)) }
    }
}

/// Set Bad Block Table: mark blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetBbt {
    /// CDW10-11: the address itself for one block, else where the list is. The table in the specification allows
    /// 65,536 entries (NPPA is 16 bits here), so this is not an [`AddressList`].
    pub spba: u64,
    /// NPPA + 1, CDW12 bits 15:0: how many blocks, 1 to 65,536.
    pub block_count: u32,
    /// CDW12 bits 23:16: what the blocks become.
    pub value: BlockFlags,
}

impl SetBbt {
    /// The view of a Set Bad Block Table entry.
    ///
    /// # Errors
    /// [`BlockFlagsError`] if the value has reserved bits.
    pub fn of(sqe: &Sqe) -> Result<Self, BlockFlagsError> {
        let value = BlockFlags::from_bits(byte(sqe.cdw12, 2))?;
        let block_count = u32::from(low_half(sqe.cdw12)) + 1;
        Ok(Self { spba: join(sqe.cdw10, sqe.cdw11), block_count, value })
    }

    /// The one block, if there is only one; otherwise `spba` is a pointer.
    pub fn one(&self) -> Option<Ppa> {
        (self.block_count == 1).then(|| Ppa::from_bits(self.spba))
    }
}

impl Sqe {
    /// Physical Block Erase (90h).
    ///
    /// # Panics
    /// If the list's count is not 2 to 64.
    pub fn ppa_erase(nsid: u32, erase: PpaIo) -> Self {
        erase.place(Self::io(IoOpcode::VECTOR_RESET, nsid))
    }

    /// Physical Page Write (91h).
    ///
    /// # Panics
    /// If the list's count is not 2 to 64.
    pub fn ppa_write(nsid: u32, write: PpaIo) -> Self {
        write.place(Self::io(IoOpcode::VECTOR_WRITE, nsid))
    }

    /// Physical Page Read (92h).
    ///
    /// # Panics
    /// If the list's count is not 2 to 64.
    pub fn ppa_read(nsid: u32, read: PpaIo) -> Self {
        read.place(Self::io(IoOpcode::VECTOR_READ, nsid))
    }

    /// Get Bad Block Table (F2h).
    pub fn get_bbt(nsid: u32, get: GetBbt) -> Self {
        let mut sqe = Self::admin(AdminOpcode::GET_BBT, nsid);
        (sqe.cdw10, sqe.cdw11) = split(get.lun.0);
        sqe
    }

    /// Set Bad Block Table (F1h).
    ///
    /// # Panics
    /// If the block count is not 1 to 65,536.
    pub fn set_bbt(nsid: u32, set: SetBbt) -> Self {
        assert!((1..=1 << 16).contains(&set.block_count), "1 to 65536 blocks, not {}", set.block_count);
        let mut sqe = Self::admin(AdminOpcode::SET_BBT, nsid);
        (sqe.cdw10, sqe.cdw11) = split(set.spba);
        sqe.cdw12 = (set.block_count - 1) | u32::from(set.value.to_bits()) << 16;
        sqe
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::HostAddress;
    use crate::ocssd12::PlaneMode;

    #[test]
    fn a_write_is_placed_in_its_dwords() {
        let ppas = AddressList::Many { at: HostAddress(0x1000), count: 8 };
        let flags = IoFlags { plane_mode: PlaneMode::Dual, scramble_disable: true, ..IoFlags::default() };
        let write = PpaIo { ppas, flags };
        let bytes = Sqe::ppa_write(1, write).encode();
        assert_eq!((bytes[0], &bytes[48..52]), (0x91, &[7, 0, 1, 2][..]));
        assert_eq!(PpaIo::of(&Sqe::decode(&bytes)), Ok(write));
    }

    #[test]
    fn erase_and_read_have_their_opcodes() {
        let io = PpaIo { ppas: AddressList::One(Ppa(77)), flags: IoFlags::default() };
        assert_eq!((Sqe::ppa_erase(1, io).opcode, Sqe::ppa_read(1, io).opcode), (0x90, 0x92));
        assert_eq!(PpaIo::of(&Sqe::ppa_read(1, io)), Ok(io));
    }

    #[test]
    fn the_reserved_plane_mode_is_refused() {
        let sqe = Sqe { cdw12: 3 << 16, ..Sqe::default() };
        assert!(PpaIo::of(&sqe).is_err());
    }

    #[test]
    fn the_bad_block_commands_round_trip() {
        let set = SetBbt { spba: 0x55, block_count: 1, value: BlockFlags::GROWN_BAD };
        let sqe = Sqe::set_bbt(1, set);
        assert_eq!((sqe.opcode, sqe.cdw10, sqe.cdw12), (0xF1, 0x55, 0x0002_0000));
        assert_eq!(SetBbt::of(&sqe), Ok(set));
        assert_eq!(set.one(), Some(Ppa(0x55)));
        let list = SetBbt { block_count: 65_536, ..set };
        assert_eq!((SetBbt::of(&Sqe::set_bbt(1, list)), list.one()), (Ok(list), None));
        let get = GetBbt { lun: Ppa(0x1_0000_0002) };
        assert_eq!((Sqe::get_bbt(1, get).opcode, GetBbt::of(&Sqe::get_bbt(1, get))), (0xF2, get));
    }

    #[test]
    fn a_reserved_block_flag_is_refused() {
        let sqe = Sqe { cdw12: 0x20 << 16, ..Sqe::default() };
        assert!(SetBbt::of(&sqe).is_err());
    }
}
