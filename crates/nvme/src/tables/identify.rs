//! Identify Namespace of the set (CNS 05h, CSI 32h), 4096 bytes. Its Identify Controller (CNS 06h) is all zeroes.
//!
//! Source: this project; the first fields lie where the Key Value Command Set has them.

use crate::wire::{ShortInput, array_at, fixed, put, u32_at, u64_at};

/// What a namespace of tables says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableNamespace {
    /// NSZE, byte 0: bytes of tables and logs that fit at least.
    pub nsze: u64,
    /// NSATTR, byte 43. Bit 0: write protected.
    pub nsattr: u8,
    /// NGUID, byte 48.
    pub nguid: [u8; 16],
    /// EUI64, byte 64.
    pub eui64: [u8; 8],
    /// Byte 72: bytes of a table or log.
    pub table_bytes_max: u64,
    /// Byte 80: tables and logs.
    pub tables_max: u32,
    /// Byte 84: bytes of attributes of one.
    pub attributes_bytes_max: u32,
    /// Byte 88: rows of an edit.
    pub edits_max: u32,
}

impl TableNamespace {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;

    /// From the first 4096 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("the Identify Namespace of tables", bytes)?;
        Ok(Self {
            nsze: u64_at(bytes, 0),
            nsattr: bytes[43],
            nguid: array_at(bytes, 48),
            eui64: array_at(bytes, 64),
            table_bytes_max: u64_at(bytes, 72),
            tables_max: u32_at(bytes, 80),
            attributes_bytes_max: u32_at(bytes, 84),
            edits_max: u32_at(bytes, 88),
        })
    }

    /// The 4096 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.nsze.to_le_bytes());
        bytes[43] = self.nsattr;
        put(&mut bytes, 48, &self.nguid);
        put(&mut bytes, 64, &self.eui64);
        put(&mut bytes, 72, &self.table_bytes_max.to_le_bytes());
        for (place, limit) in [self.tables_max, self.attributes_bytes_max, self.edits_max].iter().enumerate()
        {
            put(&mut bytes, 80 + 4 * place, &limit.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let mut bytes = [0; 4096];
        (bytes[0], bytes[43], bytes[48], bytes[64]) = (1, 3, 4, 5);
        (bytes[72], bytes[80], bytes[84], bytes[88]) = (6, 7, 8, 9);
        let found = TableNamespace::decode(&bytes).expect("4096 bytes");
        let limits = (found.table_bytes_max, found.tables_max, found.attributes_bytes_max, found.edits_max);
        assert_eq!((found.nsze, found.nsattr, found.nguid[0], found.eui64[0]), (1, 3, 4, 5));
        assert_eq!((limits, found.encode()), ((6, 7, 8, 9), bytes));
        assert!(TableNamespace::decode(&bytes[1..]).is_err());
    }
}
