//! Controller properties: what registers are on PCI. Property Get, Property Set, and the fields of four of them.
//!
//! ```text
//! entry   CDW10  ATTRIB 2:0 (0: 4 bytes, 1: 8 bytes)     CDW11  OFST     CDW12-13  value (Set)
//! ```
//! Source: NVMe over Fabrics 1.1 figures 23 to 26; NVMe base 2.0 section 3.1.3.

use super::FabricsType;
use crate::sqe::Sqe;
use crate::wire::{bit, flag, join, split};

/// Where the properties are.
pub mod offset {
    /// CAP, 8 bytes.
    pub const CAP: u32 = 0x00;
    /// VS, 4 bytes.
    pub const VS: u32 = 0x08;
    /// CC, 4 bytes.
    pub const CC: u32 = 0x14;
    /// CSTS, 4 bytes.
    pub const CSTS: u32 = 0x1C;
}

/// Property Get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertyGet {
    /// The property has 8 bytes, not 4.
    pub is_long: bool,
    /// OFST: which.
    pub offset: u32,
}

/// Property Set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertySet {
    /// The property has 8 bytes, not 4.
    pub is_long: bool,
    /// OFST: which.
    pub offset: u32,
    /// The value.
    pub value: u64,
}

impl PropertyGet {
    /// The view of a Property Get entry.
    pub fn of(sqe: &Sqe) -> Self {
        Self { is_long: sqe.cdw10 & 7 == 1, offset: sqe.cdw11 }
    }
}

impl PropertySet {
    /// The view of a Property Set entry.
    pub fn of(sqe: &Sqe) -> Self {
        Self { is_long: sqe.cdw10 & 7 == 1, offset: sqe.cdw11, value: join(sqe.cdw12, sqe.cdw13) }
    }
}

impl Sqe {
    /// Property Get.
    pub fn property_get(get: PropertyGet) -> Self {
        let PropertyGet { is_long, offset } = get;
        Self { cdw10: u32::from(is_long), cdw11: offset, ..Self::fabrics(FabricsType::PROPERTY_GET) }
    }

    /// Property Set.
    pub fn property_set(set: PropertySet) -> Self {
        let PropertySet { is_long, offset, value } = set;
        let (cdw12, cdw13) = split(value);
        let sqe = Self::fabrics(FabricsType::PROPERTY_SET);
        Self { cdw10: u32::from(is_long), cdw11: offset, cdw12, cdw13, ..sqe }
    }
}

/// CAP, as far as a controller without registers has any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// MQES, bits 15:0: entries of a queue, 0-based as on the wire.
    pub mqes: u16,
    /// TO, bits 31:24: longest time to become ready, in units of 500 ms.
    pub timeout: u8,
    /// CSS bit 0 (37): the NVM command set.
    pub nvm: bool,
    /// CSS bit 6 (43): command sets by number, each namespace its own.
    pub command_sets: bool,
}

impl Capabilities {
    /// The 64 bits; CQR (16), queues in one piece, is always set.
    pub fn to_bits(self) -> u64 {
        u64::from(self.mqes)
            | 1 << 16
            | u64::from(self.timeout) << 24
            | u64::from(self.nvm) << 37
            | u64::from(self.command_sets) << 43
    }

    /// From the 64 bits.
    pub fn from_bits(bits: u64) -> Self {
        let [low, high, _, timeout, ..] = bits.to_le_bytes();
        Self {
            mqes: u16::from_le_bytes([low, high]),
            timeout,
            nvm: bits >> 37 & 1 == 1,
            command_sets: bits >> 43 & 1 == 1,
        }
    }
}

/// CC, the part that a host without registers uses. What it says of page and entry sizes is fixed on fabrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// EN, bit 0.
    pub enable: bool,
    /// SHN, bits 15:14: 1 and 2 ask for a shutdown.
    pub shutdown: u8,
}

impl Configuration {
    /// From the 32 bits.
    pub fn from_bits(bits: u32) -> Self {
        let shutdown = u8::from(bit(bits, 14)) | u8::from(bit(bits, 15)) << 1;
        Self { enable: bit(bits, 0), shutdown }
    }

    /// The 32 bits, with the entry sizes of NVMe (64 and 16 bytes).
    pub fn to_bits(self) -> u32 {
        flag(self.enable, 0) | u32::from(self.shutdown & 3) << 14 | 0x46_0000
    }
}

/// CSTS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerStatus {
    /// RDY, bit 0.
    pub ready: bool,
    /// CFS, bit 1: the controller is broken.
    pub fatal: bool,
    /// SHST, bits 3:2: 0 none, 1 on its way, 2 done.
    pub shutdown: u8,
}

impl ControllerStatus {
    /// From the 32 bits.
    pub fn from_bits(bits: u32) -> Self {
        let shutdown = u8::from(bit(bits, 2)) | u8::from(bit(bits, 3)) << 1;
        Self { ready: bit(bits, 0), fatal: bit(bits, 1), shutdown }
    }

    /// The 32 bits.
    pub fn to_bits(self) -> u32 {
        flag(self.ready, 0) | flag(self.fatal, 1) | u32::from(self.shutdown & 3) << 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_carry_offset_and_value() {
        let get = PropertyGet { is_long: true, offset: offset::CAP };
        let sqe = Sqe::property_get(get);
        assert_eq!((sqe.encode()[4], PropertyGet::of(&sqe)), (4, get));
        let set = PropertySet { is_long: false, offset: offset::CC, value: 0x46_0061 };
        let bytes = Sqe::property_set(set).encode();
        assert_eq!((bytes[0], bytes[4], bytes[44], bytes[48]), (0x7F, 0, 0x14, 0x61));
        assert_eq!(PropertySet::of(&Sqe::decode(&bytes)), set);
    }

    #[test]
    fn the_values_linux_writes_and_waits_for_are_understood() {
        assert_eq!(
            Configuration::from_bits(0x46_0061),
            Configuration { enable: true, shutdown: 0 },
            "it enables"
        );
        let stop = Configuration::from_bits(0x46_4061);
        assert_eq!(stop, Configuration { enable: true, shutdown: 1 }, "it shuts down");
        assert_eq!(Configuration::from_bits(stop.to_bits()), stop);
        let done = ControllerStatus { ready: true, fatal: false, shutdown: 2 };
        assert_eq!((done.to_bits(), ControllerStatus::from_bits(done.to_bits())), (9, done));
        let cap = Capabilities { mqes: 127, timeout: 10, nvm: true, command_sets: true };
        assert_eq!(cap.to_bits(), 0x0820_0A01_007F);
        assert_eq!(Capabilities::from_bits(cap.to_bits()), cap);
    }
}
