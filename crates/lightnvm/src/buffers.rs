//! The pool of buffers that workloads, targets and devices all see. Events and commands carry a [`BufId`], never bytes.
//!
//! A buffer holds, per sector, its payload and its out-of-band metadata, and a list of addresses for vector commands.
//! Payload is either the sector's real bytes or a stamp of 16 bytes that says which write it came from, so that
//! terabytes are simulated in gigabytes and content is still checked. The device never looks inside either.
//!
//! A *whole* buffer carries, beside the stamps, every byte of its sectors: for what a target keeps for itself on media
//! and must read back (its map, its lists of addresses). With real bytes every buffer is whole.
//!
//! Deliberately not here: growing a buffer, or sharing one between two owners.

use crate::address::Ppa;
use crate::command::VECTOR_MAX;
use crate::geometry::Geometry;
use std::collections::BTreeSet;
use std::ops::Range;

/// What stands for a sector's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Its real bytes.
    Bytes,
    /// Sixteen bytes, as the workload chooses them (logical address and sequence number).
    Stamp,
}

/// Bytes of a stamp: an address and a sequence number of 64 bits each.
pub const STAMP_BYTES: usize = 16;

/// How many bytes a sector takes in buffers and stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadFormat {
    /// What stands for content.
    pub payload: Payload,
    /// Bytes of payload per sector: `sector_bytes`, or the 16 of a stamp.
    pub data_bytes: usize,
    /// Bytes of a sector as the geometry gives them; what a whole buffer holds per sector.
    pub sector_bytes: usize,
    /// Bytes of metadata per sector.
    pub oob_bytes: usize,
}

impl PayloadFormat {
    /// The format for drives of this geometry.
    #[must_use]
    pub fn new(payload: Payload, geometry: &Geometry) -> Self {
        let (sector_bytes, oob_bytes) = (index(geometry.sector_bytes), index(geometry.oob_bytes));
        let data_bytes = match payload {
            Payload::Bytes => sector_bytes,
            Payload::Stamp => STAMP_BYTES,
        };
        Self { payload, data_bytes, sector_bytes, oob_bytes }
    }

    /// Bytes one block of a target takes in a buffer. A block of a sector, or a stamp, has the sector's place; smaller
    /// blocks of real bytes lie one after the other, as they do on the drive.
    #[must_use]
    pub fn block_place_bytes(&self, block_bytes: u32) -> usize {
        match self.payload {
            Payload::Bytes => self.data_bytes.min(index(block_bytes)),
            Payload::Stamp => self.data_bytes,
        }
    }

    /// Sectors of a buffer that holds `blocks` blocks of a target.
    ///
    /// # Panics
    /// If the buffer would have 2^32 sectors.
    #[must_use]
    pub fn sectors_of_blocks(&self, blocks: u32, block_bytes: u32) -> u32 {
        let bytes = index(blocks) * self.block_place_bytes(block_bytes);
        u32::try_from(bytes.div_ceil(self.data_bytes)).expect("fewer sectors than blocks")
    }
}

/// The name of a buffer in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufId(pub u32);

#[derive(Clone, Debug)]
struct Buffer {
    sectors: u32,
    in_use: bool,
    /// Its place in [`Buffers::sizes`].
    size: usize,
    data: Box<[u8]>,
    oob: Box<[u8]>,
    /// All bytes of every sector beside their stamps; empty in a plain buffer, and if `data` holds them.
    whole: Box<[u8]>,
    addresses: Box<[Ppa]>,
    /// The bytes of its sectors that reads must fill.
    wanted: Range<usize>,
}

/// All bytes of a buffer.
const ALL: Range<usize> = 0..usize::MAX;

/// Everything a buffer holds, from its first sector to its last, to change.
#[derive(Debug)]
pub struct PartsMut<'a> {
    /// Payload: `data_bytes` per sector.
    pub data: &'a mut [u8],
    /// Metadata: `oob_bytes` per sector.
    pub oob: &'a mut [u8],
    /// `sector_bytes` per sector beside the stamps; empty in a plain buffer, and if `data` holds them.
    pub whole: &'a mut [u8],
    /// The address list.
    pub addresses: &'a [Ppa],
}

/// Buffers of one size.
#[derive(Clone, Debug)]
struct Size {
    sectors: u32,
    /// Bytes beside the payload.
    whole: usize,
    /// Those that are not in use.
    spare: BTreeSet<usize>,
}

/// The pool. Buffers are made at start and returned to it; their memory is kept for the next owner of that size.
#[derive(Clone, Debug)]
pub struct Buffers {
    format: PayloadFormat,
    buffers: Vec<Buffer>,
    /// Few, as sizes follow from what the drive and its targets are.
    sizes: Vec<Size>,
    /// Where the search for a spare buffer begins.
    taken: usize,
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

impl Buffers {
    /// An empty pool for sectors of this format.
    #[must_use]
    pub const fn new(format: PayloadFormat) -> Self {
        Self { format, buffers: Vec::new(), sizes: Vec::new(), taken: 0 }
    }

