//! Files on the blocks of a target: a record each, and grains.
//!
//! What is written stays in memory until its file is synced, as in a page cache; a *batch* goes to the target as one
//! transaction, with the file's record if that changed. After a power cut a file is as it was synced last, or partly newer, as
//! SQLite expects of files; a batch is there as a whole or not at all. Deliberately not here: what SQLite calls (`vfs`, `io`),
//! who locks whom (`locks`).

use crate::blocks::{BLOCK_BYTES, Block, Blocks, NotCommitted, in_memory, zeroes};
use crate::counters::{Counters, FileKind};
use crate::grains::Grains;
use crate::record::{Extent, FIRST_GRAIN_BLOCK, Found, GRAIN_BLOCKS, NAME_BYTES_MAX, RECORDS, Record};
use crate::record::{found, volume_block};
use ocssd_table_store::{ErrorKind, StoreError, StoreOptions};
use std::collections::{BTreeMap, BTreeSet};

/// Blocks that wait for a sync, of all files; beyond that they are written (chosen: 16 MiB).
const DIRTY_MAX: usize = 4_096;
/// Fewest grains of a volume: a database, its journal and room for both to grow (chosen).
const GRAINS_MIN: u64 = 8;
/// Most grains that a file is given beyond what it needs (chosen: 4 MiB).
const GROWTH_MAX: u64 = 64;

/// A file of the volume, until it is deleted. No other gets its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId(u64);

/// A bug that is put in, for tests that must find it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    /// None.
    #[default]
    Nothing,
    /// A batch is written block by block instead of as a transaction.
    SplitBatch,
    /// A file's record is written after the batch instead of within it.
    RecordApart,
    /// After a batch that failed the journal is not synced before the database is written, as SQLite leaves it.
    JournalUnsynced,
}

/// A file.
#[derive(Clone, Debug)]
struct File {
    slot: u64,
    record: Record,
    /// The record on media is older.
    is_record_dirty: bool,
    /// Blocks of the file that wait for a sync.
    dirty: BTreeMap<u64, Block>,
}

/// The files of a target.
pub struct Volume {
    blocks: Blocks,
    grains: Grains,
    files: BTreeMap<FileId, File>,
    next_file: u64,
    dirty: usize,
    counters: Counters,
    planted: Planted,
}

fn error(kind: ErrorKind, sentence: impl Into<String>) -> StoreError {
    StoreError::new(kind, sentence)
}

/// The file's blocks that bytes lie in.
fn blocks_of(offset: u64, bytes: usize) -> std::ops::Range<u64> {
    let end = offset + bytes as u64;
    offset / BLOCK_BYTES as u64..end.div_ceil(BLOCK_BYTES as u64)
}

/// Puts the part of `bytes`, which begin at `offset` of the file, into its block `nth`.
fn lay(block: &mut Block, nth: u64, offset: u64, bytes: &[u8]) {
    let begin = nth * BLOCK_BYTES as u64;
    let from = in_memory(offset.saturating_sub(begin));
    let skip = in_memory(begin.saturating_sub(offset));
    let count = (BLOCK_BYTES - from).min(bytes.len() - skip);
    block[from..from + count].copy_from_slice(&bytes[skip..skip + count]);
}

impl Volume {
    /// The volume on a drive as options name it; on a fresh target it is made.
    ///
    /// # Errors
    /// If there is no such drive, another process has it, or what lies there is no volume.
    pub fn open(options: &StoreOptions, planted: Planted) -> Result<Self, StoreError> {
        let mut volume = Self {
            blocks: Blocks::open(options)?,
            grains: Grains::new(0),
            files: BTreeMap::new(),
            next_file: 0,
            dirty: 0,
            counters: Counters::default(),
            planted,
        };
        volume.load()?;
        Ok(volume)
    }

