//! The commands on zones: Zone Management Send (79h), Zone Management Receive (7Ah) and Zone Append (7Dh).
//!
//! Source: ZNS 1.1 section 3.4.

use crate::address::Lba;
use crate::opcode::IoOpcode;
use crate::sqe::Sqe;
use crate::wire::{bit, byte, flag, join, low_half, split};
use ocssd_lightnvm::interface::zoned::{ZoneAction, ZoneState};

/// ZSA, CDW13 bits 7:0 of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneSendAction {
    /// 01h to 05h: something is done to zones.
    Manage(ZoneAction),
    /// 10h: a zone's descriptor extension is set.
    SetExtension,
    /// 11h: a zone random write area is flushed.
    FlushArea,
    /// Any other.
    Reserved(u8),
}

impl ZoneSendAction {
    fn from_bits(bits: u8) -> Self {
        match bits {
            1 => Self::Manage(ZoneAction::Close),
            2 => Self::Manage(ZoneAction::Finish),
            3 => Self::Manage(ZoneAction::Open),
            4 => Self::Manage(ZoneAction::Reset),
            5 => Self::Manage(ZoneAction::Offline),
            0x10 => Self::SetExtension,
            0x11 => Self::FlushArea,
            other => Self::Reserved(other),
        }
    }

    fn to_bits(self) -> u8 {
        match self {
            Self::Manage(ZoneAction::Close) => 1,
            Self::Manage(ZoneAction::Finish) => 2,
            Self::Manage(ZoneAction::Open) => 3,
            Self::Manage(ZoneAction::Reset) => 4,
            Self::Manage(ZoneAction::Offline) => 5,
            Self::SetExtension => 0x10,
            Self::FlushArea => 0x11,
            Self::Reserved(bits) => bits,
        }
    }
}

/// Zone Management Send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneManagementSend {
    /// SLBA, CDW10-11: the first block of the zone; ignored with `all`.
    pub slba: Lba,
    /// What is done.
    pub action: ZoneSendAction,
    /// Select All, CDW13 bit 8: to every zone it is meant for.
    pub all: bool,
    /// ZSASO, CDW13 bit 9: of an open, allocate a zone random write area.
    pub option: bool,
}

impl ZoneManagementSend {
    /// The view of a Zone Management Send entry.
    #[must_use]
    pub fn of(sqe: &Sqe) -> Self {
        Self {
            slba: Lba(join(sqe.cdw10, sqe.cdw11)),
            action: ZoneSendAction::from_bits(byte(sqe.cdw13, 0)),
            all: bit(sqe.cdw13, 8),
            option: bit(sqe.cdw13, 9),
        }
    }
}

/// ZRA, CDW13 bits 7:0 of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneReceiveAction {
    /// 00h: descriptors.
    Report,
    /// 01h: descriptors with their extensions.
    ExtendedReport,
    /// Any other.
    Reserved(u8),
}

/// Zone Management Receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneManagementReceive {
    /// SLBA, CDW10-11: a block of the first zone.
    pub slba: Lba,
    /// NUMD + 1, CDW12: dwords the host has room for, 1 to 2^32.
    pub dword_count: u64,
    /// What is reported.
    pub action: ZoneReceiveAction,
    /// ZRASF, CDW13 bits 15:8: only zones in a state; 0 is all.
    pub filter: u8,
    /// Partial Report, CDW13 bit 16: the number of zones is of those in the buffer, not of all there are.
    pub partial: bool,
}

impl ZoneManagementReceive {
    /// The view of a Zone Management Receive entry.
    #[must_use]
    pub fn of(sqe: &Sqe) -> Self {
        let action = match byte(sqe.cdw13, 0) {
            0 => ZoneReceiveAction::Report,
            1 => ZoneReceiveAction::ExtendedReport,
            other => ZoneReceiveAction::Reserved(other),
        };
        Self {
            slba: Lba(join(sqe.cdw10, sqe.cdw11)),
            dword_count: u64::from(sqe.cdw12) + 1,
            action,
            filter: byte(sqe.cdw13, 1),
            partial: bit(sqe.cdw13, 16),
        }
    }

    /// The state that `filter` asks for: `Ok(None)` is all.
    ///
    /// # Errors
    /// The filter, if it is none.
    pub fn only(&self) -> Result<Option<ZoneState>, u8> {
        match self.filter {
            0 => Ok(None),
            1 => Ok(Some(ZoneState::Empty)),
            2 => Ok(Some(ZoneState::ImplicitlyOpened)),
            3 => Ok(Some(ZoneState::ExplicitlyOpened)),
            4 => Ok(Some(ZoneState::Closed)),
            5 => Ok(Some(ZoneState::Full)),
            6 => Ok(Some(ZoneState::ReadOnly)),
            7 => Ok(Some(ZoneState::Offline)),
            other => Err(other),
        }
    }
}

/// Zone Append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneAppend {
    /// ZSLBA, CDW10-11: the first block of the zone.
    pub zslba: Lba,
    /// NLB + 1, CDW12 bits 15:0: how many blocks, 1 to 65,536.
    pub block_count: u32,
    /// LR, CDW12 bit 31: limit the effort to recover from errors.
    pub limited_retry: bool,
    /// FUA, CDW12 bit 30: media, not cache, before the command completes.
    pub force_unit_access: bool,
    /// PIREMAP, CDW12 bit 25: the protection information's tag is that of the zone's start.
    pub remaps_tag: bool,
}

