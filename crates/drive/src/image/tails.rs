//! Where each chunk's tail begins, from one sync to the next.
//!
//! A sync makes every tail empty; a record says so when it is next written, at the latest at the sync after, so no sync
//! writes the records of chunks that it has just covered. And a chunk that a reset or a power cut made shorter is written
//! again only after a sync: until then its record of before may come back, and vouches for content that must not be
//! replaced below it.
//!
//! Memory: 16 bytes a chunk, and sets of the chunks that changed since the last two syncs. Deliberately not here: the file
//! (`store`), and digests (`tail`).

use super::layout::Layout;
use super::record::Kept;
use super::tail::{Digest, Tail};
use ocssd_flash::ChunkRecord;
use ocssd_lightnvm::{ChunkId, ChunkState};
use std::collections::BTreeSet;

/// Sectors that were stored and that no record counts yet.
#[derive(Clone, Copy, Debug)]
struct Stored {
    chunk: ChunkId,
    first: u32,
    end: u32,
    digest: Digest,
}

/// What a chunk's next record says of its tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This.
    Tail(Tail),
    /// It begins here, and its digest is to be read from the file.
    Read { first: u32 },
}

/// The tails of all chunks.
#[derive(Debug)]
pub(super) struct Tails {
    /// By chunk. Where it differs from the record in the file, a sync was after it.
    tails: Vec<Tail>,
    /// Their records changed since the last sync.
    changed: BTreeSet<ChunkId>,
    /// The last sync emptied their tails, and their records do not say so yet.
    outdated: BTreeSet<ChunkId>,
    /// They were made shorter since the last sync than it may have found them.
    shortened: BTreeSet<ChunkId>,
    /// By the last write.
    stored: Option<Stored>,
}

impl Tails {
    /// As the records in a file say. What was not synced when they were written is to be synced yet.
    pub(super) fn new(kept: &[Kept]) -> Self {
        let has_tail = |kept: &Kept| kept.tail.first < kept.record.write_pointer;
        let chunks = (0..).map(ChunkId).zip(kept);
        let changed = chunks.filter(|(_, kept)| has_tail(kept)).map(|(chunk, _)| chunk).collect();
        Self {
            tails: kept.iter().map(|kept| kept.tail).collect(),
            changed,
            outdated: BTreeSet::new(),
            shortened: BTreeSet::new(),
            stored: None,
        }
    }

    /// True if a sync has to come before anything is stored in this chunk.
    pub(super) fn needs_sync(&self, chunk: ChunkId) -> bool {
        self.shortened.contains(&chunk)
    }

    /// Sectors were stored.
    pub(super) fn store(&mut self, layout: &Layout, chunk: ChunkId, first: u32, (data, oob): (&[u8], &[u8])) {
        let unit = usize::try_from(layout.data_bytes).expect("32 bits fit an index");
        let end = first + u32::try_from(data.len() / unit).expect("at most a chunk");
        let mut digest = Digest::default();
        digest.add(layout, first, data, oob);
        let before = self.stored.filter(|stored| stored.chunk == chunk && stored.end == first);
        self.stored = Some(match before {
            Some(stored) => Stored { end, digest: stored.digest.and(digest), ..stored },
            None => Stored { chunk, first, end, digest },
        });
    }

    /// All bytes of sectors that were just stored.
    pub(super) fn store_whole(&mut self, layout: &Layout, chunk: ChunkId, first: u32, bytes: &[u8]) {
        let stored = self.stored.as_mut().filter(|stored| stored.chunk == chunk && stored.first <= first);
        let stored = stored.expect("sectors are whole only when their stamps were just written");
        stored.digest.add_whole(layout, first, bytes);
    }

    /// What the record that follows `before` says of the tail.
    pub(super) fn next(&mut self, chunk: ChunkId, before: &ChunkRecord, record: &ChunkRecord) -> Next {
        let now = self.tails[chunk.index()];
        let end = record.write_pointer;
        let stored = self.stored.take().filter(|stored| stored.chunk == chunk);
        if record.cycles != before.cycles || record.state == ChunkState::Offline {
            if before.write_pointer > 0 {
                self.shortened.insert(chunk);
            }
            return if end == 0 { Next::Tail(Tail::empty(0)) } else { Next::Read { first: 0 } };
        }
        if end == before.write_pointer {
            return Next::Tail(now);
        }
        match stored {
            Some(stored) if (stored.first, stored.end) == (before.write_pointer, end) => {
                Next::Tail(Tail { digest: now.digest.and(stored.digest), ..now })
            }
            _ if end > now.first => Next::Read { first: now.first },
            _ => {
                if end < now.first {
                    self.shortened.insert(chunk);
                }
                Next::Tail(Tail::empty(end))
            }
        }
    }

    /// A record is in the file.
    pub(super) fn put(&mut self, chunk: ChunkId, tail: Tail) {
        self.tails[chunk.index()] = tail;
        self.outdated.remove(&chunk);
        self.changed.insert(chunk);
    }

    /// True if a record changed since the last sync, or has a tail.
    pub(super) fn is_unsynced(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The tail of a chunk.
    pub(super) fn tail(&self, chunk: ChunkId) -> Tail {
        self.tails[chunk.index()]
    }

    /// A chunk whose record should be written before the next sync.
    pub(super) fn outdated(&self) -> Option<ChunkId> {
        self.outdated.first().copied()
    }

    /// Everything is on the disk.
    pub(super) fn synced(&mut self, kept: &[Kept]) {
        for chunk in std::mem::take(&mut self.changed) {
            let kept = kept[chunk.index()];
            let tail = Tail::empty(kept.record.write_pointer);
            self.tails[chunk.index()] = tail;
            if kept.tail != tail {
                self.outdated.insert(chunk);
            }
        }
        self.shortened.clear();
    }
}
