//! PCI configuration space: who the function is, its BAR, and its capabilities.
//!
//! ```text
//! 40h  power management     50h  MSI-X     60h  PCI Express (endpoint, function-level reset)
//! ```
//! Source: PCI Local Bus 3.0 chapter 6, PCI Express Base 3.0 section 7.8, NVMe base 1.4 section 2.

use super::interrupts::VECTORS;
use super::registers::{BAR0_BYTES, MSIX_PENDING, MSIX_TABLE};

/// Size of the space, bytes: that of a function of PCI Express, whose extended part (from 100h) is empty.
pub const CONFIG_BYTES: usize = 4096;

/// Where the capabilities are.
const POWER: usize = 0x40;
const MSIX: usize = 0x50;
const EXPRESS: usize = 0x60;
/// Device Control of the PCI Express capability: bit 15 begins a function-level reset.
const DEVICE_CONTROL: usize = EXPRESS + 8;

/// Whose drive it says it is. Linux 4.4 to 5.14 takes both for open-channel drives (`drivers/nvme/host/pci.c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PciId {
    /// 1D1D:1F1F, QEMU's.
    #[default]
    Qemu,
    /// 1D1D:2807, CNEX Labs' WestLake.
    Cnex,
    /// 1D1D:0C55: targets, which no driver knows by their number but every NVMe driver by their class (device number chosen).
    Targets,
}

impl PciId {
    const fn device(self) -> u16 {
        match self {
            Self::Qemu => 0x1F1F,
            Self::Cnex => 0x2807,
            Self::Targets => 0x0C55,
        }
    }
}

/// The space.
#[derive(Clone)]
pub(super) struct ConfigSpace {
    bytes: Vec<u8>,
    /// Which bits can be written.
    mask: Vec<u8>,
}

impl std::fmt::Debug for ConfigSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigSpace").finish_non_exhaustive()
    }
}

impl ConfigSpace {
    /// After power-on.
    pub(super) fn new(id: PciId) -> Self {
        let mut space = Self { bytes: vec![0; CONFIG_BYTES], mask: vec![0; CONFIG_BYTES] };
        space.header(id);
        // Capability 01h, version 3, state D0 to D3 in PMCSR bits 1:0; it keeps what it has (bit 3, no soft reset).
        space.put(POWER, &[0x01, u8::try_from(MSIX).expect("a byte"), 0x03, 0x00, 0x08, 0x00]);
        space.mask[POWER + 4] = 0x03;
        // Capability 11h: the size is 0-based; enable (15) and function mask (14) can be written.
        space.put(MSIX, &[0x11, u8::try_from(EXPRESS).expect("a byte")]);
        space.put(MSIX + 2, &(VECTORS - 1).to_le_bytes());
        space.put(MSIX + 4, &MSIX_TABLE.to_le_bytes());
        space.put(MSIX + 8, &MSIX_PENDING.to_le_bytes());
        space.mask[MSIX + 3] = 0xC0;
        space.express();
        space
    }

    fn header(&mut self, id: PciId) {
        self.put(0x00, &ocssd_nvme::identify::VENDOR_OCSSD.to_le_bytes());
        self.put(0x02, &id.device().to_le_bytes());
        // Command: memory space (1), bus master (2), parity and SERR (6, 8), INTx disable (10).
        self.put_mask(0x04, &0x0546u16.to_le_bytes());
        // Status: there is a list of capabilities (4).
        self.put(0x06, &0x0010u16.to_le_bytes());
        // Class 01h mass storage, subclass 08h non-volatile memory, interface 02h NVM Express; revision 1.
        self.put(0x08, &[0x01, 0x02, 0x08, 0x01]);
        // Cache line size can be written and means nothing.
        self.mask[0x0C] = 0xFF;
        // BAR0: memory of 64 bits (bits 2:1 = 10b), not prefetchable.
        self.put(0x10, &[0x04]);
        self.put_mask(0x10, &(!(BAR0_BYTES - 1)).to_le_bytes());
        self.put(0x2C, &ocssd_nvme::identify::VENDOR_OCSSD.to_le_bytes());
        self.put(0x2E, &id.device().to_le_bytes());
        self.put(0x34, &[u8::try_from(POWER).expect("a byte")]);
        // Interrupt line; no pin (3Dh = 0).
        self.mask[0x3C] = 0xFF;
    }

