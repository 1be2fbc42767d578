//! The sectors of a chunk that are kept with all their bytes beside their stamps.
//!
//! Few sectors of few chunks are: what a target keeps for itself. So they are a sorted list, in order of writing as a
//! rule, and a chunk without any costs nothing. Owned by `memory`. Deliberately not here: stamps and metadata.

use std::ops::Range;

/// Bytes of some sectors, sorted by sector; each sector at most once.
#[derive(Clone, Debug, Default)]
pub(crate) struct WholeSectors(Vec<(u32, Box<[u8]>)>);

impl WholeSectors {
    /// The places of `count` sectors from `first` on. Cost: O(log n).
    fn places(&self, first: u32, count: u32) -> Range<usize> {
        let place = |sector: u32| self.0.partition_point(|&(found, _)| found < sector);
        place(first)..place(first + count)
    }

    /// Forgets the bytes of `count` sectors from `first` on; their room goes to `spare`.
    pub(super) fn forget(&mut self, first: u32, count: u32, spare: &mut Vec<Box<[u8]>>) {
        let places = self.places(first, count);
        spare.extend(self.0.drain(places).map(|(_, bytes)| bytes));
    }

    /// Keeps the bytes of sectors from `first` on, `unit` bytes each, in room from `spare` as far as that goes, but for
    /// those that `is_plain` says need none. None of them was kept before. Cost: O(count) if no later sector is kept.
    pub(super) fn insert(
        &mut self,
        first: u32,
        bytes: &[u8],
        unit: usize,
        spare: &mut Vec<Box<[u8]>>,
        is_plain: impl Fn(u32, &[u8]) -> bool,
    ) {
        assert!(bytes.len().is_multiple_of(unit), "{} bytes are no whole sectors of {unit}", bytes.len());
        let count = u32::try_from(bytes.len() / unit).expect("fewer sectors than a chunk can have");
        let places = self.places(first, count);
        assert!(places.is_empty(), "sector {first} is kept whole twice");
        let sectors = (first..).zip(bytes.chunks_exact(unit));
        let kept = sectors.filter(|&(sector, bytes)| !is_plain(sector, bytes)).map(|(sector, bytes)| {
            let mut room = spare.pop().unwrap_or_else(|| vec![0; unit].into());
            room.copy_from_slice(bytes);
            (sector, room)
        });
        self.0.splice(places, kept);
    }

    /// The bytes of a sector, if they are kept.
    pub(super) fn get(&self, sector: u32) -> Option<&[u8]> {
        let place = self.0.binary_search_by_key(&sector, |&(found, _)| found).ok()?;
        Some(&self.0[place].1)
    }

    /// The bytes of a sector, to change, if they are kept.
    pub(super) fn get_mut(&mut self, sector: u32) -> Option<&mut [u8]> {
        let place = self.0.binary_search_by_key(&sector, |&(found, _)| found).ok()?;
        Some(&mut self.0[place].1)
    }

    /// Which of `count` sectors from `first` on are kept: bit `i` is sector `first + i`. At most 64 are asked for.
    pub(super) fn bits(&self, first: u32, count: u32) -> u64 {
        assert!(count <= 64, "{count} sectors do not fit 64 bits");
        self.0[self.places(first, count)].iter().fold(0, |bits, (sector, _)| bits | 1 << (sector - first))
    }

    /// The room of all sectors, to be used again.
    pub(super) fn into_room(self) -> impl Iterator<Item = Box<[u8]>> {
        self.0.into_iter().map(|(_, bytes)| bytes)
    }

    /// Bytes held for content.
    pub(super) fn content_bytes(&self) -> usize {
        self.0.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_found_forgotten_and_kept_again() {
        let (mut kept, mut spare) = (WholeSectors::default(), Vec::new());
        let is_plain = |_: u32, bytes: &[u8]| bytes == [0, 0];
        kept.insert(8, &[1, 1, 2, 2, 3, 3], 2, &mut spare, is_plain);
        kept.insert(2, &[9, 9, 0, 0], 2, &mut spare, is_plain);
        assert_eq!((kept.get(2), kept.get(3), kept.get(9)), (Some(&[9, 9][..]), None, Some(&[2, 2][..])));
        assert_eq!((kept.bits(0, 64), kept.bits(9, 2), kept.bits(3, 5)), (0b111_0000_0100, 0b11, 0));
        kept.forget(3, 6, &mut spare);
        assert_eq!((kept.bits(0, 64), spare.len(), kept.content_bytes()), (0b110_0000_0100, 1, 6));
        kept.insert(8, &[7, 7], 2, &mut spare, is_plain);
        assert_eq!((kept.get(8), spare.len()), (Some(&[7, 7][..]), 0));
        assert_eq!(kept.into_room().count(), 4);
    }
}
