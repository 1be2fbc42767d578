//! The media table of a 1.2 group: the chip's identity, and how MLC pages pair.
//!
//! ```text
//! byte 0  id[8]     8  pair count (u16)     10..896  one byte per pair: lower-page increment 3:0, upper offset 7:4
//! ```
//! A page of a pair can be read safely only after its partner is written, which is where MW_CUNITS of 2.0 comes from.
//! Source: OCSSD 1.2 section 3.1, media table for MLC.

use crate::wire::{array_at, put, u16_at};

/// Chip identity and page pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaTable {
    /// The chip's identity, as it answers to Read ID.
    pub id: [u8; 8],
    /// The pairs, at most [`MediaTable::PAIRS_MAX`].
    pub pairs: Vec<PagePair>,
}

/// One pair of pages, relative to the pair before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePair {
    /// How far the lower page is after the lower page of the pair before, 1 to 16.
    pub lower_increment: u8,
    /// The upper page's offset, 0 to 15.
    pub upper_offset: u8,
}

impl PagePair {
    /// From the pair's byte. An increment of 0 means 16.
    fn from_bits(bits: u8) -> Self {
        let increment = bits & 0xF;
        Self { lower_increment: if increment == 0 { 16 } else { increment }, upper_offset: bits >> 4 }
    }

    /// The pair's byte.
    fn to_bits(self) -> u8 {
        let Self { lower_increment, upper_offset } = self;
        assert!(
            (1..=16).contains(&lower_increment),
            "a lower page is 1 to 16 further, not {lower_increment}"
        );
        assert!(upper_offset < 16, "an upper page offset is 0 to 15, not {upper_offset}");
        upper_offset << 4 | lower_increment & 0xF
    }
}

impl MediaTable {
    /// Size on the wire, bytes: from byte 64 of a group descriptor to its end.
    pub const BYTES: usize = 896;
    /// Most pairs: the bytes left after identity and count.
    pub const PAIRS_MAX: usize = Self::BYTES - 10;

    /// From the 896 bytes; the error is the pair count when it is more than fit.
    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, u16> {
        let count = u16_at(bytes, 8);
        let pairs = bytes[10..].get(..usize::from(count)).ok_or(count)?;
        Ok(Self {
            id: array_at(bytes, 0),
            pairs: pairs.iter().map(|byte| PagePair::from_bits(*byte)).collect(),
        })
    }

    /// The 896 bytes.
    ///
    /// # Panics
    /// If there are more than [`MediaTable::PAIRS_MAX`] pairs, or a pair's values do not fit.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let count = self.pairs.len();
        assert!(count <= Self::PAIRS_MAX, "a media table holds {} pairs, not {count}", Self::PAIRS_MAX);
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.id);
        put(&mut bytes, 8, &u16::try_from(count).expect("at most 886").to_le_bytes());
        for (byte, pair) in bytes[10..].iter_mut().zip(&self.pairs) {
            *byte = pair.to_bits();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_sit_after_the_count_and_16_is_stored_as_0() {
        let mut bytes = [0; 896];
        bytes[0] = 0x2C;
        bytes[8] = 2;
        bytes[10..12].copy_from_slice(&[0x41, 0xF0]);
        let pairs = vec![
            PagePair { lower_increment: 1, upper_offset: 4 },
            PagePair { lower_increment: 16, upper_offset: 15 },
        ];
        let table = MediaTable { id: [0x2C, 0, 0, 0, 0, 0, 0, 0], pairs };
        assert_eq!(MediaTable::decode(&bytes).as_ref(), Ok(&table));
        assert_eq!(table.encode(), bytes);
    }

    #[test]
    fn more_pairs_than_fit_are_refused() {
        let mut bytes = [0; 896];
        put(&mut bytes, 8, &886u16.to_le_bytes());
        assert!(MediaTable::decode(&bytes).is_ok());
        put(&mut bytes, 8, &887u16.to_le_bytes());
        assert_eq!(MediaTable::decode(&bytes), Err(887));
    }
}
