//! RocksDB's `db_bench` for table targets: what an LSM tree of two levels asks of them.
//!
//! Words are `db_bench`'s flags, with spaces between: `--benchmarks=fillseq,readrandom --num=1000 --value_size=100`.
//! Puts append to a log and fill a memtable; a full one becomes a table of level 0, published by the edit that deletes
//! its log. Enough tables of level 0 are merged with those of level 1 they overlap, in one edit; if nothing overlaps
//! they are moved by it. Gets read a block of each table that may have the key, newest first. Everything follows from
//! keys: no time, no threads.
//!
//! Deliberately not here: filters, caches, compression, write stalls, and more levels.

mod options;
mod tree;

pub use options::{Benchmark, DbBenchOptions};

use super::payload;
use super::{Answered, Generator, Outcome};
use ocssd_base::Prng;
use ocssd_lightnvm::interface::table::{
    EditOp, TableAnswer, TableEdit, TableHint, TableId, TableKind, TableLimits, TableOp, TableRefusal,
    TableReply, TableRequest,
};
use ocssd_lightnvm::interface::{Content, Durability, Entry, List, Piece};
use ocssd_lightnvm::{BufId, Buffers, Tag};
use std::collections::VecDeque;
use tree::{Attributes, Tree};

/// Bytes written by an append to a table at once (RocksDB's `writable_file_max_buffer_size`: 1 MiB).
const APPEND_BYTES: u64 = 1 << 20;
/// Bytes read at once by a compaction and by `readseq` (RocksDB's automatic read-ahead ends at 256 KiB).
const READAHEAD_BYTES: u64 = 256 << 10;

/// One request, without its buffers.
#[derive(Clone, Debug, PartialEq)]
enum Job {
    Create { table: TableId, kind: TableKind, hint: TableHint, bytes: u64 },
    Append { table: TableId, bytes: u32, version: u64, durability: Durability },
    Read { table: TableId, offset: u64, bytes: u32 },
    Edit(Vec<(EditOp, TableId, Option<Attributes>)>),
}

/// The generator.
#[derive(Clone, Debug)]
pub struct DbBench {
    options: DbBenchOptions,
    limits: TableLimits,
    prng: Prng,
    tree: Tree,
    jobs: VecDeque<Job>,
    /// The benchmark that is on, and its operations so far.
    benchmark: usize,
    operations: u64,
    /// Operations of all benchmarks.
    begun: u64,
    outstanding: u64,
    refusal: Option<TableRefusal>,
}

impl DbBench {
    /// The benchmarks of these options, on a target without tables, with randomness of `prng`.
    #[must_use]
    pub fn new(options: DbBenchOptions, limits: TableLimits, prng: &Prng) -> Self {
        let tree = Tree::new(&options, limits.edits_max);
        let prng = prng.split("db_bench");
        let mut bench = Self {
            options,
            limits,
            prng,
            tree,
            jobs: VecDeque::new(),
            benchmark: 0,
            operations: 0,
            begun: 0,
            outstanding: 0,
            refusal: None,
        };
        bench.begin();
        bench
    }

    /// The power went: what is left of the database is destroyed, as `db_bench` does with one it finds, and made again. Nothing is
    /// outstanding.
    pub fn power_cut(&mut self, names: impl Iterator<Item = TableId>) {
        self.jobs.clear();
        self.outstanding = 0;
        self.tree.clear();
        let rows: Vec<_> = names.map(|table| (EditOp::Delete, table, None)).collect();
        let most = usize::try_from(self.limits.edits_max).expect("an index");
        self.jobs.extend(rows.chunks(most).map(|rows| Job::Edit(rows.to_vec())));
        self.begin();
    }

    /// Why the target refused something, which ended the run.
    #[must_use]
    pub const fn refusal(&self) -> Option<TableRefusal> {
        self.refusal
    }

    /// A database has a log, if it has one at all.
    fn begin(&mut self) {
        if self.options.has_wal {
            let log = self.tree.begin_log();
            self.jobs.push_back(log);
        }
    }

    /// The next operation; false at the end of the last benchmark.
    fn operate(&mut self) -> bool {
        let Some(&benchmark) = self.options.benchmarks.get(self.benchmark) else { return false };
        let (number, num) = (self.operations, self.options.num);
        self.operations += 1;
        let is_over = match benchmark {
            Benchmark::FillSeq | Benchmark::FillRandom | Benchmark::FillSync | Benchmark::Overwrite => {
                number == num
            }
            Benchmark::ReadRandom | Benchmark::ReadWhileWriting => number == self.options.reads,
            Benchmark::ReadSeq => number == 1,
        };
        if is_over {
            (self.benchmark, self.operations) = (self.benchmark + 1, 0);
            return true;
        }
        self.begun += 1;
        let random = self.prng.below(num);
        match benchmark {
            Benchmark::FillSeq => self.tree.put(number, &mut self.jobs, Durability::AtFlush),
            Benchmark::FillSync => self.tree.put(random, &mut self.jobs, Durability::AtReply),
            Benchmark::FillRandom | Benchmark::Overwrite => {
                self.tree.put(random, &mut self.jobs, self.options.durability);
            }
            Benchmark::ReadRandom => self.tree.get(random, &mut self.jobs),
            Benchmark::ReadSeq => self.tree.scan(&mut self.jobs),
            Benchmark::ReadWhileWriting => {
                self.tree.get(random, &mut self.jobs);
                // One writer beside the readers; one put for nine gets (chosen: db_bench's depends on time).
                if number % 9 == 0 {
                    let key = self.prng.below(num);
                    self.tree.put(key, &mut self.jobs, self.options.durability);
                }
            }
        }
        true
    }

