//! An LSM tree of two levels as far as its keys decide what is asked of tables.

use super::{APPEND_BYTES, DbBenchOptions, Job, READAHEAD_BYTES};
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::table::{EditOp, TableHint, TableId, TableKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a MANIFEST would say of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) level: u8,
    pub(super) smallest: u64,
    pub(super) largest: u64,
}

impl Attributes {
    pub(super) const BYTES: usize = 24;

    pub(super) fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = self.level;
        bytes[8..16].copy_from_slice(&self.smallest.to_le_bytes());
        bytes[16..].copy_from_slice(&self.largest.to_le_bytes());
        bytes
    }
}

#[derive(Clone, Debug)]
struct Table {
    level: u8,
    /// Ascending.
    keys: Vec<u64>,
}

impl Table {
    fn attributes(&self) -> Attributes {
        let (smallest, largest) = (self.keys[0], self.keys[self.keys.len() - 1]);
        Attributes { level: self.level, smallest, largest }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let (own, other) = (self.attributes(), other.attributes());
        own.smallest <= other.largest && other.smallest <= own.largest
    }
}

/// The tree. Tables are named in the order they are made, so a higher name of level 0 is newer.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    record_bytes: u64,
    write_buffer_bytes: u64,
    target_file_bytes: u64,
    level0_trigger: usize,
    block_bytes: u32,
    edits_max: usize,
    memtable: BTreeSet<u64>,
    log: Option<TableId>,
    tables: BTreeMap<TableId, Table>,
    next: u64,
    versions: u64,
}

fn long(count: usize) -> u64 {
    u64::try_from(count).expect("a length fits 64 bits")
}

impl Tree {
    pub(super) fn new(options: &DbBenchOptions, edits_max: u32) -> Self {
        let index = |number: u32| usize::try_from(number).expect("an index");
        Self {
            record_bytes: options.record_bytes,
            write_buffer_bytes: options.write_buffer_bytes,
            target_file_bytes: options.target_file_bytes,
            level0_trigger: index(options.level0_trigger),
            block_bytes: options.block_bytes,
            edits_max: index(edits_max),
            memtable: BTreeSet::new(),
            log: None,
            tables: BTreeMap::new(),
            next: 1,
            versions: 0,
        }
    }

    /// The database is destroyed; names go on.
    pub(super) fn clear(&mut self) {
        self.memtable.clear();
        self.tables.clear();
        self.log = None;
    }

    fn name(&mut self) -> TableId {
        self.next += 1;
        TableId(self.next - 1)
    }

    /// Begins another log.
    pub(super) fn begin_log(&mut self) -> Job {
        let table = self.name();
        self.log = Some(table);
        Job::Create { table, kind: TableKind::Log, hint: TableHint::default(), bytes: 0 }
    }

    /// Puts a key.
    pub(super) fn put(&mut self, key: u64, jobs: &mut VecDeque<Job>, durability: Durability) {
        self.versions += 1;
        if let Some(table) = self.log {
            let bytes = u32::try_from(self.record_bytes).expect("a record is short");
            jobs.push_back(Job::Append { table, bytes, version: self.versions, durability });
        }
        self.memtable.insert(key);
        if long(self.memtable.len() + 1) * self.record_bytes > self.write_buffer_bytes {
            self.flush(jobs);
            self.compact(jobs);
        }
    }

    /// Writes a table, unpublished.
    fn write(&mut self, level: u8, keys: Vec<u64>, jobs: &mut VecDeque<Job>) -> TableId {
        let (table, bytes) = (self.name(), long(keys.len()) * self.record_bytes);
        let hint = TableHint { level, stream: level };
        jobs.push_back(Job::Create { table, kind: TableKind::Table, hint, bytes });
        let mut offset = 0;
        while offset < bytes {
            let piece = u32::try_from(APPEND_BYTES.min(bytes - offset)).expect("a mebibyte");
            jobs.push_back(Job::Append {
                table,
                bytes: piece,
                version: offset,
                durability: Durability::AtFlush,
            });
            offset += u64::from(piece);
        }
        self.tables.insert(table, Table { level, keys });
        table
    }

    fn publish(&self, table: TableId) -> (EditOp, TableId, Option<Attributes>) {
        (EditOp::Publish, table, Some(self.tables[&table].attributes()))
    }

