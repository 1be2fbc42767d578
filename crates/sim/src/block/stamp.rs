//! What blocks are filled with: the number of the block and of the write, repeated to the block's end, so that a block of
//! another place, an old one and a mixed one are told apart.
//!
//! Of a sector on media it says which version of which block it is, or that it is none: a target's own records, which hold a mark
//! hardly ever. Deliberately not here: what a block may hold (`history`).

use crate::contract::Broken;

/// Which version of which block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The block; 0 of zeroes.
    pub block: u64,
    /// The number of the write; 0 of zeroes.
    pub write: u64,
}

/// Marks the block's number (chosen: "SI" in ASCII; records of targets begin with numbers that are small, or checksums).
const MARK: u64 = 0x5349 << 48;

/// Fills a block.
pub fn fill(place: &mut [u8], stamp: Stamp) {
    assert!(stamp.write > 0 && stamp.block < 1 << 48, "{stamp:?} is filled with");
    for pair in place.chunks_exact_mut(16) {
        pair[..8].copy_from_slice(&(stamp.block | MARK).to_le_bytes());
        pair[8..].copy_from_slice(&stamp.write.to_le_bytes());
    }
}

/// The version a whole block is; `None` of anything else.
pub fn of(bytes: &[u8]) -> Option<Stamp> {
    let (marked, write) = pair(bytes);
    let is_whole = bytes.chunks_exact(16).all(|pair| pair == &bytes[..16]);
    match (is_whole, marked ^ MARK) {
        (true, MARK) if write == 0 => Some(Stamp { block: 0, write }),
        (true, block) if block < 1 << 48 && write > 0 => Some(Stamp { block, write }),
        _ => None,
    }
}

/// The write that `block`'s content is of, 0 for zeroes.
///
/// # Errors
/// If it is of another block, or of several writes.
pub fn read(bytes: &[u8], block: u64) -> Result<u64, Broken> {
    if let Some(found) = of(bytes).filter(|found| found.write == 0 || found.block == block) {
        return Ok(found.write);
    }
    let (marked, write) = pair(bytes);
    let whole = if of(bytes).is_some() { "whole" } else { "mixed" };
    let found = format!("content of block {}, write {write}, {whole}", marked ^ MARK);
    let promised = format!("block {block} holds a write of its own, whole, or zeroes");
    Err(Broken::new("own content, whole", promised, found))
}

fn pair(bytes: &[u8]) -> (u64, u64) {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    (word(&bytes[..8]), word(&bytes[8..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_told_by_its_content() {
        let mut block = [0; 64];
        assert_eq!(of(&block), Some(Stamp { block: 0, write: 0 }));
        let stamp = Stamp { block: 7, write: 3 };
        fill(&mut block, stamp);
        assert_eq!((of(&block), read(&block, 7)), (Some(stamp), Ok(3)));
        let other = read(&block, 6).expect_err("it is of another block");
        assert!(other.found.contains("block 7, write 3, whole"), "{other}");
        block[40] ^= 1;
        assert_eq!(of(&block), None);
        let mixed = read(&block, 7).expect_err("it is of no write");
        assert!(mixed.found.contains("mixed"), "{mixed}");
        // A record of a discard: a block and a count, without the mark.
        let mut record = [0; 16];
        (record[0], record[8]) = (7, 3);
        assert_eq!(of(&record), None);
    }
}