    /// Capability 10h, version 2, endpoint; as a link of 8 GT/s and four lanes.
    fn express(&mut self) {
        self.put(EXPRESS, &[0x10, 0x00]);
        self.put(EXPRESS + 2, &0x0002u16.to_le_bytes());
        // Device capabilities: role-based errors (15), function-level reset (28).
        self.put(EXPRESS + 4, &(1u32 << 28 | 1 << 15).to_le_bytes());
        self.put_mask(DEVICE_CONTROL, &0x7FFFu16.to_le_bytes());
        // Link capabilities: speed 3 (3:0), width 4 (9:4); link status says the same.
        self.put(EXPRESS + 0x0C, &0x0000_0043u32.to_le_bytes());
        self.put_mask(EXPRESS + 0x10, &0x0003u16.to_le_bytes());
        self.put(EXPRESS + 0x12, &0x0043u16.to_le_bytes());
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn put_mask(&mut self, at: usize, bytes: &[u8]) {
        self.mask[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Bytes of it, zeros beyond its end.
    pub(super) fn read(&self, at: usize, into: &mut [u8]) {
        for (index, byte) in into.iter_mut().enumerate() {
            *byte = self.bytes.get(at.saturating_add(index)).copied().unwrap_or(0);
        }
    }

    /// Writes what can be written. True if a function-level reset was asked for.
    pub(super) fn write(&mut self, at: usize, from: &[u8]) -> bool {
        for (index, &byte) in from.iter().enumerate() {
            let Some(place) = at.checked_add(index).filter(|&place| place < CONFIG_BYTES) else { break };
            self.bytes[place] = self.bytes[place] & !self.mask[place] | byte & self.mask[place];
        }
        let high = DEVICE_CONTROL + 1;
        let named = high.checked_sub(at).and_then(|index| from.get(index));
        named.is_some_and(|byte| byte & 0x80 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(space: &ConfigSpace, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        space.read(at, &mut bytes);
        bytes
    }

    #[test]
    fn linux_finds_an_open_channel_drive() {
        for (id, device) in [(PciId::Qemu, 0x1F1F_1D1D), (PciId::Cnex, 0x2807_1D1D)] {
            let space = ConfigSpace::new(id);
            assert_eq!(u32::from_le_bytes(bytes(&space, 0)), device);
            assert_eq!(u32::from_le_bytes(bytes(&space, 8)) >> 8, 0x01_08_02);
        }
    }

    #[test]
    fn the_size_of_the_bar_is_found_by_writing_ones() {
        let mut space = ConfigSpace::new(PciId::Qemu);
        space.write(0x10, &[0xFF; 8]);
        assert_eq!(u64::from_le_bytes(bytes(&space, 0x10)) & !0xF, !(BAR0_BYTES - 1));
        space.write(0, &[0xFF; 4]);
        assert_eq!(bytes(&space, 0), [0x1D, 0x1D, 0x1F, 0x1F], "the name can only be read");
    }

    #[test]
    fn every_capability_is_reached_and_the_list_ends() {
        let space = ConfigSpace::new(PciId::Qemu);
        let [mut at] = bytes::<1>(&space, 0x34);
        let mut found = Vec::new();
        while at != 0 {
            let [id, next] = bytes(&space, at.into());
            found.push(id);
            at = next;
        }
        assert_eq!(found, [0x01, 0x11, 0x10]);
    }

    #[test]
    fn a_function_level_reset_is_one_bit_that_reads_as_zero() {
        let mut space = ConfigSpace::new(PciId::Qemu);
        assert!(!space.write(DEVICE_CONTROL, &[0xFF, 0x7F]));
        assert!(space.write(DEVICE_CONTROL, &[0, 0x80]) && space.write(DEVICE_CONTROL + 1, &[0x80]));
        assert_eq!(bytes(&space, DEVICE_CONTROL + 1), [0]);
        assert!(!space.write(CONFIG_BYTES - 1, &[1; 8]) && !space.write(usize::MAX, &[1; 8]));
    }
}
