//! The 16 bytes beside every sector: `struct pblk_sec_meta`. On drives with fewer, the last sector of every write unit
//! holds those of the unit, one after the other ("packed metadata").

/// Bytes of an entry.
pub const SECTOR_META_BYTES: usize = 16;
/// No logical address: `ADDR_EMPTY`.
pub const ADDR_EMPTY: u64 = u64::MAX;

/// What lies beside a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorMeta {
    /// The logical address; none of padding and smeta.
    pub lba: Option<u64>,
}

impl SectorMeta {
    /// The entry; its reserved half is zero.
    #[must_use]
    pub fn encode(self) -> [u8; SECTOR_META_BYTES] {
        assert_ne!(self.lba, Some(ADDR_EMPTY), "an address that means none");
        let mut bytes = [0; SECTOR_META_BYTES];
        bytes[8..].copy_from_slice(&self.lba.unwrap_or(ADDR_EMPTY).to_le_bytes());
        bytes
    }

    /// Reads an entry; `None` if there are not enough bytes for one. Linux does not set the reserved half.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let lba = bytes.get(8..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))?;
        Some(Self { lba: Some(lba).filter(|&lba| lba != ADDR_EMPTY) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_comes_back_from_any_reserved_half() {
        for lba in [None, Some(0), Some(u64::MAX - 1)] {
            let mut bytes = SectorMeta { lba }.encode();
            assert_eq!(bytes[..8], [0; 8]);
            bytes[..8].fill(0x5A);
            assert_eq!(SectorMeta::decode(&bytes), Some(SectorMeta { lba }));
        }
        assert_eq!(SectorMeta { lba: Some(0x0102) }.encode()[8..], [2, 1, 0, 0, 0, 0, 0, 0]);
        for length in 0..SECTOR_META_BYTES {
            assert_eq!(SectorMeta::decode(&[0; SECTOR_META_BYTES][..length]), None, "{length} bytes");
        }
    }
}
