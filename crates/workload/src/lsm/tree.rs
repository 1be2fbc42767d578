//! The tables of a database by level, and in which of them a get looks.
//!
//! Tables of level 0 overlap, newest first; those of a level below do not, by ascending keys. A table that a compaction has
//! replaced is kept as long as somebody reads it. Deliberately not here: what is compacted (`pick`), and when.

use super::filter::Filters;
use super::layout::Layout;
use super::run::Run;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A table that was published.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) run: Rc<Run>,
    pub(super) bytes: u64,
    /// A compaction takes it.
    pub(super) is_taken: bool,
    /// Gets and iterators that may still read it.
    holds: u32,
    is_obsolete: bool,
}

/// A table a get looks into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) table: u64,
    /// The record that is wanted, or where it would be.
    pub(super) record: u64,
    /// Records of the table.
    pub(super) records: u64,
    /// The version, if the table has the key; else its filter was wrong.
    pub(super) found: Option<u64>,
}

/// Where an output of a running compaction will be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) level: usize,
    pub(super) smallest: u64,
    pub(super) largest: u64,
}

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) tables: BTreeMap<u64, Table>,
    /// Names by level.
    pub(super) levels: Vec<Vec<u64>>,
    /// Of running compactions, by the number of their job.
    pub(super) running: BTreeMap<u64, Span>,
    /// Obsolete tables that nobody reads.
    dead: Vec<u64>,
    layout: Layout,
    filters: Filters,
}

impl Tree {
    pub(super) fn new(levels: usize, layout: Layout, bloom_bits: u32) -> Self {
        Self {
            tables: BTreeMap::new(),
            levels: vec![Vec::new(); levels],
            running: BTreeMap::new(),
            dead: Vec::new(),
            layout,
            filters: Filters::new(bloom_bits),
        }
    }

    pub(super) fn run(&self, table: u64) -> &Run {
        &self.tables[&table].run
    }

    fn sort(&mut self, level: usize) {
        let tables = &self.tables;
        if level == 0 {
            self.levels[0].sort_by_key(|name| Reverse(tables[name].run.newest()));
        } else {
            self.levels[level].sort_by_key(|name| tables[name].run.smallest());
        }
    }

    /// A table was published.
    pub(super) fn insert(&mut self, name: u64, level: usize, run: Rc<Run>) {
        let bytes = self.layout.table_bytes(run.len() as u64);
        let table = Table { run, bytes, is_taken: false, holds: 0, is_obsolete: false };
        assert!(self.tables.insert(name, table).is_none(), "two tables have the name {name}");
        self.levels[level].push(name);
        self.sort(level);
    }

    /// A compaction has replaced it.
    pub(super) fn remove(&mut self, name: u64) {
        self.levels.iter_mut().for_each(|level| level.retain(|&other| other != name));
        let table = self.tables.get_mut(&name).expect("it is there");
        assert!(!table.is_obsolete, "table {name} is replaced twice");
        table.is_obsolete = true;
        self.bury(name);
    }

    /// It changes its level and nothing else.
    pub(super) fn shift(&mut self, name: u64, level: usize) {
        self.levels.iter_mut().for_each(|level| level.retain(|&other| other != name));
        self.tables.get_mut(&name).expect("it is there").is_taken = false;
        self.levels[level].push(name);
        self.sort(level);
    }

    pub(super) fn hold(&mut self, name: u64) {
        self.tables.get_mut(&name).expect("what is read is there").holds += 1;
    }

    pub(super) fn let_go(&mut self, name: u64) {
        let table = self.tables.get_mut(&name).expect("what was read is there");
        assert!(table.holds > 0, "table {name} is let go of twice");
        table.holds -= 1;
        self.bury(name);
    }

    fn bury(&mut self, name: u64) {
        let table = &self.tables[&name];
        if table.is_obsolete && table.holds == 0 {
            self.tables.remove(&name);
            self.dead.push(name);
        }
    }

    /// Tables to be deleted: nobody reads them, and nobody will. At most so many.
    pub(super) fn take_dead(&mut self, most: usize) -> Vec<u64> {
        let count = self.dead.len().min(most);
        self.dead.drain(..count).collect()
    }

    /// The tables a get of this key reads, in order; what is in memory is not looked at.
    pub(super) fn probes(&self, key: u64) -> Vec<Probe> {
        let mut probes = Vec::new();
        let below = self.levels[1..].iter().filter_map(|level| {
            let behind = level.partition_point(|name| self.run(*name).smallest() <= key);
            behind.checked_sub(1).map(|at| level[at])
        });
        for table in self.levels[0].iter().copied().chain(below) {
            let run = self.run(table);
            if !run.has_in(key, key) {
                continue;
            }
            let (record, found) = match run.search(key) {
                Ok(at) => (at, Some(run.get(at).version)),
                Err(at) if self.filters.is_wrong(table, key) => (at, None),
                Err(_) => continue,
            };
            let records = run.len() as u64;
            probes.push(Probe { table, record: record as u64, records, found });
            if found.is_some() {
                break;
            }
        }
        probes
    }

    pub(super) fn level_bytes(&self, level: usize) -> u64 {
        self.levels[level].iter().map(|name| self.tables[name].bytes).sum()
    }

    /// Asserts the whole. Cost: a look at every table.
    pub(super) fn check(&self) {
        for (level, names) in self.levels.iter().enumerate().skip(1) {
            let apart = |a: &u64, b: &u64| self.run(*a).largest() < self.run(*b).smallest();
            assert!(names.is_sorted_by(apart), "tables of level {level} overlap");
        }
        let live: usize = self.levels.iter().map(Vec::len).sum();
        let obsolete = self.tables.values().filter(|table| table.is_obsolete).count();
        assert_eq!(live + obsolete, self.tables.len(), "a table is in no level, or in two");
    }
}
