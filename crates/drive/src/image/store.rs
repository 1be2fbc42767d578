//! Content and chunk records in the image file, as the drive asks for them.
//!
//! Every call ends in writes at places; nothing is buffered here. Memory: 16 bytes a chunk, what the file holds of each
//! record, so that only changes are written.

use super::file::ImageFile;
use super::layout::Layout;
use super::marks;
use super::record::Kept;
use ocssd_flash::ChunkRecord;
use ocssd_flash::store::{Backing, StoreError};
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
}

impl ImageStore {
    pub(super) fn new(file: Arc<ImageFile>, layout: Layout, kept: Vec<Kept>) -> Self {
        assert_eq!(kept.len(), ChunkId(layout.chunks).index(), "one record per chunk");
        Self { file, layout, kept, unmarked: BTreeSet::new() }
    }

    fn put(&self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        if !self.file.writable {
            let path = self.file.path().display();
            return Err(StoreError(format!(
                "{path} was opened read-only, so it cannot be written; open it for writing"
            )));
        }
        self.file.write(at, bytes).map_err(|error| self.file.store_error("written", at, &error))
    }

    fn take(&self, at: u64, bytes: &mut [u8]) -> Result<(), StoreError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.file.read(at, bytes).map_err(|error| self.file.store_error("read", at, &error))
    }

    fn put_record(&mut self, chunk: ChunkId, kept: Kept) -> Result<(), StoreError> {
        if self.kept[chunk.index()] == kept {
            return Ok(());
        }
        self.put(self.layout.record(chunk), &kept.encode(chunk))?;
        self.kept[chunk.index()] = kept;
        Ok(())
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

    fn keep(&mut self, chunk: ChunkId, record: &ChunkRecord) -> Result<(), StoreError> {
        let Kept { marked, record: before } = self.kept[chunk.index()];
        self.put_record(chunk, Kept { record: *record, marked })?;
        if self.unmarked.remove(&chunk) && before.cycles == record.cycles {
            // A power cut took the marked sectors back. Only now may the marks go: the record has voided them.
            let words =
                usize::try_from(self.layout.sectors_per_chunk.div_ceil(64)).expect("32 bits fit an index");
            let pages = marks::encode(chunk, record.cycles, &vec![0; words]);
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
        self.put_record(chunk, Kept { marked: true, ..kept })
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.file.sync().map_err(|error| self.file.store_error("written to the disk", 0, &error))
    }
}
