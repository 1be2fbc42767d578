//! A sorted run of records: what a memtable, or a table, holds.
//!
//! Keys are numbers, and a value is the number of the put that wrote it: its *version*. Deliberately not here: where a
//! table's blocks lie (`layout`).

/// A key with its newest version of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record {
    pub(super) key: u64,
    /// Higher is newer; from 1 on.
    pub(super) version: u64,
}

/// Records by ascending key, each key once, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run(Vec<Record>);

impl Run {
    pub(super) fn new(records: Vec<Record>) -> Self {
        assert!(!records.is_empty(), "a run has a record");
        assert!(records.is_sorted_by(|a, b| a.key < b.key), "a run is sorted, each key once");
        Self(records)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, at: usize) -> Record {
        self.0[at]
    }

    pub(super) fn smallest(&self) -> u64 {
        self.0[0].key
    }

    pub(super) fn largest(&self) -> u64 {
        self.0[self.0.len() - 1].key
    }

    /// Where the key is, or where it would be.
    pub(super) fn search(&self, key: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&key, |record| record.key)
    }

    pub(super) fn newest(&self) -> u64 {
        self.0.iter().map(|record| record.version).max().expect("a run has a record")
    }

    pub(super) fn has_in(&self, smallest: u64, largest: u64) -> bool {
        self.smallest() <= largest && smallest <= self.largest()
    }
}
