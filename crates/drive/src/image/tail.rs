//! What a chunk has that no sync has covered: its tail, and a digest that ties the chunk's record to the tail's content.
//!
//! After a crash of the host a record may be on the disk without the content it counts. What is on the disk then has
//! another digest, and the chunk ends where the last sync that its record knew of had found its end. The digest is a sum
//! of one term a sector, so it grows with each write and does not depend on the writes' sizes. Marks of unreadable sectors
//! are not in it: the content below them is stored too, so losing a mark gives back what was written.
//!
//! Deliberately not here: when a tail begins anew (`tails`), and what is done about one that does not match (`opening`).

use super::file::ImageFile;
use super::layout::Layout;
use ocssd_base::Prng;
use ocssd_lightnvm::ChunkId;
use std::io;
use std::ops::Range;

/// Sectors that are read at a time to compute a digest (chosen: 1 MiB of sectors of 4 KiB).
const SECTORS_AT_ONCE: u32 = 256;
/// Tells all bytes of a whole sector from its stamp. Beyond the 32 bits of a checksum.
const WHOLE: u64 = 1 << 32;

/// A sum over sectors, of what they hold and where. One that lacks content or has other content differs but for one chance
/// in 2^32, the width of the checksum in each term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest(pub(super) u64);

impl Digest {
    /// The two together, of different sectors.
    pub(super) const fn and(self, more: Self) -> Self {
        Self(self.0.wrapping_add(more.0))
    }

    /// Adds sectors from `first` on: their data, and their metadata, which is zero if `oob` is empty.
    pub(super) fn add(&mut self, layout: &Layout, first: u32, data: &[u8], oob: &[u8]) {
        let (data_bytes, oob_bytes) = (index(layout.data_bytes), index(layout.oob_bytes));
        let zeros = vec![0; if oob.is_empty() { oob_bytes } else { 0 }];
        for (offset, data) in data.chunks_exact(data_bytes).enumerate() {
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(data);
            hasher.update(if oob.is_empty() { &zeros } else { &oob[offset * oob_bytes..][..oob_bytes] });
            self.add_term(hasher.finalize().into(), first, offset);
        }
    }

    /// Adds all bytes of whole sectors from `first` on, whose stamps are added by [`Digest::add`].
    pub(super) fn add_whole(&mut self, layout: &Layout, first: u32, bytes: &[u8]) {
        for (offset, bytes) in bytes.chunks_exact(index(layout.whole_bytes)).enumerate() {
            self.add_term(WHOLE | u64::from(crc32fast::hash(bytes)), first, offset);
        }
    }

    fn add_term(&mut self, content: u64, first: u32, offset: usize) {
        let sector = u64::from(first) + u64::try_from(offset).expect("a chunk's sectors fit 32 bits");
        // The place above the 33 bits of content, so that no two terms are alike.
        self.0 = self.0.wrapping_add(Prng::of_place(content, sector.rotate_left(33)));
    }

    /// The digest of what a file has in a range of a chunk's sectors.
    ///
    /// # Errors
    /// The first byte that could not be read, and why.
    pub(super) fn read(
        (file, layout): (&ImageFile, &Layout),
        chunk: ChunkId,
        sectors: Range<u32>,
        is_whole: impl Fn(u32) -> bool,
    ) -> Result<Self, (u64, io::Error)> {
        let take = |at: u64, count: u32, unit: u32| {
            let mut bytes = vec![0; index(count) * index(unit)];
            file.read(at, &mut bytes).map(|()| bytes).map_err(|error| (at, error))
        };
        let mut digest = Self::default();
        let mut first = sectors.start;
        while first < sectors.end {
            let count = (sectors.end - first).min(SECTORS_AT_ONCE);
            let data = take(layout.data(chunk, first), count, layout.data_bytes)?;
            let oob = take(layout.oob(chunk, first), count, layout.oob_bytes)?;
            digest.add(layout, first, &data, &oob);
            for sector in (first..first + count).filter(|&sector| is_whole(sector)) {
                digest.add_whole(layout, sector, &take(layout.whole(chunk, sector), 1, layout.whole_bytes)?);
            }
            first += count;
        }
        Ok(digest)
    }
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

/// Sectors of a chunk from `first` on, up to its write pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// Where the chunk ended at the last sync.
    pub(super) first: u32,
    /// Of all that follows.
    pub(super) digest: Digest,
}

impl Tail {
    /// Nothing from `first` on.
    pub(super) const fn empty(first: u32) -> Self {
        Self { first, digest: Digest(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_flash::presets;

    fn layout() -> Layout {
        Layout::of(&presets::find("tiny").expect("it exists").config(), 100).expect("it fits")
    }

    fn digest(first: u32, data: &[u8], oob: &[u8]) -> Digest {
        let mut digest = Digest::default();
        digest.add(&layout(), first, data, oob);
        digest
    }

    #[test]
    fn a_digest_does_not_depend_on_how_sectors_were_written() {
        let layout = layout();
        let (unit, spare) = (index(layout.data_bytes), index(layout.oob_bytes));
        let data: Vec<u8> = (0..4 * unit).map(|byte| u8::try_from(byte % 251).expect("below 251")).collect();
        let oob: Vec<u8> = data.iter().copied().cycle().take(4 * spare).collect();
        let parts = digest(8, &data[..unit], &oob[..spare]).and(digest(9, &data[unit..], &oob[spare..]));
        assert_eq!(digest(8, &data, &oob), parts);
    }

    #[test]
    fn content_in_another_place_zeros_and_a_flipped_bit_have_other_digests() {
        let layout = layout();
        let (unit, spare) = (index(layout.data_bytes), index(layout.oob_bytes));
        let (one, two) = (vec![1; unit], vec![2; unit]);
        let both = |first: &[u8], second: &[u8]| digest(0, first, &[]).and(digest(1, second, &[]));
        assert_ne!(both(&one, &two), both(&two, &one), "swapped");
        assert_ne!(both(&one, &vec![0; unit]), both(&one, &two), "the second is missing");
        assert_eq!(digest(3, &one, &[]), digest(3, &one, &vec![0; spare]), "no metadata is zeros");
        let mut flipped = one.clone();
        flipped[unit / 2] ^= 8;
        assert_ne!(digest(0, &flipped, &[]), digest(0, &one, &[]));
    }

    #[test]
    fn all_bytes_of_a_whole_sector_count_beside_its_stamp() {
        let layout = layout();
        assert!(layout.whole_bytes > 0, "a preset with stamps");
        let stamp = vec![1; index(layout.data_bytes)];
        let mut whole = digest(0, &stamp, &[]);
        whole.add_whole(&layout, 0, &vec![5; index(layout.whole_bytes)]);
        let mut lost = digest(0, &stamp, &[]);
        lost.add_whole(&layout, 0, &vec![0; index(layout.whole_bytes)]);
        assert!(whole != lost && whole != digest(0, &stamp, &[]));
    }
}