    /// Reads what the volume is, or makes it.
    fn load(&mut self) -> Result<(), StoreError> {
        let grains = self.blocks.count().saturating_sub(FIRST_GRAIN_BLOCK) / GRAIN_BLOCKS;
        if grains < GRAINS_MIN {
            let needed = (FIRST_GRAIN_BLOCK + GRAINS_MIN * GRAIN_BLOCKS) * BLOCK_BYTES as u64;
            return Err(error(
                ErrorKind::NoSpace,
                format!(
                    "the target has {} blocks of {BLOCK_BYTES} bytes, and a volume needs {needed} bytes; use a larger drive, or more units",
                    self.blocks.count()
                ),
            ));
        }
        let mut first = zeroes();
        self.blocks.read(0, &mut first[..])?;
        match found(&first) {
            Found::Nothing => self.format()?,
            Found::Volume(blocks) if blocks <= self.blocks.count() => {}
            Found::Volume(blocks) => {
                return Err(error(
                    ErrorKind::Corrupt,
                    format!(
                        "the volume was made with {blocks} blocks, and the target has {}; mount it as it was made",
                        self.blocks.count()
                    ),
                ));
            }
            Found::OtherVersion(version) => {
                return Err(error(
                    ErrorKind::Corrupt,
                    format!(
                        "the volume is of version {version}, and this program knows version 1; open it with the program that made it"
                    ),
                ));
            }
            Found::Other => {
                return Err(error(
                    ErrorKind::Corrupt,
                    "block 0 of the target is no volume for SQLite's files, and holds something; use other units, or another image",
                ));
            }
        }
        self.load_records(grains)
    }

    fn format(&mut self) -> Result<(), StoreError> {
        let records: Vec<(u64, Block)> = (1..=RECORDS).map(|block| (block, zeroes())).collect();
        self.blocks.write(&records)?;
        self.blocks.flush()?;
        self.blocks.write(&[(0, volume_block(self.blocks.count()))])?;
        self.blocks.flush()
    }

    fn load_records(&mut self, grains: u64) -> Result<(), StoreError> {
        (self.grains, self.dirty) = (Grains::new(grains), 0);
        self.files.clear();
        let mut bytes = vec![0; in_memory(RECORDS) * BLOCK_BYTES];
        self.blocks.read(1, &mut bytes)?;
        for (slot, block) in (0..RECORDS).zip(bytes.chunks(BLOCK_BYTES)) {
            let block: Block = Box::new(block.try_into().expect("a block"));
            let wrong =
                |why: String| error(ErrorKind::Corrupt, format!("record {slot} of the volume: {why}"));
            let Some(record) = Record::decode(&block, grains).map_err(wrong)? else { continue };
            self.grains
                .take(&record)
                .map_err(|grain| wrong(format!("grain {grain} is {}'s and another file's", record.name)))?;
            self.add(slot, record);
        }
        Ok(())
    }

    fn add(&mut self, slot: u64, record: Record) -> FileId {
        let id = FileId(self.next_file);
        self.next_file += 1;
        let file = File { slot, record, is_record_dirty: false, dirty: BTreeMap::new() };
        self.files.insert(id, file);
        id
    }

    /// What lies below.
    pub const fn blocks(&mut self) -> &mut Blocks {
        &mut self.blocks
    }

    /// The power is there again: everything that was not on media is forgotten.
    ///
    /// # Errors
    /// If target or volume cannot be mounted.
    pub fn restart(&mut self) -> Result<(), StoreError> {
        self.blocks.restart()?;
        self.load()
    }