    /// How many bytes a sector takes.
    #[must_use]
    pub const fn format(&self) -> PayloadFormat {
        self.format
    }

    /// A buffer of `sectors` sectors, zeroed, or a returned one of the same size with its old content.
    ///
    /// The address list has room for a vector copy. Cost: an allocation unless one is reused; call it at start.
    ///
    /// # Panics
    /// If `sectors` is zero.
    pub fn take(&mut self, sectors: u32) -> BufId {
        self.take_with(sectors, 0)
    }

    /// A buffer whose sectors hold all their bytes: what is written from it is kept whole by the device, and a read into
    /// it gives whole sectors. Otherwise as [`Self::take`], which is the same with [`Payload::Bytes`].
    ///
    /// # Panics
    /// If `sectors` is zero.
    pub fn take_whole(&mut self, sectors: u32) -> BufId {
        self.take_whole_front(sectors, sectors)
    }

    /// As [`Self::take_whole`], but only the first `whole` of its sectors hold all their bytes. Of the others there are
    /// stamps alone: they read as their stamps and zeros. For what fills a unit with little.
    ///
    /// # Panics
    /// If `sectors` is zero, or less than `whole`.
    pub fn take_whole_front(&mut self, sectors: u32, whole: u32) -> BufId {
        assert!(whole <= sectors, "{whole} whole sectors in a buffer of {sectors}");
        match self.format.payload {
            Payload::Bytes => self.take_with(sectors, 0),
            Payload::Stamp => self.take_with(sectors, index(whole) * self.format.sector_bytes),
        }
    }

    /// A buffer with `whole` bytes beside its payload.
    fn take_with(&mut self, sectors: u32, whole: usize) -> BufId {
        assert!(sectors > 0, "a buffer holds at least one sector");
        let size = self.size_of(sectors, whole);
        let spare = &mut self.sizes[size].spare;
        // Behind the last one taken first: a pool that was reclaimed is taken again in the same order.
        let found = spare.range(self.taken..).next().or_else(|| spare.first()).copied();
        if let Some(place) = found {
            spare.remove(&place);
        }
        let place = found.unwrap_or_else(|| {
            let count = index(sectors);
            self.buffers.push(Buffer {
                sectors,
                in_use: false,
                size,
                data: vec![0; count * self.format.data_bytes].into(),
                oob: vec![0; count * self.format.oob_bytes].into(),
                whole: vec![0; whole].into(),
                addresses: vec![Ppa::NOWHERE; index(sectors.max(2 * VECTOR_MAX))].into(),
                wanted: ALL,
            });
            self.buffers.len() - 1
        });
        assert!(!self.buffers[place].in_use, "buffer {place} is spare and in use");
        (self.buffers[place].in_use, self.buffers[place].wanted) = (true, ALL);
        self.taken = place + 1;
        BufId(u32::try_from(place).expect("fewer than 2^32 buffers"))
    }

    /// Which size that is, from now on if there was none.
    fn size_of(&mut self, sectors: u32, whole: usize) -> usize {
        let known = self.sizes.iter().position(|size| size.sectors == sectors && size.whole == whole);
        known.unwrap_or_else(|| {
            self.sizes.push(Size { sectors, whole, spare: BTreeSet::new() });
            self.sizes.len() - 1
        })
    }

    /// Returns every buffer to the pool: whoever held them is gone.
    pub fn reclaim(&mut self) {
        for (place, buffer) in self.buffers.iter_mut().enumerate().filter(|(_, buffer)| buffer.in_use) {
            buffer.in_use = false;
            self.sizes[buffer.size].spare.insert(place);
        }
        self.taken = 0;
    }

    /// Returns a buffer to the pool.
    ///
    /// # Panics
    /// If it is not in use.
    pub fn give_back(&mut self, id: BufId) {
        let buffer = &mut self.buffers[index(id.0)];
        assert!(buffer.in_use, "buffer {} was returned twice", id.0);
        buffer.in_use = false;
        self.sizes[buffer.size].spare.insert(index(id.0));
    }

    /// How many are in use. Cost: a look at each.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.buffers.iter().filter(|buffer| buffer.in_use).count()
    }

    /// Sectors of a buffer.
    #[must_use]
    pub fn sectors(&self, id: BufId) -> u32 {
        self.buffers[index(id.0)].sectors
    }

    /// The payload of `count` sectors from `first` on.
    #[must_use]
    pub fn data(&self, id: BufId, first: u32, count: u32) -> &[u8] {
        let unit = self.format.data_bytes;
        &self.buffers[index(id.0)].data[index(first) * unit..][..index(count) * unit]
    }

