//! Runs read together in the order of keys: by flushes, compactions and `readseq` alike.
//!
//! A merge asks for blocks of tables when it comes to them, one read at a time, as RocksDB's iterators do. Deliberately not
//! here: the reads themselves, and what processors take.

use super::layout::Layout;
use super::run::{Record, Run};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// One run of a merge.
#[derive(Clone, Debug)]
struct Source {
    run: Rc<Run>,
    /// The table it lies in; none, if it is in memory.
    table: Option<u64>,
    at: usize,
    /// Records before this one were read.
    loaded: u64,
}

/// What a merge does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It waits for these bytes of a table; [`Merge::loaded`] when they are there.
    Read { table: u64, offset: u64, bytes: u64 },
    /// A record; is it the newest of its key?
    Took(Record, bool),
    /// All was taken.
    End,
}

/// The merge.
#[derive(Clone, Debug)]
pub(super) struct Merge {
    sources: Vec<Source>,
    /// The next record of each source: key, newest first, source.
    heads: BinaryHeap<Reverse<(u64, Reverse<u64>, usize)>>,
    last: Option<u64>,
    layout: Layout,
    readahead: u64,
    /// The source that is read, and up to which record.
    reading: Option<(usize, u64)>,
}

impl Merge {
    /// Of runs with the tables they lie in; `readahead` bytes of a table are read at once, or a block.
    pub(super) fn new(runs: Vec<(Rc<Run>, Option<u64>)>, layout: Layout, readahead: u64) -> Self {
        let sources: Vec<Source> =
            runs.into_iter().map(|(run, table)| Source { run, table, at: 0, loaded: 0 }).collect();
        let heads = sources.iter().enumerate().map(|(number, source)| {
            let Record { key, version } = source.run.get(0);
            Reverse((key, Reverse(version), number))
        });
        Self { heads: heads.collect(), sources, last: None, layout, readahead, reading: None }
    }

    /// The next step.
    pub(super) fn step(&mut self) -> Step {
        assert!(self.reading.is_none(), "a merge goes on before it was given what it waits for");
        let Some(&Reverse((key, Reverse(version), number))) = self.heads.peek() else { return Step::End };
        let source = &mut self.sources[number];
        if let Some(table) = source.table.filter(|_| source.at as u64 >= source.loaded) {
            let records = source.run.len() as u64;
            let (offset, bytes, behind) = self.layout.window(source.at as u64, records, self.readahead);
            self.reading = Some((number, behind));
            return Step::Read { table, offset, bytes };
        }
        self.heads.pop();
        source.at += 1;
        if source.at < source.run.len() {
            let Record { key, version } = source.run.get(source.at);
            self.heads.push(Reverse((key, Reverse(version), number)));
        }
        let is_newest = self.last != Some(key);
        self.last = Some(key);
        Step::Took(Record { key, version }, is_newest)
    }

    /// What it waited for is there.
    pub(super) fn loaded(&mut self) {
        let (number, behind) = self.reading.take().expect("a merge was given what it did not wait for");
        self.sources[number].loaded = behind;
    }
}
