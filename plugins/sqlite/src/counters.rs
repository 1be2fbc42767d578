//! What was done to files, by what they are to SQLite: whether there was a journal is seen here.
//!
//! Deliberately not here: what drive and target counted; they have counters of their own.

use std::fmt;

/// What a file is to SQLite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The database.
    Database,
    /// A rollback journal, or a super-journal of a transaction over several databases.
    Journal,
    /// A write-ahead log.
    Wal,
    /// What goes with its connection: it lies in memory.
    Temporary,
}

impl FileKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Database, Self::Journal, Self::Wal, Self::Temporary];

    /// Its name in counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Journal => "journal",
            Self::Wal => "wal",
            Self::Temporary => "temporary",
        }
    }
}

/// What was done to files of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Files that were begun.
    pub created: u64,
    /// Files that were deleted.
    pub deleted: u64,
    /// Writes that SQLite asked for, and their bytes.
    pub writes: u64,
    /// Bytes of these writes.
    pub bytes: u64,
    /// Syncs that SQLite asked for.
    pub syncs: u64,
}

/// What was done since the volume was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// By kind, in the order of [`FileKind::ALL`].
    pub files: [FileCounts; 4],
    /// Commits of SQLite that became one transaction of the target.
    pub batches: u64,
    /// Commits that were longer than the target's transactions, and got a journal instead.
    pub batches_too_long: u64,
    /// Blocks of 4 KiB that the target was given, records of files included.
    pub blocks_written: u64,
    /// Flushes that the target was asked for.
    pub flushes: u64,
}

impl Counters {
    /// Of one kind.
    #[must_use]
    pub const fn of(&self, kind: FileKind) -> &FileCounts {
        &self.files[kind as usize]
    }

    /// Of one kind, to change.
    pub const fn of_mut(&mut self, kind: FileKind) -> &mut FileCounts {
        &mut self.files[kind as usize]
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kind in FileKind::ALL {
            let FileCounts { created, deleted, writes, bytes, syncs } = self.of(kind);
            writeln!(
                f,
                "{}: {created} created, {deleted} deleted, {writes} writes, {bytes} bytes, {syncs} syncs",
                kind.name()
            )?;
        }
        write!(
            f,
            "batches: {} committed, {} too long\ntarget: {} blocks written, {} flushes",
            self.batches, self.batches_too_long, self.blocks_written, self.flushes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_counted_apart_and_named() {
        let mut counters = Counters::default();
        counters.of_mut(FileKind::Wal).writes = 7;
        assert_eq!((counters.of(FileKind::Wal).writes, counters.of(FileKind::Journal).writes), (7, 0));
        assert!(counters.to_string().contains("wal: 0 created, 0 deleted, 7 writes"), "{counters}");
    }
}
