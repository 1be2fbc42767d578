//! The memtable that is filled, and those that are full and not flushed.
//!
//! Deliberately not here: when one is full, and who flushes (`lsm`).

use super::run::{Record, Run};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// A full memtable.
#[derive(Clone, Debug)]
pub(super) struct ImmutableMemtable {
    pub(super) run: Rc<Run>,
    /// A flush takes it.
    pub(super) is_flushing: bool,
}

/// All memtables.
#[derive(Clone, Debug, Default)]
pub(super) struct Memtables {
    active: BTreeMap<u64, u64>,
    /// Puts to the active one: each takes its memory, to a key that is there too.
    puts: u64,
    /// Oldest first.
    immutable: VecDeque<ImmutableMemtable>,
}

impl Memtables {
    pub(super) fn put(&mut self, record: Record) {
        let before = self.active.insert(record.key, record.version);
        assert!(before.is_none_or(|before| before < record.version), "an older put came later: {record:?}");
        self.puts += 1;
    }

    /// Puts to the active one.
    pub(super) const fn puts(&self) -> u64 {
        self.puts
    }

    /// Full ones that are not flushed.
    pub(super) fn unflushed(&self) -> usize {
        self.immutable.len()
    }

    /// Of these, those that no flush takes yet.
    pub(super) fn waiting(&self) -> usize {
        self.immutable.iter().filter(|immutable| !immutable.is_flushing).count()
    }

    /// The active one is full, another begins. Nothing, if it is empty.
    pub(super) fn switch(&mut self) {
        if self.puts > 0 {
            let records = std::mem::take(&mut self.active);
            let records = records.into_iter().map(|(key, version)| Record { key, version });
            let run = Rc::new(Run::new(records.collect()));
            self.immutable.push_back(ImmutableMemtable { run, is_flushing: false });
            self.puts = 0;
        }
    }

    /// A flush takes all that wait.
    pub(super) fn begin_flush(&mut self) -> Vec<Rc<Run>> {
        assert!(self.immutable.iter().all(|immutable| !immutable.is_flushing), "one flush at a time");
        self.immutable.iter_mut().for_each(|immutable| immutable.is_flushing = true);
        self.immutable.iter().map(|immutable| Rc::clone(&immutable.run)).collect()
    }

    /// What the flush took is in a table.
    pub(super) fn end_flush(&mut self) {
        assert!(self.immutable.front().is_some_and(|immutable| immutable.is_flushing), "no flush is on");
        self.immutable.retain(|immutable| !immutable.is_flushing);
    }

    /// The newest version of a key here.
    pub(super) fn get(&self, key: u64) -> Option<u64> {
        let immutable = || {
            let found =
                self.immutable.iter().rev().map(|immutable| (&immutable.run, immutable.run.search(key)));
            found.filter_map(|(run, at)| at.ok().map(|at| run.get(at).version)).next()
        };
        self.active.get(&key).copied().or_else(immutable)
    }

    /// All of them as runs, for an iterator that reads what is there now.
    pub(super) fn runs(&self) -> Vec<Rc<Run>> {
        let records = self.active.iter().map(|(&key, &version)| Record { key, version });
        let active: Vec<Record> = records.collect();
        let active = if active.is_empty() { None } else { Some(Rc::new(Run::new(active))) };
        active.into_iter().chain(self.immutable.iter().map(|immutable| Rc::clone(&immutable.run))).collect()
    }
}