    /// What was done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { blocks_written: self.blocks.written, flushes: self.blocks.flushes, ..self.counters }
    }

    /// The counters, for who knows what a file is to SQLite.
    pub const fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// The file of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<FileId> {
        self.files.iter().find(|(_, file)| file.record.name == name).map(|(&id, _)| id)
    }

    /// Begins a file; it is on media after its first sync.
    ///
    /// # Errors
    /// If there is no record for it.
    pub fn create(&mut self, name: &str) -> Result<FileId, StoreError> {
        assert!(self.find(name).is_none(), "{name} is there");
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(error(
                ErrorKind::Invalid,
                format!("a name has 1 to {NAME_BYTES_MAX} bytes, and \"{name}\" has {}", name.len()),
            ));
        }
        let used: BTreeSet<u64> = self.files.values().map(|file| file.slot).collect();
        let slot = (0..RECORDS).find(|slot| !used.contains(slot)).ok_or_else(|| {
            error(
                ErrorKind::NoSpace,
                format!("a volume has up to {RECORDS} files; delete one to make {name}"),
            )
        })?;
        let id = self.add(slot, Record { name: name.to_owned(), ..Record::default() });
        self.file_mut(id)?.is_record_dirty = true;
        Ok(id)
    }

    /// Deletes a file. `is_durable`: it does not come back after a power cut.
    ///
    /// # Errors
    /// If the drive fails.
    pub fn delete(&mut self, id: FileId, is_durable: bool) -> Result<(), StoreError> {
        let Some(file) = self.files.remove(&id) else { return Ok(()) };
        self.dirty -= file.dirty.len();
        self.grains.give_up(&file.record.extents);
        self.blocks.write(&[(1 + file.slot, zeroes())])?;
        if is_durable { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.blocks.flush()?;
        self.grains.flushed();
        Ok(())
    }

    fn file(&self, id: FileId) -> Result<&File, StoreError> {
        self.files
            .get(&id)
            .ok_or_else(|| error(ErrorKind::NotFound, "the file was deleted while it was open"))
    }

    fn file_mut(&mut self, id: FileId) -> Result<&mut File, StoreError> {
        let file = self.files.get_mut(&id);
        file.ok_or_else(|| error(ErrorKind::NotFound, "the file was deleted while it was open"))
    }

    /// Bytes of a file.
    ///
    /// # Errors
    /// If it was deleted.
    pub fn bytes(&self, id: FileId) -> Result<u64, StoreError> {
        Ok(self.file(id)?.record.bytes)
    }

    /// Block `nth` of a file, as it is now.
    fn block(&mut self, id: FileId, nth: u64) -> Result<Block, StoreError> {
        let file = self.file(id)?;
        if let Some(block) = file.dirty.get(&nth) {
            return Ok(block.clone());
        }
        let mut block = zeroes();
        let is_within = nth * (BLOCK_BYTES as u64) < file.record.bytes;
        if let Some((place, _)) = file.record.place(nth).filter(|_| is_within) {
            self.blocks.read(place, &mut block[..])?;
        }
        Ok(block)
    }

    /// Reads from `offset` on, as much as there is. Returns how many bytes that was; the rest of `into` is zeroes.
    ///
    /// # Errors
    /// If the drive fails.
    pub fn read(&mut self, id: FileId, offset: u64, into: &mut [u8]) -> Result<usize, StoreError> {
        into.fill(0);
        let left = self.bytes(id)?.saturating_sub(offset);
        let count = in_memory(left.min(into.len() as u64));
        for nth in blocks_of(offset, count) {
            let block = self.block(id, nth)?;
            let begin = nth * BLOCK_BYTES as u64;
            let from = in_memory(offset.saturating_sub(begin));
            let at = in_memory(begin.saturating_sub(offset));
            let part = (BLOCK_BYTES - from).min(count - at);
            into[at..at + part].copy_from_slice(&block[from..from + part]);
        }
        Ok(count)
    }

    /// Writes from `offset` on, into memory; durable after a sync. What lies between the file's end and `offset` is zeroes.
    ///
    /// # Errors
    /// If the volume is full, or the drive fails; then nothing was written.
    pub fn write(&mut self, id: FileId, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let end = self.bytes(id)?;
        if offset > end {
            self.resize(id, offset)?;
        }
        self.grow(id, offset + bytes.len() as u64)?;
        for nth in blocks_of(offset, bytes.len()) {
            let mut block = self.block(id, nth)?;
            lay(&mut block, nth, offset, bytes);
            self.put_dirty(id, nth, block)?;
        }
        let file = self.file_mut(id)?;
        let grown = file.record.bytes.max(offset + bytes.len() as u64);
        file.is_record_dirty |= grown != file.record.bytes;
        file.record.bytes = grown;
        if self.dirty > DIRTY_MAX { self.write_out(id) } else { Ok(()) }
    }

    fn put_dirty(&mut self, id: FileId, nth: u64, block: Block) -> Result<(), StoreError> {
        let is_new = self.file_mut(id)?.dirty.insert(nth, block).is_none();
        self.dirty += usize::from(is_new);
        Ok(())
    }

    /// Gives a file grains for so many bytes.
    fn grow(&mut self, id: FileId, bytes: u64) -> Result<(), StoreError> {
        loop {
            let record = &self.file(id)?.record;
            let has = record.grains();
            let needs = bytes.div_ceil(GRAIN_BLOCKS * BLOCK_BYTES as u64);
            if needs <= has {
                return Ok(());
            }
            let wanted = (needs - has).max((has / 8).min(GROWTH_MAX));
            let after = record.extents.last().map(|last| last.first + last.count);
            if self.grains.free() == 0 && self.grains.has_pending() {
                self.flush()?;
            }
            let full =
                || error(ErrorKind::NoSpace, "the volume is full; delete files, or use a larger drive");
            let grains = self.grains.find(in_memory(wanted), after).ok_or_else(full)?;
            let file = self.file_mut(id)?;
            if !file.record.append(grains.clone()) {
                let unused = Extent { first: grains.start, count: grains.end - grains.start };
                self.grains.return_unused(unused);
                return Err(error(
                    ErrorKind::NoSpace,
                    "a file of the volume is in too many pieces; use a larger drive",
                ));
            }
            file.is_record_dirty = true;
        }
    }

    /// Makes a file `bytes` long; what is new is zeroes. Durable after a sync.
    ///
    /// # Errors
    /// If the volume is full, or the drive fails.
    pub fn resize(&mut self, id: FileId, bytes: u64) -> Result<(), StoreError> {
        let before = self.bytes(id)?;
        if bytes > before {
            self.grow(id, bytes)?;
            for nth in before.div_ceil(BLOCK_BYTES as u64)..bytes.div_ceil(BLOCK_BYTES as u64) {
                self.put_dirty(id, nth, zeroes())?;
            }
        } else if !bytes.is_multiple_of(BLOCK_BYTES as u64) {
            // What comes behind the end later must not find what was there.
            let nth = bytes / BLOCK_BYTES as u64;
            let mut block = self.block(id, nth)?;
            block[in_memory(bytes % BLOCK_BYTES as u64)..].fill(0);
            self.put_dirty(id, nth, block)?;
        }
        let file = self.file_mut(id)?;
        file.is_record_dirty |= bytes != before;
        file.record.bytes = bytes;
        let blocks = bytes.div_ceil(BLOCK_BYTES as u64);
        let behind = file.dirty.split_off(&blocks);
        let freed = file.record.keep(blocks.div_ceil(GRAIN_BLOCKS));
        self.dirty -= behind.len();
        self.grains.give_up(&freed);
        Ok(())
    }

    /// The volume's blocks of those that a file keeps in memory; they wait no longer.
    fn take_dirty(&mut self, id: FileId) -> Result<Vec<(u64, Block)>, StoreError> {
        let file = self.file_mut(id)?;
        let dirty = std::mem::take(&mut file.dirty);
        let place = |nth| file.record.place(nth).expect("a block that was written has a place").0;
        let mut blocks: Vec<(u64, Block)> =
            dirty.into_iter().map(|(nth, block)| (place(nth), block)).collect();
        self.dirty -= blocks.len();
        blocks.sort_unstable_by_key(|&(place, _)| place);
        Ok(blocks)
    }

    /// Writes what a file keeps in memory; it is not durable by that.
    fn write_out(&mut self, id: FileId) -> Result<(), StoreError> {
        let blocks = self.take_dirty(id)?;
        self.blocks.write(&blocks)
    }

    /// The record of a file, if it is not on media as it is.
    fn changed_record(&mut self, id: FileId) -> Result<Option<(u64, Block)>, StoreError> {
        let file = self.file_mut(id)?;
        let is_changed = std::mem::take(&mut file.is_record_dirty);
        Ok(is_changed.then(|| (1 + file.slot, file.record.encode())))
    }

    /// Makes a file durable as it is.
    ///
    /// # Errors
    /// If the drive fails.
    pub fn sync(&mut self, id: FileId) -> Result<(), StoreError> {
        self.write_out(id)?;
        if let Some(record) = self.changed_record(id)? {
            self.blocks.write(&[record])?;
        }
        self.flush()
    }

    /// Makes the rollback journal of a database durable as it is, if there is one.
    ///
    /// # Errors
    /// If the drive fails.
    pub fn sync_journal_of(&mut self, id: FileId) -> Result<(), StoreError> {
        if self.planted == Planted::JournalUnsynced {
            return Ok(());
        }
        let name = format!("{}-journal", self.file(id)?.record.name);
        self.find(&name).map_or(Ok(()), |journal| self.sync(journal))
    }

    /// Writes of a batch, each at its offset, as one transaction with the file's record: all of them or none.
    ///
    /// # Errors
    /// Why none. SQLite then writes them with a journal.
    pub fn commit(&mut self, id: FileId, writes: &[(u64, Vec<u8>)]) -> Result<(), NotCommitted> {
        let failed = NotCommitted::Failed;
        let mut content: BTreeMap<u64, Block> = BTreeMap::new();
        let mut end = self.bytes(id).map_err(failed)?;
        for (offset, bytes) in writes {
            for nth in blocks_of(*offset, bytes.len()) {
                let mut block = match content.remove(&nth) {
                    Some(block) => block,
                    None => self.block(id, nth).map_err(failed)?,
                };
                lay(&mut block, nth, *offset, bytes);
                content.insert(nth, block);
            }
            end = end.max(offset + bytes.len() as u64);
        }
        // What is behind the end, and not written, is zeroes.
        let before = self.bytes(id).map_err(failed)?.div_ceil(BLOCK_BYTES as u64);
        for nth in before..end.div_ceil(BLOCK_BYTES as u64) {
            content.entry(nth).or_insert_with(zeroes);
        }
        if self.blocks.transaction_blocks() <= content.len() {
            self.counters.batches_too_long += 1;
            return Err(NotCommitted::TooLong);
        }
        self.grow(id, end).map_err(failed)?;
        self.write_batch(id, content, end)
    }

    fn write_batch(
        &mut self,
        id: FileId,
        content: BTreeMap<u64, Block>,
        end: u64,
    ) -> Result<(), NotCommitted> {
        let failed = NotCommitted::Failed;
        let file = self.file_mut(id).map_err(failed)?;
        let before = (file.record.bytes, file.is_record_dirty);
        file.is_record_dirty |= end != file.record.bytes;
        file.record.bytes = end;
        let numbers: Vec<u64> = content.keys().copied().collect();
        let place = |nth| file.record.place(nth).expect("the file has grown").0;
        let mut blocks: Vec<(u64, Block)> =
            content.into_iter().map(|(nth, block)| (place(nth), block)).collect();
        let record = self.changed_record(id).map_err(failed)?;
        let written = match self.planted {
            Planted::Nothing | Planted::JournalUnsynced => {
                blocks.extend(record);
                blocks.sort_unstable_by_key(|&(place, _)| place);
                self.blocks.commit(&blocks)
            }
            Planted::SplitBatch => {
                blocks.extend(record);
                blocks.into_iter().try_for_each(|block| self.blocks.write(&[block])).map_err(failed)
            }
            Planted::RecordApart => {
                blocks.sort_unstable_by_key(|&(place, _)| place);
                let records: Vec<(u64, Block)> = record.into_iter().collect();
                let committed = self.blocks.commit(&blocks);
                committed.and_then(|()| self.blocks.write(&records).map_err(failed))
            }
        };
        let file = self.file_mut(id).map_err(failed)?;
        if written.is_ok() {
            let stale = numbers.iter().filter(|nth| file.dirty.remove(nth).is_some()).count();
            self.dirty -= stale;
            self.counters.batches += 1;
        } else {
            (file.record.bytes, file.is_record_dirty) = (before.0, true);
            self.counters.batches_too_long += u64::from(matches!(written, Err(NotCommitted::TooLong)));
        }
        written
    }

    /// Everything is durable, and the target is left; nothing may be asked afterwards.
    ///
    /// # Errors
    /// If the drive fails.
    pub fn close(&mut self) -> Result<(), StoreError> {
        let all: Vec<FileId> = self.files.keys().copied().collect();
        all.into_iter().try_for_each(|id| self.sync(id))?;
        self.blocks.close()
    }

    /// What a file of this name is to SQLite, by the end of its name.
    #[must_use]
    pub fn kind_of(name: &str) -> FileKind {
        if name.ends_with("-wal") {
            FileKind::Wal
        } else if name.ends_with("-journal") || name.contains("-mj") {
            FileKind::Journal
        } else {
            FileKind::Database
        }
    }
}
