//! The bytes of one file: what is pending in memory, what the drive was given, and when it is published.
//!
//! Locks are taken in one order: a file's content, then the names, then the drive. Deliberately not here: names.

use crate::error::{ErrorKind, StoreError};
use crate::log_tail::LogTail;
use crate::names::{Identity, Place};
use crate::record::{Class, Record, RecordKind};
use crate::shared_drive::{EditRow, REQUEST_BYTES_MAX};
use crate::store::Store;
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::table::{EditOp, TableHint, TableId, TableKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes a file holds in memory before the drive gets them (chosen: several write units of any drive, so that little is padded
/// when a log's are made durable).
pub const PENDING_BYTES: usize = 1 << 20;
/// Appends of this size go to the drive without being kept here first (chosen: a copy costs more than a request).
const DIRECT_BYTES: usize = 64 << 10;
/// Most bytes of a file in memory; beyond it the older half goes (chosen: days of RocksDB's log for people).
const MEMORY_BYTES_MAX: usize = 16 << 20;

/// A file.
#[derive(Debug)]
pub struct File {
    /// Its number in this process.
    pub number: u64,
    /// How it lies on the drive.
    pub class: Class,
    content: Mutex<Content>,
    bytes: AtomicU64,
    modified_ns: AtomicU64,
}

/// What of a file is where.
#[derive(Debug)]
pub struct Content {
    /// On the drive; the names know the same.
    pub identity: Identity,
    /// Bytes the drive was given.
    pub given: u64,
    /// Bytes behind them. Of a file whose content lies in its record, and of one in memory, all of its bytes.
    pub pending: Vec<u8>,
    /// Of a log: up to where its bytes survive the process.
    kept: u64,
    /// Of a log on an image.
    tail: Option<LogTail>,
    /// What is known of it before it is written.
    pub hint: TableHint,
    /// Bytes it will have; 0 says nothing.
    pub bytes_expected: u64,
    /// The drive was given what is not durable.
    is_dirty: bool,
}

/// Where a file is to appear.
#[derive(Clone, Debug)]
pub struct NewPlace {
    /// The place.
    pub place: Place,
    /// What may lie there, and goes in the same edit.
    pub replace: Replace,
}

/// What may lie at the place of a file that appears there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// No file.
    Nothing,
    /// A file, or none.
    Anything,
    /// The file that lies in this table, and was changed at this time.
    Only {
        /// [`crate::FileStatus::table`].
        table: TableId,
        /// [`crate::FileStatus::modified_ns`].
        modified_ns: u64,
    },
}

/// Nanoseconds since 1970.
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

impl File {
    /// A file of `bytes` bytes, `pending` of which are in memory.
    pub fn new(number: u64, class: Class, identity: Identity, given: u64, pending: Vec<u8>) -> Self {
        let bytes = given + pending.len() as u64;
        let content = Content {
            identity,
            given,
            pending,
            kept: bytes,
            tail: None,
            hint: TableHint::default(),
            bytes_expected: 0,
            is_dirty: false,
        };
        let (bytes, modified_ns) = (AtomicU64::new(bytes), AtomicU64::new(now_ns()));
        Self { number, class, content: Mutex::new(content), bytes, modified_ns }
    }

    /// The same, changed at this time.
    pub fn modified_at(self, ns: u64) -> Self {
        self.modified_ns.store(ns, Ordering::Relaxed);
        self
    }

    /// The same, with a tail.
    pub fn with_tail(mut self, tail: Option<LogTail>) -> Self {
        self.content.get_mut().expect("nobody else has it").tail = tail;
        self
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Nanoseconds since 1970.
    pub fn modified_ns(&self) -> u64 {
        self.modified_ns.load(Ordering::Relaxed)
    }

    fn touch(&self) {
        self.modified_ns.store(now_ns(), Ordering::Relaxed);
    }

    /// The right to its content.
    ///
    /// # Errors
    /// After a bug.
    pub fn content(&self) -> Result<MutexGuard<'_, Content>, StoreError> {
        self.content.lock().map_err(|_| {
            StoreError::new(
                ErrorKind::Io,
                "a bug in ocssd stopped an earlier call on this file; open the drive anew",
            )
        })
    }

    fn note_bytes(&self, content: &Content) {
        self.bytes.store(content.given + content.pending.len() as u64, Ordering::Release);
    }
}

impl Store {
    /// Adds to the end of a file.
    pub(crate) fn append(&self, file: &File, bytes: &[u8]) -> Result<(), StoreError> {
        let mut content = file.content()?;
        let content = &mut *content;
        if file.class == Class::Memory {
            content.pending.extend_from_slice(bytes);
            let beyond = content.pending.len() > MEMORY_BYTES_MAX;
            if beyond {
                content.pending.drain(..MEMORY_BYTES_MAX / 2);
            }
            file.note_bytes(content);
            return Ok(());
        }
        if let Identity::Published { .. } = content.identity {
            self.write_again(file, content, u64::MAX)?;
        }
        let before = content.given + content.pending.len() as u64;
        let added = self.add(file, content, bytes);
        if added.is_err() {
            // Of what was to be added there stays what the drive has: as much as a file system keeps of such a write.
            let keep = usize::try_from(before.saturating_sub(content.given)).unwrap_or(usize::MAX);
            content.pending.truncate(keep);
        }
        file.note_bytes(content);
        added
    }

    fn add(&self, file: &File, content: &mut Content, bytes: &[u8]) -> Result<(), StoreError> {
        if file.class == Class::Table && bytes.len() >= DIRECT_BYTES {
            self.give_pending(file, content, Durability::AtFlush)?;
            return self.give(file, content, bytes, Durability::AtFlush).1;
        }
        content.pending.extend_from_slice(bytes);
        if content.pending.len() < PENDING_BYTES {
            return Ok(());
        }
        // What a tail keeps may be forgotten once the drive has it for good.
        let durability = if content.tail.is_some() { Durability::AtReply } else { Durability::AtFlush };
        self.give_pending(file, content, durability)
    }

    /// Gives the drive what is pending.
    fn give_pending(
        &self,
        file: &File,
        content: &mut Content,
        durability: Durability,
    ) -> Result<(), StoreError> {
        if content.pending.is_empty() {
            return Ok(());
        }
        let pending = std::mem::take(&mut content.pending);
        let (given, result) = self.give(file, content, &pending, durability);
        content.pending = pending;
        content.pending.drain(..given);
        result
    }

    /// Gives the drive these bytes. Says how many it has.
    fn give(
        &self,
        file: &File,
        content: &mut Content,
        bytes: &[u8],
        durability: Durability,
    ) -> (usize, Result<(), StoreError>) {
        let table = match self.table_of(file, content) {
            Ok(table) => table,
            Err(error) => return (0, Err(error)),
        };
        let (given, result) = self.drive.append(table, bytes, durability);
        content.given += given as u64;
        content.is_dirty = true;
        if file.class == Class::Log && durability == Durability::AtReply && result.is_ok() {
            content.is_dirty = false;
            content.kept = content.given;
            content.tail.iter_mut().for_each(LogTail::begin_again);
        }
        file.touch();
        (given, result)
    }

    /// The table or log a file's bytes go to; an unpublished one is begun if there is none.
    fn table_of(&self, file: &File, content: &mut Content) -> Result<TableId, StoreError> {
        match content.identity {
            Identity::Unpublished(table) | Identity::Log(table) => return Ok(table),
            Identity::Published { table, .. } => unreachable!("table {} is published, and grows", table.0),
            Identity::Absent => {}
        }
        let mut names = self.names()?;
        let table = names.next_table();
        let Some(entry) = names.file_mut(file.number) else { return Err(gone()) };
        let create = |bytes| self.drive.create(table, TableKind::Table, content.hint, bytes);
        let expected = content.bytes_expected.min(self.drive.limits().table_bytes_max);
        match create(expected) {
            // What was announced was a guess: the file may yet be shorter.
            Err(error) if error.kind == ErrorKind::NoSpace && expected > 0 => create(0)?,
            other => other?,
        }
        entry.identity = Identity::Unpublished(table);
        content.identity = entry.identity;
        Ok(table)
    }

    /// Bytes of content that fit into the record of a file at this place.
    fn inline_max(&self, place: &Place, label: &[u8]) -> Result<usize, StoreError> {
        let room = self.drive.limits().attributes_bytes_max;
        let record = Record::bytes_without_content(&place.1, label);
        usize::try_from(room).ok().and_then(|room| room.checked_sub(record)).ok_or_else(|| {
            let sentence = format!(
                "{}: name and label need {record} bytes of attributes, and the target keeps {room}; choose shorter ones",
                place.1
            );
            StoreError::new(ErrorKind::Invalid, sentence)
        })
    }

    /// Makes a file of the class table visible and durable as it is; a log's and memory's is so already. `to` is a new place
    /// for it, taken in the same edit.
    pub(crate) fn publish(&self, file: &File, to: Option<NewPlace>) -> Result<(), StoreError> {
        let mut content = file.content()?;
        let content = &mut *content;
        if file.class != Class::Table
            || (to.is_none() && matches!(content.identity, Identity::Published { .. }))
        {
            return Ok(());
        }
        let (place, label) = {
            let names = self.names()?;
            let Some(entry) = names.file(file.number) else { return Ok(()) };
            let Some(place) = to.as_ref().map(|to| to.place.clone()).or_else(|| entry.place.clone()) else {
                return Ok(());
            };
            (place, entry.label.clone())
        };
        let is_inline = content.identity == Identity::Absent
            && content.pending.len() <= self.inline_max(&place, &label)?;
        if !is_inline {
            if content.identity == Identity::Absent {
                content.bytes_expected = content.pending.len() as u64;
            }
            self.give_pending(file, content, Durability::AtFlush)?;
        }
        self.publish_at(file, content, to, is_inline)
    }

    fn publish_at(
        &self,
        file: &File,
        content: &mut Content,
        to: Option<NewPlace>,
        is_inline: bool,
    ) -> Result<(), StoreError> {
        let mut names = self.names()?;
        let Some(entry) = names.file(file.number) else { return Ok(()) };
        let replace = to.as_ref().map_or(Replace::Anything, |to| to.replace);
        let Some(place) = to.map(|to| to.place).or_else(|| entry.place.clone()) else { return Ok(()) };
        let delete = |table| (EditOp::Delete, table, Vec::new());
        let mut rows: Vec<EditRow> = entry.replaces.iter().copied().map(delete).collect();
        if entry.place.as_ref() != Some(&place) {
            names.may_replace(&place, replace)?;
            self.make_room_at(&names, &place, &mut rows)?;
        }
        file.touch();
        let record = names.record(
            file.number,
            &place,
            RecordKind::Table { is_inline },
            if is_inline { &content.pending } else { &[] },
        );
        let table = match content.identity.table() {
            Some(table) => table,
            None => {
                let table = names.next_table();
                self.drive.create(table, TableKind::Table, content.hint, 0)?;
                table
            }
        };
        rows.push((EditOp::Publish, table, record.encode()));
        if let Err(error) = self.drive.edit(&rows) {
            if content.identity == Identity::Absent {
                // Begun for this edit only; if it cannot be given up now, the next mount does not see it.
                drop(self.drive.edit(&[delete(table)]));
            }
            return Err(error);
        }
        names.move_file(file.number, place);
        let entry = names.file_mut(file.number).expect("it was there under the same lock");
        entry.replaces.clear();
        entry.inline = if is_inline { content.pending.clone() } else { Vec::new() };
        entry.identity = Identity::Published { table, is_inline };
        content.identity = entry.identity;
        content.is_dirty = false;
        Ok(())
    }

    /// A published file is to change: its first `keep` bytes become another table, which takes its place when published.
    fn write_again(&self, file: &File, content: &mut Content, keep: u64) -> Result<(), StoreError> {
        let Identity::Published { table, is_inline } = content.identity else { return Ok(()) };
        {
            let mut names = self.names()?;
            let entry = names.file_mut(file.number).ok_or_else(gone)?;
            assert!(entry.replaces.is_empty(), "a published file replaces {:?}", entry.replaces);
            entry.replaces = vec![table];
            entry.identity = Identity::Absent;
        }
        let before = std::mem::replace(&mut content.identity, Identity::Absent);
        let bytes = content.given;
        if is_inline {
            content.pending.truncate(usize::try_from(keep).unwrap_or(usize::MAX));
            return Ok(());
        }
        content.given = 0;
        let copied = self.copy_into(file, content, table, bytes.min(keep));
        if copied.is_err() {
            // The file stays as it was.
            let mut names = self.names()?;
            if let Some(entry) = names.file_mut(file.number) {
                let unpublished = std::mem::replace(&mut entry.identity, before).table();
                entry.replaces.clear();
                let rows: Vec<EditRow> =
                    unpublished.map(|table| (EditOp::Delete, table, Vec::new())).into_iter().collect();
                drop(if rows.is_empty() { Ok(()) } else { self.drive.edit(&rows) });
            }
            content.identity = before;
            content.given = bytes;
            content.pending.clear();
        }
        copied
    }

    fn copy_into(
        &self,
        file: &File,
        content: &mut Content,
        from: TableId,
        bytes: u64,
    ) -> Result<(), StoreError> {
        let mut buffer = vec![0; REQUEST_BYTES_MAX];
        let mut copied = 0;
        while copied < bytes {
            let wanted = usize::try_from(bytes - copied).unwrap_or(usize::MAX).min(buffer.len());
            let found = self.drive.read(from, copied, &mut buffer[..wanted])?;
            if found < wanted {
                let sentence =
                    format!("table {} ends at byte {}, and has {bytes}", from.0, copied + found as u64);
                return Err(StoreError::new(ErrorKind::Corrupt, sentence));
            }
            self.give(file, content, &buffer[..wanted], Durability::AtFlush).1?;
            copied += wanted as u64;
        }
        Ok(())
    }

    /// What was appended to a log survives this process; other files are visible from their sync on.
    pub(crate) fn flush(&self, file: &File) -> Result<(), StoreError> {
        if file.class != Class::Log {
            return Ok(());
        }
        let mut content = file.content()?;
        let Content { tail, pending, kept, given, identity, .. } = &mut *content;
        if let (Some(tail), Some(table), true) = (&mut *tail, identity.table(), *kept < *given) {
            // An append that failed in its middle: the drive took a part of it that no tail has.
            self.drive.sync(table)?;
            *kept = *given;
            tail.begin_again();
        }
        let (Some(tail), end) = (tail, *given + pending.len() as u64) else { return Ok(()) };
        if *kept < end {
            let first = usize::try_from(*kept - *given).expect("what is kept was given, or is pending");
            tail.keep(*kept, &pending[first..])?;
            *kept = end;
        }
        Ok(())
    }

    /// What was appended survives a power cut.
    pub(crate) fn sync(&self, file: &File) -> Result<(), StoreError> {
        match file.class {
            Class::Memory => return Ok(()),
            Class::Table => self.publish(file, None)?,
            Class::Log => {
                let mut content = file.content()?;
                let content = &mut *content;
                if !content.pending.is_empty() {
                    self.give_pending(file, content, Durability::AtReply)?;
                } else if content.is_dirty {
                    self.drive.sync(self.table_of(file, content)?)?;
                    content.is_dirty = false;
                }
            }
        }
        self.drive.sync_image()
    }

    /// The store is left: what was appended is on the drive, and its tail is not needed.
    pub(crate) fn leave_log(&self, file: &File) -> Result<(), StoreError> {
        self.sync(file)?;
        file.content()?.tail.iter_mut().for_each(LogTail::remove);
        Ok(())
    }

    /// Reads from `offset` on, as much as there is.
    pub(crate) fn read(&self, file: &File, offset: u64, into: &mut [u8]) -> Result<usize, StoreError> {
        let mut content = file.content()?;
        if matches!(content.identity, Identity::Absent | Identity::Unpublished(_))
            && file.class == Class::Table
        {
            // Somebody reads what is still written: as it is now, it becomes a file.
            drop(content);
            self.publish(file, None)?;
            content = file.content()?;
        }
        let (identity, given) = (content.identity, content.given);
        let mut read = 0;
        if let (Some(table), true) = (identity.table(), offset < given) {
            let room = usize::try_from(given - offset).unwrap_or(usize::MAX).min(into.len());
            if matches!(identity, Identity::Published { .. }) {
                // It does not change any more: others need not wait.
                drop(content);
                return self.drive.read(table, offset, &mut into[..room]);
            }
            read = self.drive.read(table, offset, &mut into[..room])?;
            if read < room {
                return Ok(read);
            }
        }
        let first = usize::try_from((offset + read as u64).saturating_sub(given)).unwrap_or(usize::MAX);
        let pending = content.pending.get(first..).unwrap_or(&[]);
        let length = pending.len().min(into.len() - read);
        into[read..read + length].copy_from_slice(&pending[..length]);
        Ok(read + length)
    }

    /// The file has its first `bytes` bytes, or zeros behind those it had.
    pub(crate) fn truncate(&self, file: &File, bytes: u64) -> Result<(), StoreError> {
        let has = file.bytes();
        if bytes > has {
            let zeros = vec![0; REQUEST_BYTES_MAX];
            let mut missing = bytes - has;
            while missing > 0 {
                let part = usize::try_from(missing).unwrap_or(usize::MAX).min(zeros.len());
                self.append(file, &zeros[..part])?;
                missing -= part as u64;
            }
        } else if bytes < has {
            let mut content = file.content()?;
            self.shorten(file, &mut content, bytes)?;
            file.note_bytes(&content);
        }
        Ok(())
    }

    fn shorten(&self, file: &File, content: &mut Content, bytes: u64) -> Result<(), StoreError> {
        if let (Class::Table, Identity::Unpublished(_)) = (file.class, content.identity)
            && bytes < content.given
        {
            // The drive reads published tables only.
            self.give_pending(file, content, Durability::AtFlush)?;
            self.publish_at(file, content, None, false)?;
        }
        match content.identity {
            Identity::Published { .. } => self.write_again(file, content, bytes)?,
            Identity::Log(table) if bytes < content.given => {
                return self.log_again(file, content, table, bytes);
            }
            _ => {}
        }
        let keep = usize::try_from(bytes.saturating_sub(content.given)).unwrap_or(usize::MAX);
        content.pending.truncate(keep);
        if file.class == Class::Log && content.kept > bytes {
            // The tail keeps more than the log has now; from here on it keeps what is pending.
            content.tail.iter_mut().for_each(LogTail::remove);
            content.kept = content.given;
        }
        Ok(())
    }

    /// A shorter log in the place of a log.
    fn log_again(
        &self,
        file: &File,
        content: &mut Content,
        table: TableId,
        bytes: u64,
    ) -> Result<(), StoreError> {
        let mut kept = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        let read = self.drive.read(table, 0, &mut kept)?;
        kept.truncate(read);
        let mut names = self.names()?;
        let place = names.file(file.number).and_then(|entry| entry.place.clone()).ok_or_else(gone)?;
        let shorter = names.next_table();
        self.drive.create(shorter, TableKind::Log, content.hint, bytes)?;
        let record = names.record(file.number, &place, RecordKind::Log, &[]);
        let (_, appended) = self.drive.append(shorter, &kept, Durability::AtReply);
        let rows = [(EditOp::Delete, table, Vec::new()), (EditOp::Describe, shorter, record.encode())];
        if let Err(error) = appended.and_then(|()| self.drive.edit(&rows)) {
            drop(self.drive.edit(&[(EditOp::Delete, shorter, Vec::new())]));
            return Err(error);
        }
        let entry = names.file_mut(file.number).expect("it was there under the same lock");
        entry.identity = Identity::Log(shorter);
        content.identity = entry.identity;
        content.tail.iter_mut().for_each(LogTail::remove);
        content.tail = self.new_tail(shorter);
        (content.given, content.kept, content.is_dirty) = (read as u64, read as u64, false);
        content.pending.clear();
        Ok(())
    }

    /// Nobody writes the file any more: a table is visible from now on, a log survives the process.
    pub(crate) fn close_file(&self, file: &File) -> Result<(), StoreError> {
        match file.class {
            Class::Table => self.publish(file, None),
            Class::Log | Class::Memory => self.flush(file),
        }
    }
}

fn gone() -> StoreError {
    StoreError::new(ErrorKind::NotFound, "the file was deleted while it was open")
}