    /// The memtable becomes a table, and its log goes with the same edit.
    fn flush(&mut self, jobs: &mut VecDeque<Job>) {
        let keys: Vec<u64> = std::mem::take(&mut self.memtable).into_iter().collect();
        let table = self.write(0, keys, jobs);
        let mut rows = vec![self.publish(table)];
        if let Some(old) = self.log {
            let log = self.begin_log();
            jobs.push_back(log);
            rows.push((EditOp::Delete, old, None));
        }
        jobs.push_back(Job::Edit(rows));
    }

    fn of_level(&self, level: u8) -> Vec<TableId> {
        let tables = self.tables.iter().filter(|(_, table)| table.level == level);
        tables.map(|(&name, _)| name).collect()
    }

    /// Merges level 0 into level 1 once it has enough tables.
    fn compact(&mut self, jobs: &mut VecDeque<Job>) {
        let level0 = self.of_level(0);
        if level0.len() < self.level0_trigger {
            return;
        }
        let overlaps =
            |one: &TableId| level0.iter().any(|other| self.tables[one].overlaps(&self.tables[other]));
        let level1: Vec<TableId> = self.of_level(1).into_iter().filter(overlaps).collect();
        let apart = |(nth, one): (usize, &TableId)| {
            !level0[nth + 1..].iter().any(|other| self.tables[one].overlaps(&self.tables[other]))
        };
        if level1.is_empty() && level0.iter().enumerate().all(apart) {
            self.move_down(&level0, jobs);
            return;
        }
        let inputs = [level0, level1].concat();
        let keys: BTreeSet<u64> = inputs.iter().flat_map(|name| &self.tables[name].keys).copied().collect();
        let per_table = usize::try_from(self.target_file_bytes / self.record_bytes).expect("a count");
        let outputs = keys.len().div_ceil(per_table.max(1));
        // An edit has a bound; a compaction that needs more waits, and level 0 grows.
        if inputs.len() + outputs > self.edits_max {
            return;
        }
        inputs.iter().for_each(|name| self.read_whole(*name, jobs));
        let keys: Vec<u64> = keys.into_iter().collect();
        let mut rows = Vec::new();
        for part in keys.chunks(per_table.max(1)) {
            let table = self.write(1, part.to_vec(), jobs);
            rows.push(self.publish(table));
        }
        for name in inputs {
            self.tables.remove(&name);
            rows.push((EditOp::Delete, name, None));
        }
        jobs.push_back(Job::Edit(rows));
    }

    /// Tables that overlap nothing change their level and nothing else.
    fn move_down(&mut self, names: &[TableId], jobs: &mut VecDeque<Job>) {
        for part in names.chunks(self.edits_max) {
            let mut rows = Vec::new();
            for &name in part {
                let table = self.tables.get_mut(&name).expect("a table of level 0");
                table.level = 1;
                rows.push((EditOp::Describe, name, Some(table.attributes())));
            }
            jobs.push_back(Job::Edit(rows));
        }
    }

    fn read_whole(&self, table: TableId, jobs: &mut VecDeque<Job>) {
        let bytes = long(self.tables[&table].keys.len()) * self.record_bytes;
        let mut offset = 0;
        while offset < bytes {
            let piece = u32::try_from(READAHEAD_BYTES.min(bytes - offset)).expect("a read-ahead");
            jobs.push_back(Job::Read { table, offset, bytes: piece });
            offset += u64::from(piece);
        }
    }

    /// Reads a block of each table that may have the key, up to the one that has it.
    pub(super) fn get(&self, key: u64, jobs: &mut VecDeque<Job>) {
        if self.memtable.contains(&key) {
            return;
        }
        let newest = self.of_level(0).into_iter().rev().chain(self.of_level(1));
        for name in newest {
            let keys = &self.tables[&name].keys;
            let Attributes { smallest, largest, .. } = self.tables[&name].attributes();
            if !(smallest..=largest).contains(&key) {
                continue;
            }
            let found = keys.binary_search(&key);
            let place = long(found.unwrap_or_else(|behind| behind));
            let block = u64::from(self.block_bytes);
            let offset = place * self.record_bytes / block * block;
            jobs.push_back(Job::Read { table: name, offset, bytes: self.block_bytes });
            if found.is_ok() {
                return;
            }
        }
    }

    /// Reads every table from begin to end.
    pub(super) fn scan(&self, jobs: &mut VecDeque<Job>) {
        self.tables.keys().for_each(|&table| self.read_whole(table, jobs));
    }
}
