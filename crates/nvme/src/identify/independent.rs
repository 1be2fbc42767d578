//! I/O command set independent Identify Namespace (CNS 08h), 4096 bytes.
//!
//! What is true of a namespace whatever its command set. Source: NVMe base 2.0 figure 280.

use crate::wire::{ShortInput, fixed, put, u16_at, u32_at};

/// What every namespace says about itself. Fields that say nothing about these drives are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndependentNamespace {
    /// NSFEAT. Bit 3: the identifiers are never used again.
    pub nsfeat: u8,
    /// NMIC. Bit 0: several controllers may have it.
    pub nmic: u8,
    /// RESCAP: reservations.
    pub rescap: u8,
    /// FPI: format progress.
    pub fpi: u8,
    /// ANAGRPID: group of asymmetric access; 0 is none.
    pub anagrpid: u32,
    /// NSATTR. Bit 0: write protected.
    pub nsattr: u8,
    /// NVMSETID.
    pub nvmsetid: u16,
    /// ENDGID.
    pub endgid: u16,
    /// NSTAT. Bit 0: ready.
    pub nstat: u8,
}

impl IndependentNamespace {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;

    /// From the first 4096 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("the independent Identify Namespace", bytes)?;
        Ok(Self {
            nsfeat: bytes[0],
            nmic: bytes[1],
            rescap: bytes[2],
            fpi: bytes[3],
            anagrpid: u32_at(bytes, 4),
            nsattr: bytes[8],
            nvmsetid: u16_at(bytes, 10),
            endgid: u16_at(bytes, 12),
            nstat: bytes[14],
        })
    }

    /// The 4096 bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&[self.nsfeat, self.nmic, self.rescap, self.fpi]);
        put(&mut bytes, 4, &self.anagrpid.to_le_bytes());
        bytes[8] = self.nsattr;
        put(&mut bytes, 10, &self.nvmsetid.to_le_bytes());
        put(&mut bytes, 12, &self.endgid.to_le_bytes());
        bytes[14] = self.nstat;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let mut bytes = [0; 4096];
        bytes[..15].copy_from_slice(&[1, 2, 3, 4, 5, 0, 0, 0, 6, 0, 7, 0, 8, 0, 9]);
        let namespace = IndependentNamespace::decode(&bytes).expect("4096 bytes");
        let expected = IndependentNamespace {
            nsfeat: 1,
            nmic: 2,
            rescap: 3,
            fpi: 4,
            anagrpid: 5,
            nsattr: 6,
            nvmsetid: 7,
            endgid: 8,
            nstat: 9,
        };
        assert_eq!(namespace, expected);
        assert_eq!(namespace.encode(), bytes);
        assert!(IndependentNamespace::decode(&bytes[1..]).is_err());
    }
}