    /// A whole buffer with room for `bytes`.
    fn room(bytes: u64, buffers: &mut Buffers) -> BufId {
        let sector = u64::try_from(buffers.format().sector_bytes).expect("a sector is short");
        // A few sizes only, so that buffers are used again.
        let sectors = bytes.div_ceil(sector).max(1).next_power_of_two();
        buffers.take_whole(u32::try_from(sectors).expect("a mebibyte at most"))
    }

    fn edit(rows: &[(EditOp, TableId, Option<Attributes>)], buffers: &mut Buffers) -> TableOp {
        let list_bytes = rows.len() * TableEdit::BYTES;
        let bytes = list_bytes + rows.len() * Attributes::BYTES;
        let buffer = Self::room(bytes as u64, buffers);
        let (mut edits, mut all) = (Vec::new(), Vec::new());
        for &(op, table, attributes) in rows {
            let first = u32::try_from(all.len()).expect("short");
            all.extend(attributes.iter().flat_map(Attributes::encode));
            let attributes_bytes = u32::try_from(all.len()).expect("short") - first;
            edits.push(TableEdit { op, table, attributes_first: first, attributes_bytes });
        }
        let edits = List::write(buffers, buffer, &edits);
        let first_byte = u32::try_from(list_bytes).expect("short");
        let piece = Piece { buffer, first_byte, bytes: u32::try_from(all.len()).expect("short") };
        piece.scatter(buffers, &all);
        TableOp::Edit { edits, attributes: Content::Piece(piece) }
    }

    fn request(job: &Job, buffers: &mut Buffers) -> TableOp {
        match *job {
            Job::Create { table, kind, hint, bytes } => {
                TableOp::Create { table, kind, hint, bytes_expected: bytes }
            }
            Job::Append { table, bytes, version, durability } => {
                let buffer = Self::room(u64::from(bytes), buffers);
                let piece = Piece { buffer, first_byte: 0, bytes };
                payload::fill(buffers, piece, table.0, version);
                TableOp::Append { table, content: Content::Piece(piece), durability }
            }
            Job::Read { table, offset, bytes } => {
                let buffer = Self::room(u64::from(bytes), buffers);
                TableOp::Read { table, offset, into: Content::Piece(Piece { buffer, first_byte: 0, bytes }) }
            }
            Job::Edit(ref rows) => Self::edit(rows, buffers),
        }
    }
}

impl Generator for DbBench {
    type Request = TableRequest;
    type Reply = TableReply;

    fn next(&mut self, tag: Tag, buffers: &mut Buffers) -> Option<TableRequest> {
        while self.jobs.is_empty() && self.refusal.is_none() && self.operate() {}
        let job = self.jobs.pop_front()?;
        self.outstanding += 1;
        Some(TableRequest { tag, op: Self::request(&job, buffers) })
    }

    fn on_reply(&mut self, request: &TableRequest, reply: &TableReply, buffers: &mut Buffers) {
        self.outstanding -= 1;
        if let Some(refusal) = reply.refusal {
            self.refusal = Some(refusal);
            self.jobs.clear();
        }
        match request.op {
            TableOp::Append { content: Content::Piece(piece), .. }
            | TableOp::Read { into: Content::Piece(piece), .. } => buffers.give_back(piece.buffer),
            TableOp::Edit { edits, .. } => buffers.give_back(edits.buffer),
            _ => {}
        }
    }

    fn tag(request: &TableRequest) -> Tag {
        request.tag
    }

    fn reply_tag(reply: &TableReply) -> Tag {
        reply.tag
    }

    fn answered(&self, request: &TableRequest, reply: &TableReply) -> Answered {
        let (name, bytes) = match request.op {
            TableOp::Create { .. } => ("create", 0),
            TableOp::Append { content, .. } => ("append", u64::from(content.bytes())),
            TableOp::Sync { .. } => ("sync", 0),
            TableOp::Read { .. } => match reply.answer {
                TableAnswer::Read { bytes } => ("read", u64::from(bytes)),
                _ => ("read", 0),
            },
            TableOp::Attributes { .. } => ("attributes", 0),
            TableOp::Publish { .. } => ("publish", 0),
            TableOp::Delete { .. } => ("delete", 0),
            TableOp::Edit { .. } => ("edit", 0),
            TableOp::List { .. } => ("list", 0),
            TableOp::Flush => ("flush", 0),
            TableOp::Shutdown => ("shutdown", 0),
        };
        let refusal = reply.refusal.as_ref().map(|refusal| refusal as &dyn std::fmt::Display);
        Answered { name, bytes, is_stored: name == "append", outcome: Outcome::of(reply.status, refusal) }
    }

    fn shutdown(tag: Tag) -> TableRequest {
        TableRequest { tag, op: TableOp::Shutdown }
    }

    fn phase(&self) -> &'static str {
        let last = self.options.benchmarks.len().saturating_sub(1);
        self.options.benchmarks.get(self.benchmark.min(last)).map_or("run", |benchmark| benchmark.name())
    }

    fn operations_begun(&self) -> u64 {
        self.begun
    }

    fn operation_count_max(&self) -> u64 {
        let of = |benchmark: &Benchmark| match benchmark {
            Benchmark::ReadSeq => 1,
            Benchmark::ReadRandom | Benchmark::ReadWhileWriting => self.options.reads,
            _ => self.options.num,
        };
        self.options.benchmarks.iter().map(of).sum()
    }

    fn is_finished(&self) -> bool {
        let is_over = self.benchmark == self.options.benchmarks.len() || self.refusal.is_some();
        is_over && self.jobs.is_empty() && self.outstanding == 0
    }
}

#[cfg(test)]
mod tests;
