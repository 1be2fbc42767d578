//! Which sectors of an image of stamps are whole: all their bytes are kept, in a region of their own.
//!
//! One bit a sector in memory, for chunks that have whole sectors; in the file the same pages as for marks of
//! unreadable sectors (see `marks`), with the life of the chunk they are of. So a reset takes all of them back by its
//! record alone, and an undone reset gives them back. Bits at or above the write pointer may be left from a write that a
//! power cut took back: a later write settles them before it is recorded.
//!
//! Deliberately not here: the bytes, and the file (`store`).

use ocssd_lightnvm::ChunkId;
use std::collections::BTreeMap;

/// The bits of a chunk in one of its lives.
#[derive(Clone, Debug)]
struct Flags {
    life: u32,
    bits: Vec<u64>,
}

/// The bits of all chunks that have whole sectors. Memory: one bit a sector for these chunks.
#[derive(Clone, Debug, Default)]
pub(super) struct WholeFlags(BTreeMap<ChunkId, Flags>);

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

/// The words that `count` sectors from `first` on touch, each with the mask of their bits.
fn masks(first: u32, count: u32) -> impl Iterator<Item = (usize, u64)> {
    let end = first + count;
    let words = if count == 0 { 0..0 } else { first / 64..end.div_ceil(64) };
    words.map(move |word| {
        let from = first.saturating_sub(word * 64);
        let until = (end - word * 64).min(64);
        (index(word), (u64::MAX << from) & (u64::MAX >> (64 - until)))
    })
}

impl WholeFlags {
    /// Takes over what was read from the file.
    pub(super) fn put(&mut self, chunk: ChunkId, life: u32, bits: Vec<u64>) {
        self.0.insert(chunk, Flags { life, bits });
    }

    /// The bits of a chunk in a life, if it had whole sectors in it.
    pub(super) fn bits(&self, chunk: ChunkId, life: u32) -> Option<&[u64]> {
        self.0.get(&chunk).filter(|flags| flags.life == life).map(|flags| flags.bits.as_slice())
    }

    /// Which of up to 64 sectors from `first` on are whole, as bits.
    pub(super) fn sectors(&self, chunk: ChunkId, life: u32, first: u32, count: u32) -> u64 {
        assert!(count <= 64, "{count} sectors do not fit 64 bits");
        let Some(bits) = self.bits(chunk, life) else { return 0 };
        let is_whole = |sector: u32| bits[index(sector / 64)] >> (sector % 64) & 1;
        (0..count).fold(0, |found, offset| found | is_whole(first + offset) << offset)
    }

    /// Sectors are whole from now on. `words` is the length of a chunk's bits.
    pub(super) fn set(&mut self, chunk: ChunkId, life: u32, (first, count): (u32, u32), words: usize) {
        let fresh = || Flags { life, bits: vec![0; words] };
        let flags = self.0.entry(chunk).or_insert_with(fresh);
        if flags.life != life {
            *flags = fresh();
        }
        for (word, mask) in masks(first, count) {
            flags.bits[word] |= mask;
        }
    }

    /// Sectors are written without whole bytes. True if one of them was whole in this life. The bits of another life are
    /// dropped: after a write its reset cannot be undone.
    pub(super) fn clear(&mut self, chunk: ChunkId, life: u32, first: u32, count: u32) -> bool {
        let Some(flags) = self.0.get_mut(&chunk) else { return false };
        if flags.life != life {
            self.0.remove(&chunk);
            return false;
        }
        let mut cleared = false;
        for (word, mask) in masks(first, count) {
            cleared |= flags.bits[word] & mask != 0;
            flags.bits[word] &= !mask;
        }
        cleared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_exactly_their_sectors() {
        for (first, count) in [(0, 1), (0, 64), (0, 65), (63, 2), (5, 190), (64, 64), (127, 1), (9, 0)] {
            let mut bits = [0u64; 4];
            masks(first, count).for_each(|(word, mask)| bits[word] = mask);
            for sector in 0..256 {
                let expected = sector >= first && sector < first + count;
                let found = bits[index(sector / 64)] >> (sector % 64) & 1 == 1;
                assert_eq!(found, expected, "{first} + {count}, sector {sector}");
            }
        }
    }

    #[test]
    fn flags_hold_in_their_own_life_only() {
        let (mut flags, chunk) = (WholeFlags::default(), ChunkId(4));
        assert!(!flags.clear(chunk, 1, 0, 100), "nothing was whole");
        flags.set(chunk, 1, (60, 10), 3);
        assert_eq!(flags.sectors(chunk, 1, 58, 64), 0b1111_1111_1100);
        assert_eq!((flags.sectors(chunk, 2, 58, 64), flags.bits(chunk, 2)), (0, None));
        assert!(flags.clear(chunk, 1, 0, 62) && !flags.clear(chunk, 1, 0, 62));
        assert_eq!(flags.bits(chunk, 1), Some(&[0b11 << 62, 0b11_1111, 0][..]));
        flags.set(chunk, 2, (0, 1), 3);
        assert_eq!((flags.bits(chunk, 1), flags.bits(chunk, 2)), (None, Some(&[1, 0, 0][..])));
        assert!(!flags.clear(chunk, 3, 0, 1), "another life");
        assert_eq!(flags.bits(chunk, 2), None, "a write in a later life makes the reset final");
    }
}
