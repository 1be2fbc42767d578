//! The Media Feedback feature (CAh): whether reads may complete with High ECC.
//!
//! Off means that High ECC is never reported. The value does not survive a power cycle. Source: OCSSD 2.0 section 3.4.

use crate::wire::{bit, flag};

/// The feature's value: CDW11 of Set Features, DW0 of the completion of Get Features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaFeedback {
    /// HECC, bit 0: scalar reads may complete with High ECC.
    pub hecc: bool,
    /// VHECC, bit 1: vector reads may complete with High ECC.
    pub vhecc: bool,
}

impl MediaFeedback {
    /// From the dword; reserved bits are ignored.
    pub fn from_dword(dword: u32) -> Self {
        Self { hecc: bit(dword, 0), vhecc: bit(dword, 1) }
    }

    /// The dword.
    pub fn to_dword(self) -> u32 {
        flag(self.hecc, 0) | flag(self.vhecc, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hecc_is_bit_0_and_vhecc_is_bit_1() {
        assert_eq!(MediaFeedback::from_dword(1), MediaFeedback { hecc: true, vhecc: false });
        assert_eq!(MediaFeedback::from_dword(0xFFFF_FFFE), MediaFeedback { hecc: false, vhecc: true });
        for dword in 0..4 {
            assert_eq!(MediaFeedback::from_dword(dword).to_dword(), dword);
        }
    }
}
