//! A flush or a compaction: a background thread that computes, reads and writes, one after the other.
//!
//! It takes records of a merge, pays a processor for them, waits for each block it needs and for each piece it appends; at the
//! end one edit publishes what it wrote. What a compaction replaced is described as obsolete by the same edit, so that after a
//! power cut nobody takes it for live, and deleted once nobody reads it. Deliberately not here: requests (`wire`), and what the
//! end changes (`background`).

use super::layout::Layout;
use super::merge::{Merge, Step};
use super::options::LsmOptions;
use super::pick::Pick;
use super::run::{Record, Run};
use super::wire::{Ask, Row};
use ocssd_base::Nanos;
use std::collections::VecDeque;
use std::rc::Rc;

/// The stream of tables that flushes write; each compaction that runs has one of its own.
pub const FLUSH_STREAM: u8 = 0;

/// What it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Flush,
    Compaction(Pick),
    /// A compaction that overlaps nothing.
    Move(Pick),
}

/// What it does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Compute(Nanos),
    Ask(Ask),
}

/// A table being written.
#[derive(Clone, Debug)]
struct Output {
    table: u64,
    records: Vec<Record>,
    appended: u64,
}

/// The job.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) kind: Kind,
    /// What it writes tables as.
    pub(super) stream: u8,
    /// None, once all was taken.
    merge: Option<Merge>,
    acts: VecDeque<Act>,
    output: Option<Output>,
    /// Tables that were written, by name.
    pub(super) written: Vec<(u64, Rc<Run>)>,
    /// Bytes of records taken in.
    pub(super) taken_bytes: u64,
    /// Bytes it expects to write at most.
    bytes_expected: u64,
}

/// What all jobs share.
pub(super) struct Shared<'a> {
    pub(super) options: &'a LsmOptions,
    pub(super) layout: Layout,
    /// The name of the next table.
    pub(super) next_table: &'a mut u64,
}

impl Job {
    pub(super) fn flush(runs: Vec<Rc<Run>>, layout: Layout) -> Self {
        let records: u64 = runs.iter().map(|run| run.len() as u64).sum();
        let runs = runs.into_iter().map(|run| (run, None)).collect();
        Self::new(Kind::Flush, Some(Merge::new(runs, layout, 0)), layout.table_bytes(records))
    }

    /// A compaction that writes its tables as `stream`.
    pub(super) fn compaction(
        pick: Pick,
        runs: Vec<(Rc<Run>, Option<u64>)>,
        stream: u8,
        shared: &Shared<'_>,
    ) -> Self {
        let merge = Merge::new(runs, shared.layout, shared.options.compaction_readahead_bytes);
        let job = Self::new(Kind::Compaction(pick), Some(merge), shared.options.target_file_bytes);
        Self { stream, ..job }
    }

    pub(super) fn shift(pick: &Pick) -> Self {
        let mut job = Self::new(Kind::Move(pick.clone()), None, 0);
        let row = Row::describe(pick.from[0], pick.level, (pick.smallest, pick.largest));
        job.acts.push_back(Act::Ask(Ask::Edit(vec![row])));
        job
    }

    fn new(kind: Kind, merge: Option<Merge>, bytes_expected: u64) -> Self {
        let (acts, written) = (VecDeque::new(), Vec::new());
        Self {
            kind,
            stream: FLUSH_STREAM,
            merge,
            acts,
            output: None,
            written,
            taken_bytes: 0,
            bytes_expected,
        }
    }

    /// Level of what it writes.
    fn level(&self) -> usize {
        match &self.kind {
            Kind::Flush => 0,
            Kind::Compaction(pick) | Kind::Move(pick) => pick.level,
        }
    }

    /// What to do next; none, if all is done. What was asked for before is there.
    pub(super) fn next(&mut self, shared: &mut Shared<'_>) -> Option<Act> {
        if self.acts.is_empty() && self.merge.is_some() {
            self.plan(shared);
        }
        self.acts.pop_front()
    }

    /// A read it has asked for is there.
    pub(super) fn on_read(&mut self) {
        self.merge.as_mut().expect("only a merge reads").loaded();
    }

    fn plan(&mut self, shared: &mut Shared<'_>) {
        let before = self.taken_bytes;
        while self.acts.is_empty() {
            match self.merge.as_mut().expect("it is looked at before").step() {
                Step::Read { table, offset, bytes } => {
                    self.acts.push_back(Act::Ask(Ask::Read { table, offset, bytes }));
                }
                Step::Took(record, is_newest) => {
                    self.taken_bytes += shared.layout.data_bytes(1);
                    if is_newest {
                        self.write(record, shared);
                    }
                }
                Step::End => {
                    self.merge = None;
                    self.end_table(shared);
                    self.acts.push_back(Act::Ask(Ask::Edit(self.rows(shared))));
                }
            }
        }
        let costs = shared.options.costs;
        let byte_ps = if self.kind == Kind::Flush { costs.flush_byte_ps } else { costs.compaction_byte_ps };
        let cost = Nanos((self.taken_bytes - before) * byte_ps / 1_000);
        self.acts.push_front(Act::Compute(cost));
    }

    fn write(&mut self, record: Record, shared: &mut Shared<'_>) {
        let layout = shared.layout;
        if self.output.is_none() {
            self.begin_table(shared);
        }
        let output = self.output.as_mut().expect("it was begun");
        output.records.push(record);
        let records = output.records.len() as u64;
        let piece = (shared.options.append_bytes / layout.block_bytes()).max(1) * layout.block_bytes();
        if layout.data_bytes(records) - output.appended >= piece {
            let (table, offset) = (output.table, output.appended);
            output.appended += piece;
            self.acts.push_back(Act::Ask(Ask::Append { table, offset, bytes: piece }));
        }
        // One more record would make it longer than asked; a flush writes one table whatever its length.
        if self.kind != Kind::Flush && layout.table_bytes(records + 1) > shared.options.target_file_bytes {
            self.end_table(shared);
        }
    }

    fn begin_table(&mut self, shared: &mut Shared<'_>) {
        let table = *shared.next_table;
        *shared.next_table += 1;
        let level = u8::try_from(self.level()).expect("seven levels at most");
        let stream = self.stream;
        let bytes = if shared.options.has_size_hint { self.bytes_expected } else { 0 };
        self.acts.push_back(Act::Ask(Ask::Create { table, level, stream, bytes }));
        self.output = Some(Output { table, records: Vec::new(), appended: 0 });
    }

    fn end_table(&mut self, shared: &Shared<'_>) {
        let Some(Output { table, records, appended }) = self.output.take() else { return };
        let bytes = shared.layout.table_bytes(records.len() as u64) - appended;
        self.acts.push_back(Act::Ask(Ask::Append { table, offset: appended, bytes }));
        self.written.push((table, Rc::new(Run::new(records))));
    }

    /// The edit that makes all of it true.
    fn rows(&self, shared: &Shared<'_>) -> Vec<Row> {
        let publish = |(table, run): &(u64, Rc<Run>)| {
            Row::publish(*table, self.level(), (run.smallest(), run.largest()))
        };
        let mut rows: Vec<Row> = self.written.iter().map(publish).collect();
        if let Kind::Compaction(pick) = &self.kind {
            rows.extend(pick.from.iter().chain(&pick.into).map(|&table| Row::obsolete(table)));
        }
        assert!(!rows.is_empty() && shared.options.levels > self.level(), "an edit of nothing");
        rows
    }
}
