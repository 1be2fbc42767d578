//! What is asked for, in `db_bench`'s flags.
//!
//! Deliberately not here: what processors take (`costs`).

use super::costs::Costs;
use crate::generator::words::Words;
use ocssd_base::{Nanos, Problems};

/// A benchmark (`db_bench --benchmarks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// Every thread puts the keys from 0 to `num` in order: all the same keys.
    FillSeq,
    /// Every thread puts `num` random keys.
    FillRandom,
    /// As `fillrandom`, on a database that has them.
    Overwrite,
    /// Every thread reads `reads` keys in order.
    ReadSeq,
    /// Every thread gets `reads` random keys.
    ReadRandom,
    /// As `readrandom`, and one more thread puts random keys until the others are done.
    ReadWhileWriting,
    /// Memtables are flushed, and compactions go on until none is due (`db_bench`'s benchmark of this name flushes nothing).
    WaitForCompaction,
}

/// Benchmarks by name.
const BENCHMARKS: [(&str, Benchmark); 7] = [
    ("fillseq", Benchmark::FillSeq),
    ("fillrandom", Benchmark::FillRandom),
    ("overwrite", Benchmark::Overwrite),
    ("readseq", Benchmark::ReadSeq),
    ("readrandom", Benchmark::ReadRandom),
    ("readwhilewriting", Benchmark::ReadWhileWriting),
    ("waitforcompaction", Benchmark::WaitForCompaction),
];

impl Benchmark {
    /// Its name, as `--benchmarks` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        BENCHMARKS.iter().find(|(_, benchmark)| *benchmark == self).map_or("", |(name, _)| name)
    }
}

/// Options of a run. Defaults are those of `db_bench` 5.4.6, the paper's version, unless said otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct LsmOptions {
    /// Benchmarks, one after the other, on the same database.
    pub benchmarks: Vec<Benchmark>,
    /// Threads that put and get.
    pub threads: usize,
    /// Keys, and puts of a thread.
    pub num: u64,
    /// Reads of a thread.
    pub reads: u64,
    /// Bytes of a key and its value together.
    pub record_bytes: u64,
    /// Bytes of a memtable.
    pub write_buffer_bytes: u64,
    /// Memtables at most, the one being filled included.
    pub memtables_max: usize,
    /// Full memtables that are flushed together.
    pub memtables_to_merge: usize,
    /// Tables of level 0 that begin a compaction.
    pub level0_trigger: usize,
    /// Tables of level 0 from which on puts are slowed down.
    pub level0_slowdown: usize,
    /// Tables of level 0 at which puts stop.
    pub level0_stop: usize,
    /// Bytes a second that the writer of `readwhilewriting` puts, where `db_bench` holds every benchmark to it; 0 for as many as
    /// it can.
    pub writer_rate: u64,
    /// Bytes a second of puts that are slowed down; 0 never slows them down, it only stops them.
    pub delayed_write_rate: u64,
    /// Bytes that compactions have yet to move from which on puts are slowed down.
    pub pending_soft_bytes: u64,
    /// The same, at which puts stop.
    pub pending_hard_bytes: u64,
    /// Compactions at the same time.
    pub compactions_max: usize,
    /// Bytes of a table of level 1 and below.
    pub target_file_bytes: u64,
    /// Bytes of level 1.
    pub level_base_bytes: u64,
    /// How many times larger each level below is.
    pub level_multiplier: u64,
    /// Levels.
    pub levels: usize,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bits of a table's filter for each key; 0 without filters.
    pub bloom_bits: u32,
    /// Bytes a table is appended by (`writable_file_max_buffer_size`).
    pub append_bytes: u64,
    /// Bytes a compaction reads at once; at least a block.
    pub compaction_readahead_bytes: u64,
    /// Bytes a `readseq` reads at once; at least a block.
    pub readahead_bytes: u64,
    /// The target is told how long a table will be when it is created.
    pub has_size_hint: bool,
    /// Time of a point of the series.
    pub interval: Nanos,
    /// What processors take.
    pub costs: Costs,
}

