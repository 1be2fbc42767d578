//! The 16-byte range of Dataset Management. With AD set, one range is one whole chunk to reset.
//!
//! Source: NVMe 1.4 section 6.7, figure "Dataset Management - Range Definition"; OCSSD 2.0 section 4.

use crate::address::Lba;
use crate::wire::{ShortInput, fixed, put, u32_at, u64_at};

/// One range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DsmRange {
    /// Context attributes: advice, which these drives do not use.
    pub cattr: u32,
    /// Length in logical blocks (not 0-based). All 32 bits count.
    pub nlb: u32,
    /// First logical block.
    pub slba: Lba,
}

impl DsmRange {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 16;

    /// From the first 16 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("a dataset management range", bytes)?;
        Ok(Self { cattr: u32_at(bytes, 0), nlb: u32_at(bytes, 4), slba: Lba(u64_at(bytes, 8)) })
    }

    /// The 16 bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.cattr.to_le_bytes());
        put(&mut bytes, 4, &self.nlb.to_le_bytes());
        put(&mut bytes, 8, &self.slba.0.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let bytes = [1, 0, 0, 0, 0x00, 0x18, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0];
        let range = DsmRange { cattr: 1, nlb: 6144, slba: Lba(1 << 26) };
        assert_eq!(DsmRange::decode(&bytes), Ok(range));
        assert_eq!(range.encode(), bytes);
        assert!(DsmRange::decode(&bytes[1..]).is_err());
    }
}
