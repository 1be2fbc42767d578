//! Lists that requests name: entries of a fixed size, one after the other in a whole buffer.
//!
//! A list lies in the pool beside the payload it describes, so that a request stays small whatever it names. Entries are
//! little-endian, so a list that came over a wire may be used where it lies. Deliberately not here: what the entries mean.

use crate::buffers::{BufId, Buffers};
use std::marker::PhantomData;

/// What a [`List`] holds: a value with a fixed number of bytes.
pub trait Entry: Copy {
    /// Bytes of an entry.
    const BYTES: usize;

    /// Writes the entry to `bytes`, which are [`Self::BYTES`] long.
    fn encode(&self, bytes: &mut [u8]);

    /// The entry in `bytes`, which are [`Self::BYTES`] long; `None` if they are no entry.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// The first `count` entries of a whole buffer.
pub struct List<T> {
    /// The buffer; it was taken whole.
    pub buffer: BufId,
    /// How many entries.
    pub count: u32,
    entry: PhantomData<fn() -> T>,
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<T> {}

impl<T> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.buffer, self.count) == (other.buffer, other.count)
    }
}

impl<T> Eq for List<T> {}

impl<T> std::fmt::Debug for List<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} entries in buffer {}", self.count, self.buffer.0)
    }
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

/// Every byte of a whole buffer.
pub(super) fn whole(buffers: &Buffers, buffer: BufId) -> &[u8] {
    buffers.whole(buffer, 0, buffers.sectors(buffer))
}

/// Every byte of a whole buffer, to change.
pub(super) fn whole_mut(buffers: &mut Buffers, buffer: BufId) -> &mut [u8] {
    let sectors = buffers.sectors(buffer);
    buffers.whole_mut(buffer, 0, sectors)
}

impl<T: Entry> List<T> {
    /// The first `count` entries of `buffer`.
    #[must_use]
    pub const fn new(buffer: BufId, count: u32) -> Self {
        Self { buffer, count, entry: PhantomData }
    }

    /// Sectors of a buffer that holds `count` entries; at least one.
    #[must_use]
    pub fn sectors(count: u32, buffers: &Buffers) -> u32 {
        let bytes = index(count) * T::BYTES;
        u32::try_from(bytes.div_ceil(buffers.format().sector_bytes).max(1)).expect("fewer sectors than bytes")
    }

    /// Writes `entries` to `buffer`.
    ///
    /// # Panics
    /// If the buffer was not taken whole, or has no room for them.
    #[must_use]
    pub fn write(buffers: &mut Buffers, buffer: BufId, entries: &[T]) -> Self {
        let places = whole_mut(buffers, buffer);
        assert!(
            entries.len() * T::BYTES <= places.len(),
            "{} entries in {} bytes",
            entries.len(),
            places.len()
        );
        for (entry, place) in entries.iter().zip(places.chunks_exact_mut(T::BYTES)) {
            entry.encode(place);
        }
        Self::new(buffer, u32::try_from(entries.len()).expect("fewer entries than bytes of a buffer"))
    }

    /// True if the buffer is whole and has room for the entries.
    #[must_use]
    pub fn lies_within(&self, buffers: &Buffers) -> bool {
        let room = index(buffers.sectors(self.buffer)) * buffers.format().sector_bytes;
        buffers.is_whole(self.buffer) && index(self.count) * T::BYTES <= room
    }

    /// An entry; `None` if the bytes there are none.
    ///
    /// # Panics
    /// If there is no entry of this index, or the buffer was not taken whole.
    #[must_use]
    pub fn get(&self, buffers: &Buffers, entry: u32) -> Option<T> {
        assert!(entry < self.count, "entry {entry} of {}", self.count);
        T::decode(&whole(buffers, self.buffer)[index(entry) * T::BYTES..][..T::BYTES])
    }

    /// Every entry in order, `None` for bytes that are none.
    pub fn entries<'a>(&self, buffers: &'a Buffers) -> impl Iterator<Item = Option<T>> + use<'a, T> {
        let bytes = &whole(buffers, self.buffer)[..index(self.count) * T::BYTES];
        bytes.chunks_exact(T::BYTES).map(T::decode)
    }
}

/// The little-endian number of 32 bits at `at`.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The little-endian number of 64 bits at `at`.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::{Payload, PayloadFormat};
    use crate::geometry::Geometry;
    use crate::interface::Piece;

    #[test]
    fn a_list_is_read_as_it_was_written_with_both_payloads() {
        for payload in [Payload::Bytes, Payload::Stamp] {
            let geometry = Geometry::example(1, 1, 4, 24, 24);
            let mut buffers = Buffers::new(PayloadFormat::new(payload, &geometry));
            let pieces: Vec<Piece> =
                (0..300).map(|n| Piece { buffer: BufId(n), first_byte: n * 7, bytes: n + 1 }).collect();
            let sectors = List::<Piece>::sectors(300, &buffers);
            assert_eq!(sectors, 2, "300 entries of 16 bytes");
            let buffer = buffers.take_whole(sectors);
            let list = List::write(&mut buffers, buffer, &pieces);
            assert!(list.lies_within(&buffers) && list.get(&buffers, 299) == Some(pieces[299]));
            let read: Vec<Piece> = list.entries(&buffers).map(|entry| entry.expect("a piece")).collect();
            assert_eq!(read, pieces);
            assert!(!List::<Piece>::new(buffer, 513).lies_within(&buffers), "512 entries have room");
        }
    }

    #[test]
    fn a_list_does_not_lie_in_a_buffer_of_stamps() {
        let geometry = Geometry::example(1, 1, 4, 24, 24);
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry));
        let plain = buffers.take(1);
        assert!(!List::<Piece>::new(plain, 1).lies_within(&buffers));
    }
}
