//! The Error Recovery feature (05h): a time limit, and whether unwritten blocks are an error.
//!
//! Source: NVMe base 1.4 section 5.21.1.5; mandatory in OCSSD 2.0 section 3.4.

use crate::wire::{bit, flag, low_half};

/// The feature's value: CDW11 of Set Features, DW0 of the completion of Get Features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorRecovery {
    /// TLER, bits 15:0: how long to try, in units of 100 milliseconds; 0 is no limit.
    pub tler_100ms: u16,
    /// DULBE, bit 16: reads of deallocated or unwritten blocks fail with 287h. Without it they return predefined data.
    pub dulbe: bool,
}

impl ErrorRecovery {
    /// From the dword; reserved bits are ignored.
    pub fn from_dword(dword: u32) -> Self {
        Self { tler_100ms: low_half(dword), dulbe: bit(dword, 16) }
    }

    /// The dword.
    pub fn to_dword(self) -> u32 {
        u32::from(self.tler_100ms) | flag(self.dulbe, 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tler_is_the_low_half_and_dulbe_is_bit_16() {
        let value = ErrorRecovery { tler_100ms: 0x1234, dulbe: true };
        assert_eq!(value.to_dword(), 0x0001_1234);
        assert_eq!(ErrorRecovery::from_dword(0xFFFF_1234), value);
        assert!(!ErrorRecovery::from_dword(0xFFFE_0000).dulbe);
    }
}
