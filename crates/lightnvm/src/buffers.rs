//! The pool of buffers that workloads, targets and devices all see. Events and commands carry a [`BufId`], never bytes.
//!
//! A buffer holds, per sector, its payload and its out-of-band metadata, and a list of addresses for vector commands.
//! Payload is either the sector's real bytes or a stamp of 16 bytes that says which write it came from, so that
//! terabytes are simulated in gigabytes and content is still checked. The device never looks inside either.
//!
//! Deliberately not here: growing a buffer, or sharing one between two owners.

use crate::address::Ppa;
use crate::command::VECTOR_MAX;
use crate::geometry::Geometry;

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
    /// Bytes of payload per sector.
    pub data_bytes: usize,
    /// Bytes of metadata per sector.
    pub oob_bytes: usize,
}

impl PayloadFormat {
    /// The format for drives of this geometry.
    #[must_use]
    pub fn new(payload: Payload, geometry: &Geometry) -> Self {
        let whole = |value: u32| usize::try_from(value).expect("32 bits fit an index");
        let data_bytes = match payload {
            Payload::Bytes => whole(geometry.sector_bytes),
            Payload::Stamp => STAMP_BYTES,
        };
        Self { payload, data_bytes, oob_bytes: whole(geometry.oob_bytes) }
    }
}

/// The name of a buffer in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufId(pub u32);

#[derive(Clone, Debug)]
struct Buffer {
    sectors: u32,
    in_use: bool,
    data: Box<[u8]>,
    oob: Box<[u8]>,
    addresses: Box<[Ppa]>,
}

/// The pool. Buffers are made at start and returned to it; their memory is kept for the next owner of that size.
#[derive(Clone, Debug)]
pub struct Buffers {
    format: PayloadFormat,
    buffers: Vec<Buffer>,
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

impl Buffers {
    /// An empty pool for sectors of this format.
    #[must_use]
    pub const fn new(format: PayloadFormat) -> Self {
        Self { format, buffers: Vec::new() }
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
        assert!(sectors > 0, "a buffer holds at least one sector");
        let spare = self.buffers.iter().position(|buffer| !buffer.in_use && buffer.sectors == sectors);
        let place = spare.unwrap_or_else(|| {
            let count = index(sectors);
            self.buffers.push(Buffer {
                sectors,
                in_use: false,
                data: vec![0; count * self.format.data_bytes].into(),
                oob: vec![0; count * self.format.oob_bytes].into(),
                addresses: vec![Ppa::NOWHERE; index(sectors.max(2 * VECTOR_MAX))].into(),
            });
            self.buffers.len() - 1
        });
        self.buffers[place].in_use = true;
        BufId(u32::try_from(place).expect("fewer than 2^32 buffers"))
    }

    /// Returns a buffer to the pool.
    ///
    /// # Panics
    /// If it is not in use.
    pub fn give_back(&mut self, id: BufId) {
        let buffer = &mut self.buffers[index(id.0)];
        assert!(buffer.in_use, "buffer {} was returned twice", id.0);
        buffer.in_use = false;
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
    pub fn data_mut(&mut self, id: BufId, first: u32, count: u32) -> &mut [u8] {
        let unit = self.format.data_bytes;
        &mut self.buffers[index(id.0)].data[index(first) * unit..][..index(count) * unit]
    }

    /// The metadata of `count` sectors from `first` on.
    #[must_use]
    pub fn oob(&self, id: BufId, first: u32, count: u32) -> &[u8] {
        let unit = self.format.oob_bytes;
        &self.buffers[index(id.0)].oob[index(first) * unit..][..index(count) * unit]
    }

    /// The metadata of `count` sectors from `first` on, to change.
    pub fn oob_mut(&mut self, id: BufId, first: u32, count: u32) -> &mut [u8] {
        let unit = self.format.oob_bytes;
        &mut self.buffers[index(id.0)].oob[index(first) * unit..][..index(count) * unit]
    }

    /// Payload and metadata of a whole buffer at once, to change.
    pub fn parts_mut(&mut self, id: BufId) -> (&mut [u8], &mut [u8], &[Ppa]) {
        let buffer = &mut self.buffers[index(id.0)];
        (&mut buffer.data, &mut buffer.oob, &buffer.addresses)
    }

    /// Payload, metadata and addresses of a whole buffer.
    #[must_use]
    pub fn parts(&self, id: BufId) -> (&[u8], &[u8], &[Ppa]) {
        let buffer = &self.buffers[index(id.0)];
        (&buffer.data, &buffer.oob, &buffer.addresses)
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
mod tests {
    use super::*;

    #[test]
    fn a_returned_buffer_is_used_again_and_sizes_are_kept_apart() {
        let format = PayloadFormat::new(Payload::Stamp, &Geometry::example(1, 1, 1, 8, 8));
        let mut pool = Buffers::new(format);
        let small = pool.take(1);
        let large = pool.take(300);
        assert_eq!((pool.data(small, 0, 1).len(), pool.data(large, 10, 2).len()), (16, 32));
        assert_eq!(pool.addresses(large).len(), 300);
        pool.give_back(small);
        assert_ne!(pool.take(2), small);
        assert_eq!(pool.take(1), small);
    }
}
