//! What a volume keeps about itself: one block that says what it is, and one for each file.
//!
//! A record is a block, so that any target writes it as a whole or not at all. Everything is little-endian. Deliberately not
//! here: which grains are free, which follows from all records (`grains`).

use crate::blocks::{BLOCK_BYTES, Block, zeroes};
use std::ops::Range;

/// Records of a volume (chosen: a few databases, each with a journal or a log).
pub const RECORDS: u64 = 64;
/// Blocks of a grain, the unit of allocation (chosen: 64 KiB, two programs of a small drive).
pub const GRAIN_BLOCKS: u64 = 16;
/// The first block of grain 0: the volume's own block and the records lie before.
pub const FIRST_GRAIN_BLOCK: u64 = 1 + RECORDS;
/// Bytes of a name: what SQLite takes (`mxPathname`).
pub const NAME_BYTES_MAX: usize = 512;

const VOLUME_MAGIC: &[u8; 8] = b"OCSQLvol";
const RECORD_MAGIC: &[u8; 8] = b"OCSQLrec";
const VERSION: u32 = 1;
/// Where the checksum stands, and what it covers begins.
const CRC_AT: usize = 8;
const COVERED_FROM: usize = 12;
const EXTENTS_AT: usize = 32 + NAME_BYTES_MAX;
/// Extents that fit behind the name: 8 bytes each.
pub const EXTENTS_MAX: usize = (BLOCK_BYTES - EXTENTS_AT) / 8;

/// Grains that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// What the volume knows of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// Where they lie, in the file's order.
    pub extents: Vec<Extent>,
}

fn put(block: &mut Block, at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

fn get<const N: usize>(block: &Block, at: usize) -> [u8; N] {
    block[at..at + N].try_into().expect("a range of N bytes")
}

fn seal(mut block: Block) -> Block {
    let crc = crc32fast::hash(&block[COVERED_FROM..]);
    put(&mut block, CRC_AT, &crc.to_le_bytes());
    block
}

fn is_sealed(block: &Block, magic: &[u8; 8]) -> bool {
    get::<8>(block, 0) == *magic
        && u32::from_le_bytes(get(block, CRC_AT)) == crc32fast::hash(&block[COVERED_FROM..])
}

/// The block of a fresh volume of `blocks` blocks.
#[must_use]
pub fn volume_block(blocks: u64) -> Block {
    let mut block = zeroes();
    put(&mut block, 0, VOLUME_MAGIC);
    put(&mut block, 12, &VERSION.to_le_bytes());
    put(&mut block, 16, &blocks.to_le_bytes());
    seal(block)
}

/// What block 0 says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing was ever written.
    Nothing,
    /// A volume of so many blocks.
    Volume(u64),
    /// A volume of another version.
    OtherVersion(u32),
    /// Something else.
    Other,
}

/// Reads block 0.
#[must_use]
pub fn found(block: &Block) -> Found {
    if block.iter().all(|&byte| byte == 0) {
        return Found::Nothing;
    }
    if !is_sealed(block, VOLUME_MAGIC) {
        return Found::Other;
    }
    match u32::from_le_bytes(get(block, 12)) {
        VERSION => Found::Volume(u64::from_le_bytes(get(block, 16))),
        other => Found::OtherVersion(other),
    }
}

impl Record {
    /// Grains of the file.
    #[must_use]
    pub fn grains(&self) -> u64 {
        self.extents.iter().map(|extent| u64::from(extent.count)).sum()
    }

    /// The volume's block that holds block `nth` of the file, and how many follow in the same extent.
    #[must_use]
    pub fn place(&self, nth: u64) -> Option<(u64, u64)> {
        let mut left = nth;
        for extent in &self.extents {
            let blocks = u64::from(extent.count) * GRAIN_BLOCKS;
            if left < blocks {
                return Some((
                    FIRST_GRAIN_BLOCK + u64::from(extent.first) * GRAIN_BLOCKS + left,
                    blocks - left,
                ));
            }
            left -= blocks;
        }
        None
    }

    /// Puts grains at the end. False if the record has no room for one more extent.
    pub fn append(&mut self, grains: Range<u32>) -> bool {
        let count = grains.end - grains.start;
        if let Some(last) = self.extents.last_mut().filter(|last| last.first + last.count == grains.start) {
            last.count += count;
        } else if self.extents.len() == EXTENTS_MAX {
            return false;
        } else {
            self.extents.push(Extent { first: grains.start, count });
        }
        true
    }

