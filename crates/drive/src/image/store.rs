//! Content and chunk records in the image file, as the drive asks for them.
//!
//! Every call ends in writes at places; nothing is buffered here. Memory: 48 bytes a chunk, what the file holds of each
//! record, so that only changes are written, and where its tail begins; and the flags of whole sectors.

use super::file::{Action, ImageFile};
use super::layout::Layout;
use super::marks;
use super::record::Kept;
use super::tail::{Digest, Tail};
use super::tails::{Next, Tails};
use super::whole::WholeFlags;
use ocssd_flash::ChunkRecord;
use ocssd_flash::store::{Backing, StoreError, StoreErrorKind};
use ocssd_lightnvm::ChunkId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes of metadata that are cleared by one write.
const ZEROS: [u8; 4096] = [0; 4096];

/// The image as a drive's store.
pub(super) struct ImageStore {
    file: Arc<ImageFile>,
    layout: Layout,
    /// What the file holds of each chunk, by index.
    kept: Vec<Kept>,
    /// Chunks whose marks were taken back and whose next record says why; at most one per chunk.
    unmarked: BTreeSet<ChunkId>,
    /// Which sectors are whole, as the file says it too.
    whole: WholeFlags,
    /// What no sync has covered.
    tails: Tails,
}

impl ImageStore {
    pub(super) fn new(file: Arc<ImageFile>, layout: Layout, kept: Vec<Kept>, whole: WholeFlags) -> Self {
        assert_eq!(kept.len(), ChunkId(layout.chunks).index(), "one record per chunk");
        let tails = Tails::new(&kept);
        Self { file, layout, kept, unmarked: BTreeSet::new(), whole, tails }
    }

    /// True if anything is there that no sync covered, as far as is known.
    pub(super) fn has_tails(&self) -> bool {
        self.tails.is_unsynced()
    }

    /// The chunk's life as its record in the file says.
    fn life(&self, chunk: ChunkId) -> u32 {
        self.kept[chunk.index()].record.cycles
    }

    /// Writes the flags of a chunk's whole sectors in its present life.
    fn put_flags(&self, chunk: ChunkId) -> Result<(), StoreError> {
        let life = self.life(chunk);
        let bits = self.whole.bits(chunk, life).expect("flags are written only where there are some");
        self.put(self.layout.whole_flags(chunk), &marks::encode(chunk, life, bits))
    }

    fn put(&self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        if !self.file.writable {
            let path = self.file.path().display();
            let sentence =
                format!("{path} was opened read-only, so it cannot be written; open it for writing");
            return Err(StoreError { kind: StoreErrorKind::Failed, sentence });
        }
        self.file.write(at, bytes).map_err(|error| self.file.store_error(Action::Write { at }, &error))
    }

    fn take(&self, at: u64, bytes: &mut [u8]) -> Result<(), StoreError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.file.read(at, bytes).map_err(|error| self.file.store_error(Action::Read { at }, &error))
    }

    fn put_record(&mut self, chunk: ChunkId, kept: Kept) -> Result<(), StoreError> {
        if self.kept[chunk.index()] == kept {
            return Ok(());
        }
        self.put(self.layout.record(chunk), &kept.encode(chunk))?;
        self.kept[chunk.index()] = kept;
        self.tails.put(chunk, kept.tail);
        Ok(())
    }

    /// What the chunk's next record says of its tail.
    fn tail_of(&mut self, chunk: ChunkId, record: &ChunkRecord) -> Result<Tail, StoreError> {
        let before = self.kept[chunk.index()].record;
        let first = match self.tails.next(chunk, &before, record) {
            Next::Tail(tail) => return Ok(tail),
            Next::Read { first } => first,
        };
        let is_whole = |sector| self.whole.sectors(chunk, record.cycles, sector, 1) == 1;
        let (file, sectors) = ((&*self.file, &self.layout), first..record.write_pointer);
        let digest = Digest::read(file, chunk, sectors, is_whole);
        let digest = digest.map_err(|(at, error)| self.file.store_error(Action::Read { at }, &error))?;
        Ok(Tail { first, digest })
    }

    /// Called between the first pages of marks or flags of a chunk's life and the record that makes them count. Else the
    /// record might be on the disk after a crash of the host, and in the place of the pages older ones: of the same life, if
    /// the crash before took that life's record. What no sync covered its digest finds.
    fn sync_pages(&mut self, chunk: ChunkId) -> Result<(), StoreError> {
        if self.tails.tail(chunk).first > 0 { self.sync() } else { Ok(()) }
    }

    /// Metadata of sectors written without any reads as zero.
    fn clear_oob(&self, chunk: ChunkId, first: u32, sectors: u64) -> Result<(), StoreError> {
        let mut at = self.layout.oob(chunk, first);
        let end = at + sectors * u64::from(self.layout.oob_bytes);
        while at < end {
            let piece = usize::try_from(end - at).unwrap_or(ZEROS.len()).min(ZEROS.len());
            self.put(at, &ZEROS[..piece])?;
            at += u64::try_from(piece).expect("a page");
        }
        Ok(())
    }
}