    /// The payload of `count` sectors from `first` on, to change.
    #[inline(always)]
    pub fn data_mut(&mut self, id: BufId, first: u32, count: u32) -> &mut [u8] {
        let unit = self.format.data_bytes;
        &mut self.buffers[index(id.0)].data[index(first) * unit..][..index(count) * unit]
    }

    /// `count` bytes of payload from byte `first` of the buffer on: for blocks smaller than a sector.
    #[must_use]
    pub fn bytes(&self, id: BufId, first: usize, count: usize) -> &[u8] {
        &self.buffers[index(id.0)].data[first..][..count]
    }

    /// `count` bytes of payload from byte `first` of the buffer on, to change.
    pub fn bytes_mut(&mut self, id: BufId, first: usize, count: usize) -> &mut [u8] {
        &mut self.buffers[index(id.0)].data[first..][..count]
    }

    /// The metadata of `count` sectors from `first` on.
    #[must_use]
    #[inline]
    pub fn oob(&self, id: BufId, first: u32, count: u32) -> &[u8] {
        let unit = self.format.oob_bytes;
        &self.buffers[index(id.0)].oob[index(first) * unit..][..index(count) * unit]
    }

    /// The metadata of `count` sectors from `first` on, to change.
    pub fn oob_mut(&mut self, id: BufId, first: u32, count: u32) -> &mut [u8] {
        let unit = self.format.oob_bytes;
        &mut self.buffers[index(id.0)].oob[index(first) * unit..][..index(count) * unit]
    }

    /// Sectors of a buffer that holds stamps and nothing more; 0 of any other.
    #[must_use]
    #[inline(always)]
    pub fn stamp_sectors(&self, id: BufId) -> u32 {
        let buffer = &self.buffers[index(id.0)];
        let only_stamps = self.format.payload == Payload::Stamp && buffer.whole.is_empty();
        if only_stamps { buffer.sectors } else { 0 }
    }

    /// Payload and metadata of `count` sectors from `first` on, to change.
    pub fn sectors_mut(&mut self, id: BufId, first: u32, count: u32) -> (&mut [u8], &mut [u8]) {
        let PayloadFormat { data_bytes, oob_bytes, .. } = self.format;
        let buffer = &mut self.buffers[index(id.0)];
        let (first, count) = (index(first), index(count));
        (
            &mut buffer.data[first * data_bytes..][..count * data_bytes],
            &mut buffer.oob[first * oob_bytes..][..count * oob_bytes],
        )
    }

    /// True if the buffer holds all bytes of its sectors, or of the first of them: it was taken whole, or payload is real
    /// bytes.
    #[must_use]
    pub fn is_whole(&self, id: BufId) -> bool {
        self.format.payload == Payload::Bytes || !self.buffers[index(id.0)].whole.is_empty()
    }

    /// How many of its first sectors hold all their bytes.
    #[must_use]
    pub fn whole_sectors(&self, id: BufId) -> u32 {
        let front = u32::try_from(self.buffers[index(id.0)].whole.len() / self.format.sector_bytes);
        if self.format.payload == Payload::Bytes { self.sectors(id) } else { front.expect("few") }
    }

    /// All bytes of `count` sectors from `first` on, `sector_bytes` each. With [`Payload::Bytes`] that is their data;
    /// with stamps they lie beside the stamps, which they do not change.
    ///
    /// # Panics
    /// If the buffer holds stamps and these sectors were not taken whole.
    #[must_use]
    pub fn whole(&self, id: BufId, first: u32, count: u32) -> &[u8] {
        assert!(self.is_whole(id), "buffer {} holds stamps only: take it whole", id.0);
        let (unit, buffer) = (self.format.sector_bytes, &self.buffers[index(id.0)]);
        let all = if buffer.whole.is_empty() { &buffer.data } else { &buffer.whole };
        &all[index(first) * unit..][..index(count) * unit]
    }

    /// All bytes of `count` sectors from `first` on, to change; as [`Self::whole`].
    ///
    /// # Panics
    /// If the buffer holds stamps and these sectors were not taken whole.
    pub fn whole_mut(&mut self, id: BufId, first: u32, count: u32) -> &mut [u8] {
        assert!(self.is_whole(id), "buffer {} holds stamps only: take it whole", id.0);
        let (unit, buffer) = (self.format.sector_bytes, &mut self.buffers[index(id.0)]);
        let all = if buffer.whole.is_empty() { &mut buffer.data } else { &mut buffer.whole };
        &mut all[index(first) * unit..][..index(count) * unit]
    }