impl LsmOptions {
    /// Reads flags with spaces between, with or without the two dashes.
    ///
    /// # Errors
    /// Every flag that cannot be used, in a sentence.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        let mut words = Words::flags(text);
        let num = words.number("num", 100_000, 1..=1 << 40);
        let options = Self {
            benchmarks: words.choices("benchmarks", &[Benchmark::FillSeq], &BENCHMARKS),
            threads: index(words.number32("threads", 1, 1..=64)),
            num,
            reads: words.number("reads", num, 1..=1 << 40),
            record_bytes: words.number("key_size", 16, 1..=255)
                + words.number("value_size", 1_024, 0..=1 << 20),
            write_buffer_bytes: words.number("write_buffer_size", 64 << 20, 1..=1 << 40),
            memtables_max: index(words.number32("max_write_buffer_number", 2, 2..=1_024)),
            memtables_to_merge: index(words.number32("min_write_buffer_number_to_merge", 1, 1..=1_023)),
            level0_trigger: index(words.number32("level0_file_num_compaction_trigger", 4, 1..=10_000)),
            level0_slowdown: index(words.number32("level0_slowdown_writes_trigger", 20, 1..=10_000)),
            level0_stop: index(words.number32("level0_stop_writes_trigger", 36, 1..=10_000)),
            writer_rate: words.number("benchmark_write_rate_limit", 0, 0..=1 << 40),
            delayed_write_rate: words.number("delayed_write_rate", 8 << 20, 0..=1 << 40),
            pending_soft_bytes: words.number("soft_pending_compaction_bytes_limit", 64 << 30, 1..=1 << 50),
            pending_hard_bytes: words.number("hard_pending_compaction_bytes_limit", 256 << 30, 1..=1 << 50),
            compactions_max: index(words.number32("max_background_compactions", 1, 1..=64)),
            target_file_bytes: words.number("target_file_size_base", 64 << 20, 1..=1 << 40),
            level_base_bytes: words.number("max_bytes_for_level_base", 256 << 20, 1..=1 << 50),
            level_multiplier: words.number("max_bytes_for_level_multiplier", 10, 1..=1_000),
            levels: index(words.number32("num_levels", 7, 2..=7)),
            block_bytes: words.number("block_size", 4_096, 64..=1 << 20),
            bloom_bits: words.number32("bloom_bits", 0, 0..=100),
            append_bytes: words.number("writable_file_max_buffer_size", 1 << 20, 1..=64 << 20),
            compaction_readahead_bytes: words.number("compaction_readahead_size", 0, 0..=64 << 20),
            readahead_bytes: words.number("readahead_size", 0, 0..=64 << 20),
            has_size_hint: words.choice("size_hint", true, &[("0", false), ("1", true)]),
            interval: Nanos::from_millis(words.number("stats_interval_ms", 1_000, 1..=1 << 20)),
            costs: Costs::read(&mut words),
        };
        options.check(&mut words);
        words.finish().map(|()| options)
    }

    fn check(&self, words: &mut Words) {
        words.require(
            self.write_buffer_bytes >= self.record_bytes,
            "write_buffer_size",
            self.write_buffer_bytes,
            "a memtable holds at least one key and its value",
        );
        words.require(
            self.target_file_bytes >= self.record_bytes,
            "target_file_size_base",
            self.target_file_bytes,
            "a table holds at least one key and its value",
        );
        words.require(
            self.level0_trigger <= self.level0_slowdown && self.level0_slowdown <= self.level0_stop,
            "level0_stop_writes_trigger",
            self.level0_stop,
            "level 0 is compacted, then slows puts down, then stops them: trigger <= slowdown <= stop",
        );
        words.require(
            self.memtables_to_merge < self.memtables_max,
            "min_write_buffer_number_to_merge",
            self.memtables_to_merge,
            "fewer memtables are merged than max_write_buffer_number, or none would be left to fill",
        );
        words.require(
            self.pending_soft_bytes <= self.pending_hard_bytes,
            "soft_pending_compaction_bytes_limit",
            self.pending_soft_bytes,
            "puts are slowed down before they stop: soft <= hard",
        );
    }

    /// Bytes level `level` may have before it is compacted.
    #[must_use]
    pub fn level_bytes_max(&self, level: usize) -> u64 {
        assert!(level > 0 && level < self.levels, "level {level} has no size");
        let times = u32::try_from(level - 1).expect("seven levels at most");
        self.level_base_bytes.saturating_mul(self.level_multiplier.saturating_pow(times))
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).expect("32 bits fit an index")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_and_levels_grow() {
        let options = LsmOptions::parse("--threads=4 --num=1k --max_bytes_for_level_base=1m num_levels=3");
        let options = options.expect("flags of db_bench");
        assert_eq!((options.threads, options.num, options.reads), (4, 1_024, 1_024));
        assert_eq!((options.level_bytes_max(1), options.level_bytes_max(2)), (1 << 20, 10 << 20));
    }

    #[test]
    fn bad_flags_are_refused_in_words() {
        for (text, says) in [
            ("--benchmarks=fillsek", "did you mean `fillseq`?"),
            ("--thread=2", "did you mean `threads`?"),
            ("--threads=0", "from 1 to 64"),
            ("--write_buffer_size=10", "at least one key"),
            ("--level0_slowdown_writes_trigger=40", "trigger <= slowdown <= stop"),
            ("--min_write_buffer_number_to_merge=2", "none would be left to fill"),
            ("--soft_pending_compaction_bytes_limit=1t", "soft <= hard"),
        ] {
            let problem = LsmOptions::parse(text).expect_err(text).to_string();
            assert!(problem.contains(says), "{text}: {problem}");
        }
    }
}
