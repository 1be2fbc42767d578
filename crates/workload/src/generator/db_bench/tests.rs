//! What benchmarks ask, held against a target that remembers lengths.

use super::*;
use ocssd_lightnvm::interface::table::TableAnswer;
use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};
use std::collections::{BTreeMap, BTreeSet};

const LIMITS: TableLimits = TableLimits {
    tables_max: 1_000,
    table_bytes_max: 1 << 30,
    attributes_bytes_max: 64,
    edits_max: 64,
    capacity_bytes: 1 << 40,
};

/// What was asked.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    requests: u64,
    logged_bytes: u64,
    table_bytes: u64,
    published: u64,
    moved: u64,
    deleted: u64,
    reads: u64,
    read_bytes: u64,
    /// Lengths of what is left, and which of them are logs.
    left: BTreeMap<u64, u64>,
    logs: BTreeSet<u64>,
}

impl Asked {
    fn take(&mut self, request: &TableRequest, buffers: &Buffers) -> TableAnswer {
        self.requests += 1;
        match request.op {
            TableOp::Create { table, kind, .. } => {
                assert_eq!(self.left.insert(table.0, 0), None, "{table:?} is created twice");
                if kind == TableKind::Log {
                    self.logs.insert(table.0);
                }
            }
            TableOp::Append { table, content, .. } => {
                let length = self.left.get_mut(&table.0).expect("it was created");
                *length += u64::from(content.bytes());
                let is_log = self.logs.contains(&table.0);
                *if is_log { &mut self.logged_bytes } else { &mut self.table_bytes } +=
                    u64::from(content.bytes());
            }
            TableOp::Read { table, offset, into } => {
                assert!(offset < self.left[&table.0], "behind the end of {table:?}");
                self.reads += 1;
                self.read_bytes += u64::from(into.bytes());
            }
            TableOp::Edit { edits, attributes } => {
                let all = attributes.gathered(buffers).len();
                for row in edits.entries(buffers).flatten() {
                    let end = usize::try_from(row.attributes_first + row.attributes_bytes).expect("short");
                    assert!(end <= all, "{row:?}");
                    match row.op {
                        EditOp::Publish => self.published += 1,
                        EditOp::Describe => self.moved += 1,
                        EditOp::Delete => {
                            self.deleted += 1;
                            self.logs.remove(&row.table.0);
                            self.left.remove(&row.table.0).expect("it was there");
                        }
                    }
                }
            }
            _ => {}
        }
        TableAnswer::Done
    }
}

fn run(text: &str, seed: u64) -> Asked {
    let geometry = Geometry::example(1, 1, 4, 24, 24);
    let mut buffers = Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry));
    let options = DbBenchOptions::parse(text).expect("the flags can be used");
    let mut bench = DbBench::new(options, LIMITS, &Prng::new(seed));
    let mut asked = Asked::default();
    while let Some(request) = bench.next(Tag(0), &mut buffers) {
        let answer = asked.take(&request, &buffers);
        bench.on_reply(&request, &TableReply::success(request.tag, answer), &mut buffers);
    }
    assert!(bench.is_finished() && buffers.in_use() == 0, "seed {seed}: {text}");
    asked
}

/// 100 records of 100 bytes in a memtable.
const SMALL: &str =
    "--key_size=16 --value_size=84 --write_buffer_size=10000 --target_file_size_base=20000 --num=2000";

#[test]
fn fillseq_moves_tables_and_merges_nothing() {
    let asked = run(&format!("{SMALL} --benchmarks=fillseq"), 1);
    assert_eq!((asked.logged_bytes, asked.table_bytes), (200_000, 200_000));
    assert_eq!(
        (asked.published, asked.moved, asked.deleted, asked.reads),
        (20, 20, 20, 0),
        "each log is deleted"
    );
    assert_eq!((asked.left.len(), asked.logs.len()), (21, 1));
}

#[test]
fn fillrandom_merges_and_keeps_each_key_once() {
    let asked = run(&format!("{SMALL} --benchmarks=fillrandom"), 1);
    assert_eq!(asked.logged_bytes, 200_000);
    assert!(asked.table_bytes > 300_000, "every key is written again: {asked:?}");
    assert!(asked.reads > 10 && asked.read_bytes >= asked.table_bytes / 3);
    let tables: u64 =
        asked.left.iter().filter(|(name, _)| !asked.logs.contains(name)).map(|(_, bytes)| bytes).sum();
    // 2,000 draws of 2,000 keys leave 1 - 1/e of them: 1,264; a few more while level 0 is not merged.
    assert!((115_000..170_000).contains(&tables), "seed 1: {tables} bytes are left");
    assert!(asked.left.values().all(|&bytes| bytes <= 20_000));
}

#[test]
fn reads_find_their_block_and_do_not_write() {
    let fill = run(&format!("{SMALL} --benchmarks=fillseq"), 1);
    let random = run(&format!("{SMALL} --benchmarks=fillseq,readrandom --reads=500"), 1);
    assert_eq!((random.reads, random.table_bytes), (500, fill.table_bytes), "each key lies in one table");
    assert_eq!(random.read_bytes, 500 * 4_096);
    let sequential = run(&format!("{SMALL} --benchmarks=fillseq,readseq"), 1);
    assert_eq!((sequential.reads, sequential.read_bytes), (20, 200_000));
    let mixed = run(&format!("{SMALL} --benchmarks=fillseq,readwhilewriting --reads=900"), 1);
    assert_eq!(mixed.logged_bytes, 210_000, "one put for nine gets");
}

#[test]
fn the_same_seed_repeats_and_flags_change_what_they_say() {
    let text = format!("{SMALL} --benchmarks=fillrandom,overwrite,readrandom");
    assert_eq!(run(&text, 5), run(&text, 5));
    assert_ne!(run(&text, 5), run(&text, 6));
    let without = run(&format!("{SMALL} --benchmarks=overwrite --disable_wal=1"), 5);
    assert_eq!((without.logged_bytes, without.logs.len()), (0, 0));
}

#[test]
fn bad_flags_are_refused_in_words() {
    for (text, says) in [
        ("--benchmarks=fillsek", "did you mean `fillseq`?"),
        ("--benchmarks=fillseq,compact", "benchmarks is compact"),
        ("--num=0", "from 1 to"),
        ("--write_buffer_size=10", "at least one key"),
        ("--disable_wal=yes", "one of 0, 1"),
        ("--value_sizes=5", "did you mean `value_size`?"),
        ("--sync", "name=value"),
    ] {
        let problem = DbBenchOptions::parse(text).expect_err(text).to_string();
        assert!(problem.contains(says), "{text}: {problem}");
    }
}

#[test]
fn a_refusal_ends_the_run() {
    let geometry = Geometry::example(1, 1, 4, 24, 24);
    let mut buffers = Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry));
    let options = DbBenchOptions::parse(SMALL).expect("the flags can be used");
    let mut bench = DbBench::new(options, LIMITS, &Prng::new(1));
    let request = bench.next(Tag(0), &mut buffers).expect("a log is created");
    bench.on_reply(&request, &TableReply::refused(Tag(0), TableRefusal::NoRoom, None), &mut buffers);
    assert!(bench.next(Tag(1), &mut buffers).is_none() && bench.is_finished());
    assert_eq!(bench.refusal(), Some(TableRefusal::NoRoom));
}