impl ZoneAppend {
    /// The view of a Zone Append entry. DW0 and DW1 of its completion are the address of the first block.
    #[must_use]
    pub fn of(sqe: &Sqe) -> Self {
        Self {
            zslba: Lba(join(sqe.cdw10, sqe.cdw11)),
            block_count: u32::from(low_half(sqe.cdw12)) + 1,
            limited_retry: bit(sqe.cdw12, 31),
            force_unit_access: bit(sqe.cdw12, 30),
            remaps_tag: bit(sqe.cdw12, 25),
        }
    }
}

impl Sqe {
    /// Zone Management Send (79h).
    #[must_use]
    pub fn zone_management_send(nsid: u32, send: ZoneManagementSend) -> Self {
        let mut sqe = Self::io(IoOpcode::ZONE_MANAGEMENT_SEND, nsid);
        (sqe.cdw10, sqe.cdw11) = split(send.slba.0);
        sqe.cdw13 = u32::from(send.action.to_bits()) | flag(send.all, 8) | flag(send.option, 9);
        sqe
    }

    /// Zone Management Receive (7Ah).
    ///
    /// # Panics
    /// If the dword count is not 1 to 2^32.
    #[must_use]
    pub fn zone_management_receive(nsid: u32, receive: ZoneManagementReceive) -> Self {
        let mut sqe = Self::io(IoOpcode::ZONE_MANAGEMENT_RECEIVE, nsid);
        (sqe.cdw10, sqe.cdw11) = split(receive.slba.0);
        let dwords = receive.dword_count.checked_sub(1).and_then(|count| u32::try_from(count).ok());
        sqe.cdw12 = dwords.expect("1 to 2^32 dwords");
        let action = match receive.action {
            ZoneReceiveAction::Report => 0,
            ZoneReceiveAction::ExtendedReport => 1,
            ZoneReceiveAction::Reserved(bits) => bits,
        };
        sqe.cdw13 = u32::from(action) | u32::from(receive.filter) << 8 | flag(receive.partial, 16);
        sqe
    }

    /// Zone Append (7Dh).
    ///
    /// # Panics
    /// If the block count is not 1 to 65,536.
    #[must_use]
    pub fn zone_append(nsid: u32, append: ZoneAppend) -> Self {
        let count = append.block_count;
        assert!((1..=1 << 16).contains(&count), "1 to 65536 blocks, not {count}");
        let mut sqe = Self::io(IoOpcode::ZONE_APPEND, nsid);
        (sqe.cdw10, sqe.cdw11) = split(append.zslba.0);
        let flags = flag(append.limited_retry, 31) | flag(append.force_unit_access, 30);
        sqe.cdw12 = (count - 1) | flags | flag(append.remaps_tag, 25);
        sqe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_says_which_zone_and_what() {
        let send = ZoneManagementSend {
            slba: Lba(0x1_0000_0002),
            action: ZoneSendAction::Manage(ZoneAction::Reset),
            all: true,
            option: false,
        };
        let sqe = Sqe::zone_management_send(3, send);
        assert_eq!((sqe.opcode, sqe.nsid, sqe.cdw10, sqe.cdw11, sqe.cdw13), (0x79, 3, 2, 1, 0x104));
        for bits in 0..=255 {
            assert_eq!(ZoneSendAction::from_bits(bits).to_bits(), bits);
            let other = Sqe { cdw13: bits.into(), ..sqe };
            assert_eq!(ZoneManagementSend::of(&other).action, ZoneSendAction::from_bits(bits));
        }
    }

    #[test]
    fn a_receive_counts_dwords_from_one_and_filters_by_state() {
        let receive = ZoneManagementReceive {
            slba: Lba(64),
            dword_count: 1024,
            action: ZoneReceiveAction::Report,
            filter: 5,
            partial: true,
        };
        let sqe = Sqe::zone_management_receive(1, receive);
        assert_eq!((sqe.opcode, sqe.cdw10, sqe.cdw12, sqe.cdw13), (0x7A, 64, 1023, 0x1_0500));
        assert_eq!(ZoneManagementReceive::of(&sqe), receive);
        let only: Vec<_> = (0..9).map(|filter| ZoneManagementReceive { filter, ..receive }.only()).collect();
        assert_eq!((only[0], only[8]), (Ok(None), Err(8)));
        let mut states: Vec<_> = only[1..8].iter().map(|state| state.expect("a state")).collect();
        states.sort_unstable();
        let mut all: Vec<_> = ZoneState::ALL.map(Some).into();
        all.sort_unstable();
        assert_eq!(states, all, "each state has a filter");
    }

    #[test]
    fn an_append_names_a_zone_and_its_flags_are_those_of_a_write() {
        let append = ZoneAppend {
            zslba: Lba(1 << 20),
            block_count: 32,
            limited_retry: false,
            force_unit_access: true,
            remaps_tag: true,
        };
        let sqe = Sqe::zone_append(1, append);
        assert_eq!((sqe.opcode, sqe.cdw10, sqe.cdw12), (0x7D, 1 << 20, 0x4200_001F));
        assert_eq!(ZoneAppend::of(&sqe), append);
    }
}
