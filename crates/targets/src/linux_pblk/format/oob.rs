//! The 16 bytes beside every sector: `struct pblk_sec_meta`. On drives with fewer, the last sector of every write unit
//! holds those of the unit, one after the other ("packed metadata").

use ocssd_base::usize_of;

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

/// Writes the entries of a unit's sectors, `stride` bytes apart; what is between them is zero.
///
/// # Panics
/// If there are more entries than places.
pub fn put_entries(out: &mut [u8], stride: usize, lbas: impl Iterator<Item = Option<u64>>) {
    assert!(stride >= SECTOR_META_BYTES, "{stride} bytes beside a sector hold no entry");
    out.fill(0);
    let mut places = out.chunks_exact_mut(stride);
    for lba in lbas {
        let place = places.next().expect("there are as many places as sectors");
        place[..SECTOR_META_BYTES].copy_from_slice(&SectorMeta { lba }.encode());
    }
}

/// The logical address of a unit's sector, of entries that lie `stride` bytes apart; `None` if it has none.
#[must_use]
pub fn entry_lba(entries: &[u8], stride: usize, sector: u32) -> Option<u64> {
    let entry = entries.get(usize_of(sector) * stride..).and_then(SectorMeta::decode)?;
    entry.lba
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entries_of_a_unit_come_back() {
        for stride in [16, 40] {
            let mut bytes = vec![0xEE; 4 * stride];
            let lbas = [Some(7), None, Some(0)];
            put_entries(&mut bytes, stride, lbas.into_iter());
            for (sector, lba) in (0..).zip(lbas) {
                assert_eq!(entry_lba(&bytes, stride, sector), lba, "sector {sector}, stride {stride}");
            }
            assert!(bytes[3 * stride..].iter().all(|&byte| byte == 0), "no entry, no bytes");
            assert_eq!(entry_lba(&bytes, stride, 4), None, "behind the last");
        }
    }

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
