//! Where sector content and metadata are kept: in memory (real bytes or stamps), or in one sparse image file.
//!
//! A store keeps what it is given and knows no rule; chunk states and write pointers are the drive's. Content is
//! opaque: `data_bytes` per sector, be it 4096 or the 16 of a stamp. Where content is stamps, single sectors may be
//! *whole*: all their `sector_bytes` are kept beside the stamp. Deliberately not here: caching, timing, errors of the
//! media.

mod failures;
mod memory;
mod whole;

pub(crate) use failures::Failures;
pub use memory::Memory;

use crate::chunks::ChunkRecord;
use ocssd_lightnvm::{ChunkId, Ppa, Status};
use std::fmt;

/// What kind of failure it is, as far as a host can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// There is no room for more: a full file system, or a quota.
    Full,
    /// Anything else.
    Failed,
}

/// The backing failed: not a rule of the drive, but the file below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// What kind of failure it is.
    pub kind: StoreErrorKind,
    /// What failed, where, and what to do.
    pub sentence: String,
}

impl StoreError {
    /// What a command is told that met it.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self.kind {
            StoreErrorKind::Full => Status::CAPACITY_EXCEEDED,
            StoreErrorKind::Failed => Status::INTERNAL_ERROR,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for StoreError {}

/// A chunk's content set aside by a reset, until the media are really erased.
#[derive(Clone, Debug, Default)]
pub struct SavedBlock(pub(crate) memory::Saved);

/// The place of content.
pub enum Store {
    /// In memory.
    Memory(Memory),
    /// Elsewhere: an image file.
    Backed(Box<dyn Backing>),
}

/// A store outside the drive's memory, for one thread at a time. Slices are whole sectors: `data_bytes` and `oob_bytes` per sector.
pub trait Backing: Send {
    /// Stores sectors from `first` on. `oob` is empty if the command carried none: metadata is then zero. None of the
    /// sectors is whole afterwards.
    ///
    /// # Errors
    /// If the backing failed; the sectors are then undefined.
    fn write(&mut self, chunk: ChunkId, first: u32, data: &[u8], oob: &[u8]) -> Result<(), StoreError>;

    /// Fills `data` and `oob` (either may be empty) with sectors from `first` on. Never written sectors are zero.
    ///
    /// # Errors
    /// If the backing failed.
    fn read(&mut self, chunk: ChunkId, first: u32, data: &mut [u8], oob: &mut [u8])
    -> Result<(), StoreError>;

    /// Keeps all bytes of sectors that were just written, `sector_bytes` each: they are whole from then on. Called only if
    /// content is stamps.
    ///
    /// # Errors
    /// If the backing failed; the sectors are then undefined.
    fn write_whole(&mut self, chunk: ChunkId, first: u32, bytes: &[u8]) -> Result<(), StoreError>;

    /// Fills `bytes` with all bytes of sectors from `first` on, `sector_bytes` each. A sector that is not whole gives its
    /// stamp and zeros. Called only if content is stamps.
    ///
    /// # Errors
    /// If the backing failed.
    fn read_whole(&mut self, chunk: ChunkId, first: u32, bytes: &mut [u8]) -> Result<(), StoreError>;

    /// Which of up to 64 sectors from `first` on are whole in the chunk's present life: bit `i` is sector `first + i`.
    fn whole_sectors(&self, chunk: ChunkId, first: u32, count: u32) -> u64;

    /// Keeps a chunk's record: it must be as durable as the content written before, and never torn.
    ///
    /// # Errors
    /// If the backing failed.
    fn keep(&mut self, chunk: ChunkId, record: &ChunkRecord) -> Result<(), StoreError>;

    /// Keeps which sectors of a chunk cannot be read, one bit each; all zero after a reset.
    ///
    /// # Errors
    /// If the backing failed.
    fn keep_unreadable(&mut self, chunk: ChunkId, bits: &[u64]) -> Result<(), StoreError>;

    /// Makes everything so far survive a crash of the host.
    ///
    /// # Errors
    /// If the backing failed.
    fn sync(&mut self) -> Result<(), StoreError>;
}

impl Store {
    pub(crate) fn write(
        &mut self,
        chunk: ChunkId,
        first: u32,
        data: &[u8],
        oob: &[u8],
    ) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                memory.write(chunk, first, data, oob);
                Ok(())
            }
            Self::Backed(backing) => backing.write(chunk, first, data, oob),
        }
    }

    pub(crate) fn read(
        &mut self,
        chunk: ChunkId,
        first: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                memory.read(chunk, first, data, oob);
                Ok(())
            }
            Self::Backed(backing) => backing.read(chunk, first, data, oob),
        }
    }

    /// Keeps all bytes of sectors that were just written.
    pub(crate) fn write_whole(&mut self, chunk: ChunkId, first: u32, bytes: &[u8]) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                memory.write_whole(chunk, first, bytes);
                Ok(())
            }
            Self::Backed(backing) => backing.write_whole(chunk, first, bytes),
        }
    }

    pub(crate) fn read_whole(
        &mut self,
        chunk: ChunkId,
        first: u32,
        bytes: &mut [u8],
    ) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                memory.read_whole(chunk, first, bytes);
                Ok(())
            }
            Self::Backed(backing) => backing.read_whole(chunk, first, bytes),
        }
    }

    /// Which of up to 64 sectors are whole, as bits.
    pub(crate) fn whole_sectors(&self, chunk: ChunkId, first: u32, count: u32) -> u64 {
        match self {
            Self::Memory(memory) => memory.whole_sectors(chunk, first, count),
            Self::Backed(backing) => backing.whole_sectors(chunk, first, count),
        }
    }

    pub(crate) fn keep(&mut self, chunk: ChunkId, record: &ChunkRecord) -> Result<(), StoreError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Backed(backing) => backing.keep(chunk, record),
        }
    }

    pub(crate) fn keep_unreadable(&mut self, chunk: ChunkId, bits: &[u64]) -> Result<(), StoreError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Backed(backing) => backing.keep_unreadable(chunk, bits),
        }
    }

    pub(crate) fn sync(&mut self) -> Result<(), StoreError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Backed(backing) => backing.sync(),
        }
    }

    /// Flips a bit of a written sector, if content is in memory.
    pub(crate) fn flip(&mut self, at: Ppa, metadata: bool, bit: u64) -> bool {
        match self {
            Self::Memory(memory) => memory.flip(at, metadata, bit),
            Self::Backed(_) => false,
        }
    }

    /// See `Memory::misplace`. False if a backing file holds the content.
    pub(crate) fn misplace(&mut self, from: Ppa, to: Option<Ppa>) -> bool {
        let Self::Memory(memory) = self else { return false };
        memory.misplace(from, to);
        true
    }

    /// Sets a chunk's content aside. A backing file keeps it in place: only the chunk's record makes it unreachable.
    pub(crate) fn set_aside(&mut self, chunk: ChunkId) -> SavedBlock {
        match self {
            Self::Memory(memory) => SavedBlock(memory.take(chunk)),
            Self::Backed(_) => SavedBlock::default(),
        }
    }

    /// Puts set-aside content back: the reset never happened.
    pub(crate) fn restore(&mut self, chunk: ChunkId, saved: SavedBlock) {
        if let Self::Memory(memory) = self {
            memory.restore(chunk, saved.0);
        }
    }

    /// Lets go of set-aside content: the media are erased.
    pub(crate) fn recycle(&mut self, saved: SavedBlock) {
        if let Self::Memory(memory) = self {
            memory.recycle(saved.0);
        }
    }
}
