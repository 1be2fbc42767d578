//! Reads whose content was not copied yet.
//!
//! What a read returns is settled when it is taken, but until its completion the buffer is the drive's to fill. A random
//! read of one stamp is a cache miss and little else: one after the other the misses are waited for, side by side they
//! overlap. So short reads, and those of which the host wants a few bytes, are noted here and copied together: when the list is
//! full, before the first of them ends, and before anything changes content. Owned by the drive.
//!
//! Deliberately not here: reads that meet faults, long reads and reads from a backing, which are copied when taken.

use crate::store::Memory;
use ocssd_base::usize_of;
use ocssd_lightnvm::{BufId, Buffers, ChunkId, Ppa};
use std::ops::Range;

/// Most reads that wait: more than a processor's outstanding misses (10 to 16), few enough to stay in its first cache
/// (chosen).
const DEFERRED_COPIES_MAX: usize = 32;

/// Longest payload that waits. Beyond a few cache lines the processor prefetches by itself (chosen).
pub(crate) const DEFERRED_BYTES_MAX: usize = 256;

/// Most bytes that wait of a read of which only these are wanted (chosen: those of all reads that wait fit the processor's second
/// cache).
pub(crate) const WANTED_BYTES_MAX: usize = 4096;

/// Where a read's content goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    pub(crate) buffer: BufId,
    /// The buffer's first sector of it.
    pub(crate) first: u32,
    /// Metadata goes along.
    pub(crate) oob: bool,
}

/// Neighbouring sectors of a chunk that are to be copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeferredCopy {
    pub(crate) first: Ppa,
    pub(crate) count: u32,
    /// Which bytes of them; all if the range is empty.
    pub(crate) bytes: WantedBytes,
    pub(crate) to: Destination,
}

/// Bytes of neighbouring sectors: from the first, and how many. None of them means all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WantedBytes {
    pub(crate) from: u32,
    pub(crate) count: u32,
}

impl DeferredCopy {
    /// Loads what is copied. Nothing waits for it.
    fn touch(&self, memory: &Memory) -> u8 {
        match self.bytes {
            WantedBytes { count: 0, .. } => memory.touch(self.first, self.to.oob),
            WantedBytes { from, count } => memory.touch_bytes(self.first, usize_of(from), usize_of(count)),
        }
    }

    fn copy(&self, memory: &Memory, buffers: &mut Buffers) {
        let Self { first, count, bytes, to } = *self;
        if bytes.count > 0 {
            let sector = buffers.format().data_bytes;
            let end = usize_of(bytes.from) + usize_of(bytes.count);
            assert!(end <= usize_of(count) * sector, "bytes to {end} of {count} sectors are wanted");
            let begin = usize_of(to.first) * sector + usize_of(bytes.from);
            let into = buffers.bytes_mut(to.buffer, begin, usize_of(bytes.count));
            memory.read_bytes(first, usize_of(bytes.from), into);
        } else if to.oob {
            let (data, oob) = buffers.sectors_mut(to.buffer, to.first, count);
            memory.read(first.chunk, first.sector, data, oob);
        } else {
            memory.read(first.chunk, first.sector, buffers.data_mut(to.buffer, to.first, count), &mut []);
        }
    }
}

/// The reads that wait, oldest first, numbered from 1 in the order they came.
#[derive(Clone, Debug)]
pub(crate) struct DeferredCopies {
    waiting: Vec<DeferredCopy>,
    /// Of the command that is taken last with a buffer: the bytes of its sectors that must be filled, if these are not all.
    pub(crate) wanted: Option<Range<usize>>,
    /// The number of the latest that came, and of the latest that was copied.
    noted: u64,
    copied: u64,
}

impl DeferredCopies {
    pub(crate) fn new() -> Self {
        Self { waiting: Vec::with_capacity(DEFERRED_COPIES_MAX), wanted: None, noted: 0, copied: 0 }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.waiting.len() >= DEFERRED_COPIES_MAX
    }

    /// True if number `number` was not copied yet.
    pub(crate) const fn is_waiting(&self, number: u64) -> bool {
        number > self.copied
    }

    /// Adds a read and tells its number. Inlined, or the read would be written twice.
    #[inline(always)]
    pub(crate) fn push(&mut self, copy: DeferredCopy) -> u64 {
        assert!(!self.is_full(), "the list of reads to copy was not emptied in time");
        self.waiting.push(copy);
        self.noted += 1;
        self.noted
    }

    /// Copies all that wait.
    pub(crate) fn copy(&mut self, memory: &Memory, buffers: &mut Buffers) {
        // Nothing in this loop waits for what it loads, so that the misses overlap.
        let touched = self.waiting.iter().fold(0u8, |all, copy| all ^ copy.touch(memory));
        std::hint::black_box(touched);
        self.waiting.iter().for_each(|copy| copy.copy(memory, buffers));
        self.forget();
    }

    /// The power is gone: buffers belong to the host again.
    pub(crate) fn forget(&mut self) {
        self.copied = self.noted;
        self.waiting.clear();
    }

    /// Asserts that what waits can be copied.
    pub(crate) fn check(&self) {
        assert!(
            self.waiting.len() <= DEFERRED_COPIES_MAX,
            "more reads wait to be copied than there are places"
        );
        assert_eq!(self.waiting.is_empty(), self.copied == self.noted, "reads that wait are misnumbered");
        for copy in &self.waiting {
            assert!(copy.count > 0 && copy.first.chunk != ChunkId(u32::MAX), "a read of nothing waits");
        }
    }
}
