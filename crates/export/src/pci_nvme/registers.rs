//! The controller's registers in BAR0, without doorbells.
//!
//! ```text
//! 0000h  CAP, VS, INTMS, INTMC, CC, CSTS, AQA, ASQ, ACQ     2000h  MSI-X table
//! 1000h  doorbells, 4 bytes each: SQ0T, CQ0H, SQ1T, ...     3000h  MSI-X pending bits
//! ```
//! Source: NVMe base 1.4 section 3.1.

use super::prp::PAGE_BYTES;
use super::queue::ENTRIES_MAX;
use ocssd_nvme::HostAddress;
use ocssd_nvme::fabrics::{Capabilities, Configuration, ControllerStatus};

/// The size of BAR0, bytes.
pub const BAR0_BYTES: u64 = 0x4000;
/// Where doorbells begin (CAP.DSTRD = 0).
pub(super) const DOORBELLS: u64 = 0x1000;
/// Where the MSI-X table is.
pub(super) const MSIX_TABLE: u32 = 0x2000;
/// Where the MSI-X pending bits are.
pub(super) const MSIX_PENDING: u32 = 0x3000;
/// What of BAR0 registers take.
const REGISTERS_BYTES: usize = 0x38;
/// CC.CSS: all command sets there are (NVMe base 2.0 figure 46).
const COMMAND_SETS: u32 = 0b110;
/// CAP.TO: ready within 10 s, in units of 500 ms; it is at once.
const TIMEOUT: u8 = 20;

/// Offsets (NVMe base 1.4 figure 68).
mod offset {
    pub(super) const CAP: usize = 0x00;
    pub(super) const VS: usize = 0x08;
    pub(super) const INTMS: usize = 0x0C;
    pub(super) const INTMC: usize = 0x10;
    pub(super) const CC: usize = 0x14;
    pub(super) const CSTS: usize = 0x1C;
    pub(super) const AQA: usize = 0x24;
    pub(super) const ASQ: usize = 0x28;
    pub(super) const ACQ: usize = 0x30;
}

/// What a write to a register asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControllerChange {
    /// CC.EN was set.
    Enable,
    /// CC.EN was cleared.
    Disable,
    /// CC.SHN asks for a shutdown.
    ShutDown,
}

/// Queues as AQA, ASQ and ACQ describe them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AdminQueues {
    pub(super) submission: (HostAddress, u32),
    pub(super) completion: (HostAddress, u32),
}

/// What never changes of a controller's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// VS.
    pub(super) version: u32,
    /// Command sets beside that of blocks can be asked for (CAP.CSS bit 6).
    command_sets: bool,
}

impl Shape {
    /// NVMe 1.4.0 with the command set of blocks, which LightNVM's is based on.
    pub(super) const NVM_1_4: Self = Self { version: 0x0001_0400, command_sets: false };
    /// NVMe 2.0.0 with all command sets.
    pub(super) const ALL_2_0: Self = Self { version: 0x0002_0000, command_sets: true };
}

/// The registers.
#[derive(Clone, Debug)]
pub(super) struct Registers {
    shape: Shape,
    /// Kept for who reads it: vectors of MSI-X are masked by MSI-X alone.
    interrupt_mask: u32,
    cc: u32,
    pub(super) csts: ControllerStatus,
    aqa: u32,
    asq: u64,
    acq: u64,
}

impl Registers {
    /// As after power-on.
    pub(super) fn new(shape: Shape) -> Self {
        let (csts, interrupt_mask, cc) = (ControllerStatus::default(), 0, 0);
        Self { shape, interrupt_mask, cc, csts, aqa: 0, asq: 0, acq: 0 }
    }

