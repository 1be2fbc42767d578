//! The flags of a 1.2 vector command, CDW12 above the count.
//!
//! ```text
//! bit  31  30   25                24        23       17:16
//!      LR  FUA  scramble disable  SLC mode  suspend  plane mode
//! ```
//! Linux set bit 25 to ask for scrambling, the opposite of the text. Here it means what the text says. Source: OCSSD
//! 1.2 section 4.

use crate::wire::{bit, byte, flag};
use std::fmt;

/// The flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoFlags {
    /// Bit 31, LR: limit the effort to recover from errors.
    pub limited_retry: bool,
    /// Bit 30, FUA: media, not cache, before the command completes.
    pub force_unit_access: bool,
    /// Bit 25: do not scramble the data.
    pub scramble_disable: bool,
    /// Bit 24: use the block as single-level cells.
    pub slc_mode: bool,
    /// Bit 23: an erase or program may be suspended for this command.
    pub suspend: bool,
    /// Bits 17:16: how many planes work together.
    pub plane_mode: PlaneMode,
}

/// How many planes one command drives together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlaneMode {
    /// 0: one.
    #[default]
    Single,
    /// 1: two.
    Dual,
    /// 2: four.
    Quad,
}

/// The plane mode is the reserved value 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneModeError;

impl fmt::Display for PlaneModeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the plane mode (CDW12 bits 17:16) should be 0 (single), 1 (dual) or 2 (quad), but it is 3; use 0, 1 or 2")
    }
}

impl std::error::Error for PlaneModeError {}

impl PlaneMode {
    /// Planes that work together: 1, 2 or 4.
    pub fn plane_count(self) -> u8 {
        match self {
            Self::Single => 1,
            Self::Dual => 2,
            Self::Quad => 4,
        }
    }
}

impl IoFlags {
    /// From CDW12; the count and reserved bits are ignored.
    ///
    /// # Errors
    /// [`PlaneModeError`] for plane mode 3.
    pub fn from_cdw12(cdw12: u32) -> Result<Self, PlaneModeError> {
        let plane_mode = match byte(cdw12, 2) & 3 {
            0 => PlaneMode::Single,
            1 => PlaneMode::Dual,
            2 => PlaneMode::Quad,
            _ => return Err(PlaneModeError),
        };
        Ok(Self {
            limited_retry: bit(cdw12, 31),
            force_unit_access: bit(cdw12, 30),
            scramble_disable: bit(cdw12, 25),
            slc_mode: bit(cdw12, 24),
            suspend: bit(cdw12, 23),
            plane_mode,
        })
    }

    /// The bits of CDW12, the count left 0.
    pub fn to_cdw12(self) -> u32 {
        let plane_mode: u32 = match self.plane_mode {
            PlaneMode::Single => 0,
            PlaneMode::Dual => 1,
            PlaneMode::Quad => 2,
        };
        flag(self.limited_retry, 31)
            | flag(self.force_unit_access, 30)
            | flag(self.scramble_disable, 25)
            | flag(self.slc_mode, 24)
            | flag(self.suspend, 23)
            | plane_mode << 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_is_its_bit_and_round_trips() {
        for index in [16, 17, 23, 24, 25, 30, 31] {
            let flags = IoFlags::from_cdw12(1 << index).expect("not plane mode 3");
            assert_ne!(flags, IoFlags::default(), "bit {index}");
            assert_eq!(flags.to_cdw12(), 1 << index);
        }
        assert!(IoFlags::from_cdw12(1 << 25).expect("single plane").scramble_disable);
        assert!(IoFlags::from_cdw12(1 << 23).expect("single plane").suspend);
    }

    #[test]
    fn the_count_is_ignored_and_plane_mode_3_refused() {
        assert_eq!(IoFlags::from_cdw12(0x3F), Ok(IoFlags::default()));
        let error = IoFlags::from_cdw12(3 << 16).expect_err("reserved");
        assert!(error.to_string().contains("but it is 3"));
        let quad = IoFlags::from_cdw12(2 << 16).expect("quad");
        assert_eq!(quad.plane_mode.plane_count(), 4);
    }
}
