//! `db_bench`'s flags.

use super::super::words::Words;
use ocssd_base::Problems;
use ocssd_lightnvm::interface::Durability;

/// A benchmark (`db_bench --benchmarks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// Puts in the order of keys.
    FillSeq,
    /// Puts of random keys.
    FillRandom,
    /// Puts of random keys, each durable.
    FillSync,
    /// Puts of random keys in a database that has them.
    Overwrite,
    /// Reads every table from begin to end.
    ReadSeq,
    /// Gets of random keys.
    ReadRandom,
    /// Gets of random keys, and now and then a put.
    ReadWhileWriting,
}

/// Benchmarks by name.
const BENCHMARKS: [(&str, Benchmark); 7] = [
    ("fillseq", Benchmark::FillSeq),
    ("fillrandom", Benchmark::FillRandom),
    ("fillsync", Benchmark::FillSync),
    ("overwrite", Benchmark::Overwrite),
    ("readseq", Benchmark::ReadSeq),
    ("readrandom", Benchmark::ReadRandom),
    ("readwhilewriting", Benchmark::ReadWhileWriting),
];

impl Benchmark {
    /// Its name, as `--benchmarks` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        BENCHMARKS.iter().find(|(_, benchmark)| *benchmark == self).map_or("", |(name, _)| name)
    }
}

/// Options of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DbBenchOptions {
    /// Benchmarks, one after the other, on the same database.
    pub benchmarks: Vec<Benchmark>,
    /// Keys, and puts of a benchmark that writes.
    pub num: u64,
    /// Gets of a benchmark that reads.
    pub reads: u64,
    /// Bytes of a key and its value together.
    pub record_bytes: u64,
    /// Bytes of a memtable.
    pub write_buffer_bytes: u64,
    /// Bytes of a table of level 1.
    pub target_file_bytes: u64,
    /// Tables of level 0 that begin a compaction.
    pub level0_trigger: u32,
    /// Bytes a get reads of a table.
    pub block_bytes: u32,
    /// Puts are logged.
    pub has_wal: bool,
    /// When logged puts survive (`--sync`).
    pub durability: Durability,
}

impl DbBenchOptions {
    /// Reads flags with spaces between, with or without the two dashes.
    ///
    /// # Errors
    /// Every flag that cannot be used, in a sentence.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        let mut words = Words::flags(text);
        let num = words.number("num", 1_000, 1..=1 << 40);
        let benchmarks = words.choices("benchmarks", &[Benchmark::FillSeq], &BENCHMARKS);
        let record_bytes =
            words.number("key_size", 16, 1..=255) + words.number("value_size", 100, 0..=1 << 20);
        let write_buffer_bytes = words.number("write_buffer_size", 64 << 20, 1..=1 << 40);
        words.require(
            write_buffer_bytes >= record_bytes,
            "write_buffer_size",
            write_buffer_bytes,
            "a memtable holds at least one key and its value",
        );
        let target_file_bytes = words.number("target_file_size_base", 64 << 20, 1..=1 << 40);
        words.require(
            target_file_bytes >= record_bytes,
            "target_file_size_base",
            target_file_bytes,
            "a table holds at least one key and its value",
        );
        let options = Self {
            benchmarks,
            num,
            reads: words.number("reads", num, 0..=1 << 40),
            record_bytes,
            write_buffer_bytes,
            target_file_bytes,
            level0_trigger: words.number32("level0_file_num_compaction_trigger", 4, 1..=10_000),
            block_bytes: words.number32("block_size", 4_096, 1..=1 << 20),
            has_wal: !words.choice("disable_wal", false, &[("0", false), ("1", true)]),
            durability: words.choice(
                "sync",
                Durability::AtFlush,
                &[("0", Durability::AtFlush), ("1", Durability::AtReply)],
            ),
        };
        words.finish().map(|()| options)
    }
}