    /// Keeps the first `grains` grains. Returns the others.
    pub fn keep(&mut self, grains: u64) -> Vec<Extent> {
        let (mut left, mut freed) = (grains, Vec::new());
        for extent in &mut self.extents {
            let kept = u32::try_from(left.min(u64::from(extent.count))).expect("at most its count");
            if kept < extent.count {
                freed.push(Extent { first: extent.first + kept, count: extent.count - kept });
            }
            extent.count = kept;
            left -= u64::from(kept);
        }
        self.extents.retain(|extent| extent.count > 0);
        freed
    }

    /// As a block.
    #[must_use]
    pub fn encode(&self) -> Block {
        assert!(self.name.len() <= NAME_BYTES_MAX, "{} bytes of a name", self.name.len());
        assert!(self.extents.len() <= EXTENTS_MAX, "{} extents", self.extents.len());
        let mut block = zeroes();
        let short = |number: usize| u16::try_from(number).expect("both are short").to_le_bytes();
        put(&mut block, 0, RECORD_MAGIC);
        put(&mut block, 12, &short(self.name.len()));
        put(&mut block, 14, &short(self.extents.len()));
        put(&mut block, 16, &self.bytes.to_le_bytes());
        put(&mut block, 32, self.name.as_bytes());
        for (nth, extent) in self.extents.iter().enumerate() {
            put(&mut block, EXTENTS_AT + 8 * nth, &extent.first.to_le_bytes());
            put(&mut block, EXTENTS_AT + 8 * nth + 4, &extent.count.to_le_bytes());
        }
        seal(block)
    }

    /// What a block says: no file if it is empty.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(block: &Block, grains: u64) -> Result<Option<Self>, String> {
        if block.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        if !is_sealed(block, RECORD_MAGIC) {
            return Err("it has no checksum of a record".to_owned());
        }
        let name_bytes = usize::from(u16::from_le_bytes(get(block, 12)));
        let count = usize::from(u16::from_le_bytes(get(block, 14)));
        if name_bytes > NAME_BYTES_MAX || count > EXTENTS_MAX {
            return Err(format!("it names {name_bytes} bytes of a name and {count} extents"));
        }
        let name = String::from_utf8(block[32..32 + name_bytes].to_vec());
        let name = name.map_err(|_| "its name is not UTF-8".to_owned())?;
        let number = |at| u32::from_le_bytes(get(block, at));
        let extents: Vec<Extent> = (0..count)
            .map(|nth| EXTENTS_AT + 8 * nth)
            .map(|at| Extent { first: number(at), count: number(at + 4) })
            .collect();
        let record = Self { name, bytes: u64::from_le_bytes(get(block, 16)), extents };
        let end = record.extents.iter().map(|extent| u64::from(extent.first) + u64::from(extent.count)).max();
        if end.unwrap_or(0) > grains || record.bytes > record.grains() * GRAIN_BLOCKS * BLOCK_BYTES as u64 {
            return Err(format!(
                "{} bytes of {} lie outside of its {grains} grains",
                record.bytes, record.name
            ));
        }
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_and_no_changed_byte_is_taken_for_one() {
        let mut record = Record { name: "app.db".to_owned(), bytes: 70_000, extents: Vec::new() };
        assert!(record.append(3..5) && record.append(5..6) && record.append(9..10));
        assert_eq!(record.extents, [Extent { first: 3, count: 3 }, Extent { first: 9, count: 1 }]);
        let block = record.encode();
        assert_eq!(Record::decode(&block, 10), Ok(Some(record.clone())));
        assert!(Record::decode(&block, 9).is_err(), "an extent ends behind the volume");
        assert_eq!(Record::decode(&zeroes(), 9), Ok(None));
        for at in 0..BLOCK_BYTES {
            let mut changed = block.clone();
            changed[at] ^= 0x40;
            assert!(Record::decode(&changed, 10).is_err(), "byte {at} was changed");
        }
    }

    #[test]
    fn what_is_cut_off_is_given_back() {
        let mut record = Record { name: String::new(), bytes: 0, extents: Vec::new() };
        assert!(record.append(3..6) && record.append(9..10));
        assert_eq!(record.keep(2), [Extent { first: 5, count: 1 }, Extent { first: 9, count: 1 }]);
        assert_eq!((record.place(31), record.place(32)), (Some((FIRST_GRAIN_BLOCK + 79, 1)), None));
    }

    #[test]
    fn block_0_says_what_it_is() {
        assert_eq!(found(&zeroes()), Found::Nothing);
        assert_eq!(found(&volume_block(77)), Found::Volume(77));
        let mut other = volume_block(77);
        other[16] ^= 1;
        assert_eq!(found(&other), Found::Other);
        let mut newer = volume_block(77);
        newer[12] = 2;
        assert_eq!(found(&seal(newer)), Found::OtherVersion(2));
    }
}
