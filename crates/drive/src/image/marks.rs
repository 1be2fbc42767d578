//! Marks of unreadable sectors, one bit each, in pages with their own checksum and the life of the chunk they are of.
//!
//! A page of an earlier life says nothing: a reset makes marks void by its record alone, so none can be lost between
//! the two. A mark at or above the write pointer says nothing either: the process ended before the write it belonged
//! to was recorded.

use super::layout::{MARKS_HEADER_BYTES, MARKS_PER_PAGE, PAGE};
use ocssd_lightnvm::ChunkId;

/// Bytes of a page.
pub(super) const BYTES: usize = 4096;
/// Bytes before the bits.
const HEADER: usize = 16;
/// Words of bits in a page.
const WORDS: usize = (BYTES - HEADER) / 8;

const _: () =
    assert!(BYTES as u64 == PAGE && HEADER as u64 == MARKS_HEADER_BYTES, "one size under two types");
const _: () = assert!(WORDS as u64 * 64 == MARKS_PER_PAGE, "one size under two types");

/// A page's name: it is checked, so that a page read from the wrong place is no page.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageName {
    pub(super) chunk: ChunkId,
    /// Which of the chunk's pages.
    pub(super) index: u32,
    /// The chunk's cycles when the marks were made.
    pub(super) life: u32,
}

fn crc(page: &[u8; BYTES]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&page[..12]);
    hasher.update(&page[HEADER..]);
    hasher.finalize()
}

/// Pages for all marks of a chunk, in order.
pub(super) fn encode(chunk: ChunkId, life: u32, bits: &[u64]) -> Vec<u8> {
    let mut pages = Vec::with_capacity(bits.len().div_ceil(WORDS) * BYTES);
    for (index, words) in (0u32..).zip(bits.chunks(WORDS)) {
        let mut page = [0; BYTES];
        for (place, number) in page.chunks_exact_mut(4).zip([chunk.0, index, life]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        for (place, word) in page[HEADER..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc(&page);
        page[12..HEADER].copy_from_slice(&crc.to_le_bytes());
        pages.extend_from_slice(&page);
    }
    pages
}

/// The words of a page; none if it was never written or belongs to another life.
///
/// # Errors
/// What is wrong with it, to complete "the marks of chunk 5 ...".
pub(super) fn decode(page: &[u8; BYTES], name: PageName) -> Result<Option<Vec<u64>>, String> {
    if page.iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    let number = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"));
    let (found, expected) = (number(12), crc(page));
    if found != expected {
        return Err(format!("have checksum {found:08x}, but their bytes give {expected:08x}"));
    }
    if (number(0), number(4)) != (name.chunk.0, name.index) {
        return Err(format!("say that they are page {} of chunk {}", number(4), number(0)));
    }
    if number(8) != name.life {
        return Ok(None);
    }
    let words = page[HEADER..].chunks_exact(8);
    Ok(Some(words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect()))
}

/// Clears every mark at or above `end`. True if there was one.
pub(super) fn trim(bits: &mut [u64], end: u32) -> bool {
    let mut trimmed = false;
    for (word, first) in bits.iter_mut().zip((0u64..).step_by(64)) {
        let kept = u64::from(end).saturating_sub(first).min(64);
        let mask = if kept == 64 { u64::MAX } else { (1 << kept) - 1 };
        trimmed |= *word & !mask != 0;
        *word &= mask;
    }
    trimmed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_their_pages_and_only_in_their_own_life() {
        let bits: Vec<u64> = (0..600).map(|word| word * 0x0101_0101).collect();
        let pages = encode(ChunkId(3), 8, &bits);
        assert_eq!(pages.len(), 2 * BYTES);
        let name = |index, life| PageName { chunk: ChunkId(3), index, life };
        let page = |index: usize| pages[index * BYTES..].first_chunk::<BYTES>().expect("two pages");
        assert_eq!(decode(page(0), name(0, 8)).expect("sound").expect("this life"), bits[..WORDS]);
        assert_eq!(decode(page(1), name(1, 8)).expect("sound").expect("this life")[..90], bits[WORDS..]);
        assert_eq!(decode(page(0), name(0, 9)), Ok(None));
        assert!(decode(page(0), name(1, 8)).expect_err("another page").contains("page 0 of chunk 3"));
        assert_eq!(decode(&[0; BYTES], name(0, 8)), Ok(None));
        let mut damaged = *page(0);
        damaged[100] ^= 4;
        assert!(decode(&damaged, name(0, 8)).expect_err("damaged").contains("checksum"));
    }

    #[test]
    fn marks_above_the_write_pointer_are_cleared() {
        for (end, expected, trimmed) in
            [(0, [0, 0], true), (1, [1, 0], true), (64, [u64::MAX, 0], true), (70, [u64::MAX, 63], false)]
        {
            let mut bits = [u64::MAX, 63];
            assert_eq!((trim(&mut bits, end), bits), (trimmed, expected), "{end}");
        }
    }
}