impl Backing for ImageStore {
    fn write(&mut self, chunk: ChunkId, first: u32, data: &[u8], oob: &[u8]) -> Result<(), StoreError> {
        let bytes = u64::try_from(data.len()).expect("a length fits 64 bits");
        let unit = u64::from(self.layout.data_bytes);
        assert!(bytes.is_multiple_of(unit), "{bytes} bytes are no whole sectors of {unit}");
        let sectors = bytes / unit;
        let room = u64::from(self.layout.sectors_per_chunk - first);
        assert!(sectors <= room, "{sectors} sectors from {first} on are beyond the chunk");
        let count = u32::try_from(sectors).expect("at most a chunk");
        if self.tails.needs_sync(chunk) {
            self.sync()?;
        }
        self.tails.store(&self.layout, chunk, first, (data, oob));
        if self.whole.clear(chunk, self.life(chunk), first, count) {
            self.put_flags(chunk)?;
        }
        self.put(self.layout.data(chunk, first), data)?;
        if oob.is_empty() {
            return self.clear_oob(chunk, first, sectors);
        }
        self.put(self.layout.oob(chunk, first), oob)
    }

    fn read(
        &mut self,
        chunk: ChunkId,
        first: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<(), StoreError> {
        self.take(self.layout.data(chunk, first), data)?;
        self.take(self.layout.oob(chunk, first), oob)
    }

    /// The flags come after the bytes, and the record, which makes both count, after the flags.
    fn write_whole(&mut self, chunk: ChunkId, first: u32, bytes: &[u8]) -> Result<(), StoreError> {
        let length = u32::try_from(bytes.len()).expect("a command's sectors are below 4 GiB");
        assert!(length.is_multiple_of(self.layout.whole_bytes), "{length} bytes are no whole sectors");
        let count = length / self.layout.whole_bytes;
        assert!(count <= self.layout.sectors_per_chunk - first, "{count} sectors reach beyond the chunk");
        self.tails.store_whole(&self.layout, chunk, first, bytes);
        self.put(self.layout.whole(chunk, first), bytes)?;
        let are_first = self.whole.bits(chunk, self.life(chunk)).is_none();
        self.whole.set(chunk, self.life(chunk), (first, count), self.layout.words());
        self.put_flags(chunk)?;
        if are_first { self.sync_pages(chunk) } else { Ok(()) }
    }

    fn read_whole(&mut self, chunk: ChunkId, first: u32, bytes: &mut [u8]) -> Result<(), StoreError> {
        let index = |bytes: u32| usize::try_from(bytes).expect("32 bits fit an index");
        let (unit, stamp) = (index(self.layout.whole_bytes), index(self.layout.data_bytes));
        assert!(bytes.len().is_multiple_of(unit), "{} bytes are no whole sectors of {unit}", bytes.len());
        for (sector, place) in (first..).zip(bytes.chunks_exact_mut(unit)) {
            if self.whole_sectors(chunk, sector, 1) == 1 {
                self.take(self.layout.whole(chunk, sector), place)?;
                continue;
            }
            let (place, rest) = place.split_at_mut(stamp);
            self.take(self.layout.data(chunk, sector), place)?;
            rest.fill(0);
        }
        Ok(())
    }

    fn whole_sectors(&self, chunk: ChunkId, first: u32, count: u32) -> u64 {
        self.whole.sectors(chunk, self.life(chunk), first, count)
    }

    fn keep(&mut self, chunk: ChunkId, record: &ChunkRecord) -> Result<(), StoreError> {
        let Kept { marked, record: before, .. } = self.kept[chunk.index()];
        // Flags count from here on. A reset begins a life without any; an undone one comes back with them.
        let whole = self.whole.bits(chunk, record.cycles).is_some();
        let tail = self.tail_of(chunk, record)?;
        self.put_record(chunk, Kept { record: *record, marked, whole, tail })?;
        if self.unmarked.remove(&chunk) && before.cycles == record.cycles {
            // A power cut took the marked sectors back. Only now may the marks go: the record has voided them.
            let pages = marks::encode(chunk, record.cycles, &vec![0; self.layout.words()]);
            return self.put(self.layout.marks(chunk), &pages);
        }
        Ok(())
    }

    /// An empty slice waits for the chunk's record. After a reset that begins another life, and nothing is to be
    /// written (see `marks`); were the marks cleared before it, a process that ended in between would have lost them.
    fn keep_unreadable(&mut self, chunk: ChunkId, bits: &[u64]) -> Result<(), StoreError> {
        if bits.is_empty() {
            if self.kept[chunk.index()].marked {
                self.unmarked.insert(chunk);
            }
            return Ok(());
        }
        self.unmarked.remove(&chunk);
        let kept = self.kept[chunk.index()];
        let pages = marks::encode(chunk, kept.record.cycles, bits);
        self.put(self.layout.marks(chunk), &pages)?;
        if !kept.marked {
            self.sync_pages(chunk)?;
        }
        let kept = self.kept[chunk.index()];
        self.put_record(chunk, Kept { marked: true, tail: self.tails.tail(chunk), ..kept })
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        while let Some(chunk) = self.tails.outdated() {
            let tail = self.tails.tail(chunk);
            self.put_record(chunk, Kept { tail, ..self.kept[chunk.index()] })?;
        }
        self.file.sync().map_err(|error| self.file.store_error(Action::Sync, &error))?;
        self.tails.synced(&self.kept);
        Ok(())
    }
}
