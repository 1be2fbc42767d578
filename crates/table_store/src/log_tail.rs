//! The tail of a log beside the image: bytes that were flushed and not synced, for the process after this one.
//!
//! A drive programs whole write units, and RocksDB flushes a log with every put. Padding a unit for each would write the drive
//! full; keeping the bytes in memory would lose them with the process. So they go into a small file of the operating system,
//! which outlives the process and not the machine: that is what a flush promises. At a sync they are on the drive, and the
//! file begins anew. It is named after the image: `db.ocssd.log-17`.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | CRC-32 of the log's name (8 bytes) and of what follows here |
//! | 4 | 4 | bytes of content |
//! | 8 | 8 | where in the log they lie |
//! | 16 | | the content; then the next such record |
//!
//! A record that does not go on where the one before it ended is what an earlier round left. All numbers are little-endian.
//! Deliberately not here: when to flush (`content`).

use crate::error::{ErrorKind, StoreError};
use ocssd_lightnvm::interface::table::TableId;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes before a record's content.
const HEADER_BYTES: usize = 16;

/// The tail of one log.
#[derive(Debug)]
pub struct LogTail {
    table: TableId,
    path: PathBuf,
    /// Made at the first flush: logs that are synced with every change need none.
    file: Option<File>,
    /// Where the next record goes.
    at: u64,
    /// A record on its way.
    record: Vec<u8>,
}

fn checksum(table: TableId, behind: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&table.0.to_le_bytes());
    hasher.update(behind);
    hasher.finalize()
}

/// The file beside an image.
fn path_of(image: &Path, table: TableId) -> PathBuf {
    let mut name = image.as_os_str().to_owned();
    name.push(format!(".log-{}", table.0));
    PathBuf::from(name)
}

fn failed(path: &Path, action: &str, error: &io::Error) -> StoreError {
    let kind = if error.kind() == io::ErrorKind::StorageFull { ErrorKind::NoSpace } else { ErrorKind::Io };
    StoreError::new(
        kind,
        format!("{} cannot be {action}: {error}; it keeps what was flushed", path.display()),
    )
}

impl LogTail {
    /// The tail of a log on this image; empty.
    #[must_use]
    pub fn new(image: &Path, table: TableId) -> Self {
        Self { table, path: path_of(image, table), file: None, at: 0, record: Vec::new() }
    }

    /// Keeps `bytes`, which lie at `offset` of the log. They survive the process when this returns.
    ///
    /// # Errors
    /// If the file cannot be made or written.
    pub fn keep(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let opened = OpenOptions::new().write(true).create(true).truncate(true).open(&self.path);
                none.insert(opened.map_err(|error| failed(&self.path, "made", &error))?)
            }
        };
        let length = u32::try_from(bytes.len())
            .expect("a log is given to the drive before it has so many bytes pending");
        self.record.clear();
        self.record.extend_from_slice(&[0; 4]);
        self.record.extend_from_slice(&length.to_le_bytes());
        self.record.extend_from_slice(&offset.to_le_bytes());
        self.record.extend_from_slice(bytes);
        let sum = checksum(self.table, &self.record[4..]);
        self.record[..4].copy_from_slice(&sum.to_le_bytes());
        file.write_all_at(&self.record, self.at).map_err(|error| failed(&self.path, "written", &error))?;
        self.at += self.record.len() as u64;
        Ok(())
    }

    /// What was kept is on the drive: the next record is the first again.
    pub const fn begin_again(&mut self) {
        self.at = 0;
    }

    /// The file goes: the log was closed with everything on the drive, or deleted.
    pub fn remove(&mut self) {
        if self.file.take().is_some() {
            // A file that stays is judged by the next mount.
            drop(std::fs::remove_file(&self.path));
        }
        self.at = 0;
    }
}

/// Removes what may be left of a log that is gone.
pub fn remove(image: &Path, table: TableId) {
    drop(std::fs::remove_file(path_of(image, table)));
}

/// What a process before this one kept of a log that has `bytes` bytes on the drive: the bytes behind them.
///
/// # Errors
/// If there is such a file, and it cannot be read.
pub fn kept(image: &Path, table: TableId, bytes: u64) -> Result<Vec<u8>, StoreError> {
    let path = path_of(image, table);
    match std::fs::read(&path) {
        Ok(found) => Ok(behind(&found, table, bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(&path, "read", &error)),
    }
}

/// The records' bytes from byte `bytes` of the log on.
fn behind(mut records: &[u8], table: TableId, bytes: u64) -> Vec<u8> {
    let (mut kept, mut next) = (Vec::new(), None);
    while let Some((header, rest)) = records.split_at_checked(HEADER_BYTES) {
        let length = u32::from_le_bytes(header[4..8].try_into().expect("four bytes"));
        let offset = u64::from_le_bytes(header[8..].try_into().expect("eight bytes"));
        let length = usize::try_from(length).expect("32 bits fit an index");
        let Some((content, later)) = rest.split_at_checked(length) else { break };
        let is_whole = checksum(table, &records[4..HEADER_BYTES + length]).to_le_bytes() == header[..4];
        if !is_whole || next.is_some_and(|next| next != offset) {
            break;
        }
        next = Some(offset + length as u64);
        // The first may begin before the log's end, never behind it: a hole would be read as content.
        let have = bytes + kept.len() as u64;
        let Some(known) = have.checked_sub(offset) else { break };
        let known = usize::try_from(known).unwrap_or(usize::MAX).min(content.len());
        kept.extend_from_slice(&content[known..]);
        records = later;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: TableId = TableId(17);

    fn kept_of(image: &Path, bytes: u64) -> Vec<u8> {
        kept(image, LOG, bytes).expect("the file can be read")
    }

    #[test]
    fn what_was_kept_is_found_behind_what_the_drive_has() {
        let directory = tempfile::tempdir().expect("a directory");
        let image = directory.path().join("d.ocssd");
        assert_eq!(kept_of(&image, 0), b"", "without a file");
        let mut tail = LogTail::new(&image, LOG);
        tail.keep(10, b"hello").expect("there is room");
        tail.keep(15, b" world").expect("there is room");
        assert_eq!(kept_of(&image, 10), b"hello world");
        assert_eq!(kept_of(&image, 13), b"lo world");
        assert_eq!(kept_of(&image, 21), b"");
        assert_eq!(kept_of(&image, 9), b"", "a hole is never filled with other bytes");
        tail.begin_again();
        tail.keep(21, b"!").expect("there is room");
        assert_eq!(kept_of(&image, 21), b"!", "older records behind the new one are no part of it");
        tail.remove();
        assert_eq!(kept_of(&image, 21), b"");
    }

    #[test]
    fn a_torn_record_ends_the_tail() {
        let directory = tempfile::tempdir().expect("a directory");
        let image = directory.path().join("d.ocssd");
        let mut tail = LogTail::new(&image, LOG);
        tail.keep(0, b"whole").expect("there is room");
        tail.keep(5, b"torn").expect("there is room");
        let path = path_of(&image, LOG);
        let found = std::fs::read(&path).expect("it was made");
        for end in 0..found.len() {
            let first = HEADER_BYTES + 5;
            let expected: &[u8] = if end < first { b"" } else { b"whole" };
            assert_eq!(behind(&found[..end], LOG, 0), expected, "{end} bytes");
        }
        for at in 0..found.len() {
            let mut changed = found.clone();
            changed[at] ^= 1;
            let kept = behind(&changed, LOG, 0);
            assert!(kept.is_empty() || kept == b"whole", "byte {at}: {kept:?}");
        }
        assert_eq!(behind(&found, TableId(18), 0), b"", "another log's");
    }
}