    /// From now on reads into a whole buffer need fill only these of its bytes, and no metadata: what the others hold after a read
    /// is not said. A host says so by Bit Bucket descriptors (NVMe base 2.0, section 4.1.2.1). It spares memory, not the media: a
    /// drive reads whole sectors in any case.
    ///
    /// # Panics
    /// If the buffer holds stamps and was not taken whole, or has not these bytes.
    pub fn want(&mut self, id: BufId, bytes: Range<usize>) {
        assert!(self.is_whole(id), "buffer {} holds stamps only: take it whole", id.0);
        let buffer = &mut self.buffers[index(id.0)];
        let all = index(buffer.sectors) * self.format.sector_bytes;
        assert!(bytes.start < bytes.end && bytes.end <= all, "{bytes:?} of {all} bytes");
        buffer.wanted = bytes;
    }

    /// Reads fill all bytes of a buffer again.
    pub fn want_all(&mut self, id: BufId) {
        self.buffers[index(id.0)].wanted = ALL;
    }

    /// The bytes of a buffer that reads need fill, if these are not all, with metadata.
    #[must_use]
    pub fn wanted(&self, id: BufId) -> Option<Range<usize>> {
        let wanted = &self.buffers[index(id.0)].wanted;
        (*wanted != ALL).then(|| wanted.clone())
    }

    /// Everything a buffer holds at once, to change.
    pub fn parts_mut(&mut self, id: BufId) -> PartsMut<'_> {
        let Buffer { data, oob, whole, addresses, .. } = &mut self.buffers[index(id.0)];
        PartsMut { data, oob, whole, addresses }
    }

    /// Copies payload and metadata of `count` sectors to another buffer. Whole bytes beside stamps stay behind.
    ///
    /// # Panics
    /// If it is the same buffer.
    pub fn copy_sectors(&mut self, from: BufId, from_first: u32, to: BufId, to_first: u32, count: u32) {
        let PayloadFormat { data_bytes, oob_bytes, .. } = self.format;
        let (source, target, count) = (index(from_first), index(to_first), index(count));
        let pair = self.buffers.get_disjoint_mut([index(from.0), index(to.0)]);
        let [from, to] = pair.expect("two buffers of the pool");
        to.data[target * data_bytes..][..count * data_bytes]
            .copy_from_slice(&from.data[source * data_bytes..][..count * data_bytes]);
        to.oob[target * oob_bytes..][..count * oob_bytes]
            .copy_from_slice(&from.oob[source * oob_bytes..][..count * oob_bytes]);
    }

    /// Copies the payload of `count` sectors from one buffer to another, or to another place of the same one. Metadata and
    /// whole bytes beside stamps stay behind.
    pub fn copy_data(&mut self, from: BufId, from_first: u32, to: BufId, to_first: u32, count: u32) {
        let unit = self.format.data_bytes;
        let (source, target) = (index(from_first) * unit, index(to_first) * unit);
        self.copy_bytes((from, source), (to, target), index(count) * unit);
    }

    /// Copies `count` bytes of payload from a place in one buffer to a place in another, or in the same one.
    pub fn copy_bytes(&mut self, from: (BufId, usize), to: (BufId, usize), count: usize) {
        let ((from, source), (to, target)) = (from, to);
        if from == to {
            self.buffers[index(from.0)].data.copy_within(source..source + count, target);
            return;
        }
        let pair = self.buffers.get_disjoint_mut([index(from.0), index(to.0)]);
        let [from, to] = pair.expect("two buffers of the pool");
        to.data[target..target + count].copy_from_slice(&from.data[source..source + count]);
    }

    /// Copies `count` bytes of whole sectors from a place in one buffer to a place in another.
    ///
    /// # Panics
    /// If either holds stamps, or both are the same.
    pub fn copy_whole(&mut self, from: (BufId, usize), to: (BufId, usize), count: usize) {
        let ((from, source), (to, target)) = (from, to);
        assert!(
            self.is_whole(from) && self.is_whole(to),
            "buffers {} and {} are not both whole",
            from.0,
            to.0
        );
        let pair = self.buffers.get_disjoint_mut([index(from.0), index(to.0)]);
        let [from, to] = pair.expect("two buffers of the pool");
        let from = if from.whole.is_empty() { &from.data } else { &from.whole };
        let to = if to.whole.is_empty() { &mut to.data } else { &mut to.whole };
        to[target..target + count].copy_from_slice(&from[source..source + count]);
    }

    /// The address list.
    #[must_use]
    pub fn addresses(&self, id: BufId) -> &[Ppa] {
        &self.buffers[index(id.0)].addresses
    }

    /// The address list, to fill.
    pub fn addresses_mut(&mut self, id: BufId) -> &mut [Ppa] {
        &mut self.buffers[index(id.0)].addresses
    }
}

#[cfg(test)]
mod tests;