    /// Their bytes.
    pub(super) fn read(&self, at: usize) -> u8 {
        let capabilities = Capabilities {
            mqes: u16::try_from(ENTRIES_MAX - 1).expect("at most 65536 entries"),
            timeout: TIMEOUT,
            nvm: true,
            command_sets: self.shape.command_sets,
        };
        let mut bytes = [0; REGISTERS_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(offset::CAP, &capabilities.to_bits().to_le_bytes());
        put(offset::VS, &self.shape.version.to_le_bytes());
        put(offset::INTMS, &self.interrupt_mask.to_le_bytes());
        put(offset::INTMC, &self.interrupt_mask.to_le_bytes());
        put(offset::CC, &self.cc.to_le_bytes());
        put(offset::CSTS, &self.csts.to_bits().to_le_bytes());
        put(offset::AQA, &self.aqa.to_le_bytes());
        put(offset::ASQ, &self.asq.to_le_bytes());
        put(offset::ACQ, &self.acq.to_le_bytes());
        bytes.get(at).copied().unwrap_or(0)
    }

    /// A dword is written. What is no register, or can only be read, stays.
    pub(super) fn write(&mut self, at: usize, value: u32) -> Option<ControllerChange> {
        match at {
            offset::INTMS => self.interrupt_mask |= value,
            offset::INTMC => self.interrupt_mask &= !value,
            offset::CC => return self.configure(value),
            // Reserved bits are dropped.
            offset::AQA => self.aqa = value & 0x0FFF_0FFF,
            offset::ASQ => self.asq = self.asq & !0xFFFF_FFFF | u64::from(value & !0xFFF),
            offset::ACQ => self.acq = self.acq & !0xFFFF_FFFF | u64::from(value & !0xFFF),
            at if at == offset::ASQ + 4 => self.asq = self.asq & 0xFFFF_FFFF | u64::from(value) << 32,
            at if at == offset::ACQ + 4 => self.acq = self.acq & 0xFFFF_FFFF | u64::from(value) << 32,
            _ => {}
        }
        None
    }

    fn configure(&mut self, value: u32) -> Option<ControllerChange> {
        let (before, after) = (Configuration::from_bits(self.cc), Configuration::from_bits(value));
        self.cc = value;
        let asks = |configuration: Configuration| matches!(configuration.shutdown, 1 | 2);
        match (before.enable, after.enable) {
            (false, true) => Some(ControllerChange::Enable),
            (true, false) => Some(ControllerChange::Disable),
            _ if asks(after) && !asks(before) => Some(ControllerChange::ShutDown),
            _ => None,
        }
    }

    /// The admin queues, if the controller can begin with what CC, AQA, ASQ and ACQ say: pages of 4096 bytes, a choice of
    /// command sets that there is, round robin, entries of 64 and 16 bytes, queues of at least two entries.
    pub(super) fn admin_queues(&self) -> Option<AdminQueues> {
        // CSS bits 6:4, MPS 10:7, AMS 13:11, IOSQES 19:16, IOCQES 23:20. Entry sizes may be set later (0).
        let (iosqes, iocqes) = (self.cc >> 16 & 0xF, self.cc >> 20 & 0xF);
        let sizes = matches!(iosqes, 0 | 6) && matches!(iocqes, 0 | 4);
        let (asqs, acqs) = (self.aqa & 0xFFF, self.aqa >> 16 & 0xFFF);
        let css = self.cc >> 4 & 7;
        let is_known = css == 0 || css == COMMAND_SETS && self.shape.command_sets;
        if self.cc & 0x3F80 != 0 || !is_known || !sizes || asqs == 0 || acqs == 0 {
            return None;
        }
        assert!(
            self.asq.is_multiple_of(PAGE_BYTES) && self.acq.is_multiple_of(PAGE_BYTES),
            "low bits are dropped"
        );
        Some(AdminQueues {
            submission: (HostAddress(self.asq), asqs + 1),
            completion: (HostAddress(self.acq), acqs + 1),
        })
    }

    /// CC says how large entries of I/O queues are.
    pub(super) fn has_entry_sizes(&self) -> bool {
        self.cc >> 16 & 0xFF == 0x46
    }

    /// What a controller reset leaves: AQA, ASQ, ACQ, and CC as it was written.
    pub(super) fn reset(&mut self) {
        self.csts = ControllerStatus::default();
        self.interrupt_mask = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dword(registers: &Registers, at: usize) -> u32 {
        u32::from_le_bytes([0, 1, 2, 3].map(|byte| registers.read(at + byte)))
    }

    #[test]
    fn capabilities_and_version_are_those_of_nvme_1_4() {
        let registers = Registers::new(Shape::NVM_1_4);
        assert_eq!((dword(&registers, 0), dword(&registers, 4)), (0x1401_03FF, 0x20));
        assert_eq!((dword(&registers, 8), dword(&registers, 0x1000)), (0x0001_0400, 0));
    }

    #[test]
    fn addresses_are_written_by_halves_and_lose_their_low_bits() {
        let mut registers = Registers::new(Shape::NVM_1_4);
        for (at, value) in
            [(0x28, 0x1234_5FFF), (0x2C, 7), (0x30, 0x8000), (0x24, 0xFFFF_FFFF), (0x14, 0x46_0001)]
        {
            registers.write(at, value);
        }
        assert_eq!(registers.write(0, 5), None, "CAP can only be read");
        let queues = registers.admin_queues().unwrap();
        assert_eq!(queues.submission, (HostAddress(0x7_1234_5000), 4096));
        assert_eq!(queues.completion, (HostAddress(0x8000), 4096));
        assert_eq!((dword(&registers, 0x24), dword(&registers, 0x2C)), (0x0FFF_0FFF, 7));
    }

    #[test]
    fn what_the_controller_cannot_be_is_no_beginning() {
        for (cc, aqa) in [
            (0x46_0081, 0x1F_001F),
            (0x46_0011, 0x1F_001F),
            (0x46_0801, 0x1F_001F),
            (0x45_0001, 0x1F_001F),
            (0x46_0001, 0x1F_0000),
            (0x46_0001, 0x1F),
        ] {
            let mut registers = Registers::new(Shape::NVM_1_4);
            registers.write(0x24, aqa);
            assert_eq!(registers.write(0x14, cc), Some(ControllerChange::Enable));
            assert_eq!(registers.admin_queues(), None, "{cc:#x} {aqa:#x}");
        }
    }

    #[test]
    fn changes_of_cc_are_wishes_once() {
        let mut registers = Registers::new(Shape::NVM_1_4);
        let wishes = [0x46_0000, 0x46_0001, 0x46_0001, 0x46_4001, 0x46_4001, 0x46_0000]
            .map(|cc| registers.write(0x14, cc));
        let (enable, shut_down, disable) = (
            Some(ControllerChange::Enable),
            Some(ControllerChange::ShutDown),
            Some(ControllerChange::Disable),
        );
        assert_eq!(wishes, [None, enable, None, shut_down, None, disable]);
        registers.write(0x0C, 0b110);
        registers.write(0x10, 0b010);
        assert_eq!(dword(&registers, 0x0C), 0b100);
    }
}
