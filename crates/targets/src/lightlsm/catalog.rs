//! What the log says there is: every table and log with its place, as recovery would find it.
//!
//! The running instance applies each transaction when it logs it, recovery when it replays it: the same code, so both agree. A
//! checkpoint is this, as the changes that make it. Deliberately not here: what the host sees before it is logged (`shelf`).

use super::change::{Change, Number};
use super::layout::Layout;
use ocssd_lightnvm::interface::table::{TableId, TableKind};
use std::collections::BTreeMap;

/// A table or a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which.
    pub kind: TableKind,
    /// As the host calls it.
    pub name: TableId,
    /// Its units on media.
    pub layout: Layout,
    /// Its bytes.
    pub bytes: u64,
    /// Of a log: its bytes behind the units.
    pub tail: Vec<u8>,
    /// It can be read; logs always.
    pub is_published: bool,
    /// What the host says of it.
    pub attributes: Vec<u8>,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    unit: u32,
    unit_bytes: u64,
    records: BTreeMap<Number, Record>,
}

impl Catalog {
    /// Nothing, in units of so many sectors and bytes.
    pub const fn new(unit: u32, unit_bytes: u64) -> Self {
        Self { unit, unit_bytes, records: BTreeMap::new() }
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = (Number, &Record)> {
        self.records.iter().map(|(&number, record)| (number, record))
    }

    /// One of them.
    pub fn get(&self, number: Number) -> Option<&Record> {
        self.records.get(&number)
    }

    /// Drops tables that were not published when the power went.
    pub fn drop_unpublished(&mut self) -> usize {
        let before = self.records.len();
        self.records.retain(|_, record| record.is_published);
        before - self.records.len()
    }

    /// Makes a change true.
    ///
    /// # Errors
    /// A sentence, if it contradicts what there is: the log was written by a program with a defect.
    pub fn apply(&mut self, change: &Change) -> Result<(), String> {
        let unit_bytes = self.unit_bytes;
        assert!(unit_bytes > 0, "a unit has bytes");
        if let Change::Begin { number, kind, name, width } = *change {
            let record = Record {
                kind,
                name,
                layout: Layout::new(width.max(1), self.unit),
                bytes: 0,
                tail: Vec::new(),
                is_published: kind == TableKind::Log,
                attributes: Vec::new(),
            };
            let before = self.records.insert(number, record);
            return before.map_or(Ok(()), |_| Err(format!("number {} begins twice", number.0)));
        }
        if let Change::Delete { number } = *change {
            let before = self.records.remove(&number);
            return before
                .map(|_| ())
                .ok_or_else(|| format!("number {} is deleted, but was not there", number.0));
        }
        let number = change.number();
        let record = self.records.get_mut(&number);
        let record = record.ok_or_else(|| format!("number {} changes, but was not there", number.0))?;
        match change {
            Change::Rows { column, run, .. } => {
                if *column >= record.layout.width() {
                    return Err(format!("number {} has no column {column}", number.0));
                }
                record.layout.insert_run(*column, *run);
                if record.kind == TableKind::Log {
                    record.bytes = record.bytes.max(record.layout.units() * unit_bytes);
                    record.tail.clear();
                }
            }
            Change::Bytes { from, bytes, .. } => {
                if *from != record.bytes || record.kind != TableKind::Log {
                    return Err(format!(
                        "number {} has {} bytes, but goes on at {from}",
                        number.0, record.bytes
                    ));
                }
                record.tail.extend_from_slice(bytes);
                record.bytes += bytes.len() as u64;
            }
            Change::Publish { bytes, attributes, .. } => {
                (record.bytes, record.is_published) = (*bytes, true);
                record.attributes.clone_from(attributes);
                record.layout.shrink();
            }
            Change::Describe { attributes, .. } => record.attributes.clone_from(attributes),
            Change::Begin { .. } | Change::Delete { .. } => unreachable!("it was handled above"),
        }
        Ok(())
    }

    /// The changes that make all of it, as bytes; of logs, with or without attributes.
    pub fn encode(&self, has_log_attributes: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for (&number, record) in &self.records {
            let Record { kind, name, layout, bytes, tail, is_published, attributes } = record;
            Change::Begin { number, kind: *kind, name: *name, width: layout.width() }.encode(&mut out);
            for (column, run) in layout.runs(0) {
                Change::Rows { number, column, run }.encode(&mut out);
            }
            if !tail.is_empty() {
                assert_eq!(*kind, TableKind::Log, "table {} has a tail", number.0);
                let from = bytes - tail.len() as u64;
                Change::Bytes { number, from, bytes: tail.clone() }.encode(&mut out);
            }
            let attributes = attributes.clone();
            match kind {
                TableKind::Log if attributes.is_empty() || !has_log_attributes => {}
                TableKind::Log => Change::Describe { number, attributes }.encode(&mut out),
                TableKind::Table if *is_published => {
                    Change::Publish { number, bytes: *bytes, attributes }.encode(&mut out);
                }
                TableKind::Table => {}
            }
        }
        out
    }

    /// Asserts what holds between transactions.
    pub fn check(&self) {
        for (number, record) in &self.records {
            record.layout.check();
            let on_media = record.layout.units() * self.unit_bytes;
            if record.kind == TableKind::Log {
                let tail = record.tail.len() as u64;
                assert_eq!(on_media + tail, record.bytes, "log {} has other bytes than it says", number.0);
                assert!(tail < self.unit_bytes, "log {} has a whole unit in its tail", number.0);
            } else if record.is_published {
                let units = record.bytes.div_ceil(self.unit_bytes);
                assert_eq!(record.layout.units(), units, "table {} is not all on media", number.0);
            }
        }
    }
}

impl Change {
    /// What it changes.
    pub const fn number(&self) -> Number {
        match *self {
            Self::Begin { number, .. }
            | Self::Rows { number, .. }
            | Self::Bytes { number, .. }
            | Self::Publish { number, .. }
            | Self::Describe { number, .. }
            | Self::Delete { number } => number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::decode;
    use super::super::layout::Run;
    use super::*;
    use ocssd_ftl::ChunkIndex;

    fn rows(number: u64, row: u64, rows: u32) -> Change {
        let run = Run { row, rows, chunk: ChunkIndex(5), sector: u32::try_from(row).expect("small") * 4 };
        Change::Rows { number: Number(number), column: 0, run }
    }

    #[test]
    fn a_checkpoint_is_the_changes_that_make_the_catalog() {
        let mut catalog = Catalog::new(4, 100);
        let begin =
            |number, kind| Change::Begin { number: Number(number), kind, name: TableId(number), width: 1 };
        let bytes = |from, count| Change::Bytes { number: Number(2), from, bytes: vec![7; count] };
        let attributes = b"level 1".to_vec();
        for change in [
            begin(1, TableKind::Table),
            rows(1, 0, 2),
            Change::Publish { number: Number(1), bytes: 150, attributes: attributes.clone() },
            begin(2, TableKind::Log),
            bytes(0, 30),
            bytes(30, 60),
            rows(2, 0, 1),
            bytes(100, 5),
            Change::Describe { number: Number(2), attributes },
            begin(3, TableKind::Table),
            begin(4, TableKind::Log),
        ] {
            catalog.apply(&change).expect("it follows");
            catalog.check();
        }
        let mut again = Catalog::new(4, 100);
        for change in decode(&catalog.encode(true)).expect("its own bytes") {
            again.apply(&change).expect("it follows");
        }
        assert_eq!(again, catalog);
        assert_eq!(again.drop_unpublished(), 1, "table 3");
        assert_eq!(again.get(Number(2)).map(|log| (log.bytes, log.tail.len())), Some((105, 5)));
    }

    #[test]
    fn changes_that_contradict_what_there_is_are_told() {
        let mut catalog = Catalog::new(4, 100);
        let number = Number(1);
        let begin = Change::Begin { number, kind: TableKind::Log, name: TableId(1), width: 1 };
        catalog.apply(&begin).expect("it is the first");
        for (change, says) in [
            (begin, "begins twice"),
            (Change::Delete { number: Number(2) }, "was not there"),
            (Change::Describe { number: Number(2), attributes: Vec::new() }, "was not there"),
            (Change::Bytes { number, from: 3, bytes: vec![0; 3] }, "goes on at 3"),
            (
                Change::Rows {
                    number,
                    column: 1,
                    run: Run { row: 0, rows: 1, chunk: ChunkIndex(1), sector: 0 },
                },
                "no column",
            ),
        ] {
            let error = catalog.apply(&change).expect_err(says);
            assert!(error.contains(says), "{error}");
        }
    }
}
