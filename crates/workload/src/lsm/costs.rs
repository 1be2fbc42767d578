//! What the host's processors take, measured once of the real thing.
//!
//! Measured with `db_bench` of RocksDB 7.8.3 (Debian 12, assertions on) on tmpfs, one thread, a loaded machine with two cores:
//! `--disable_wal=1 --key_size=16 --value_size=1024 --compression_type=none --cache_size=0 --bloom_bits=10 --num=200000
//! --benchmarks=fillseq,readseq,readrandom --perf_level=3`, with `--block_size=4096` and 98304; and `--num=300000
//! --benchmarks=fillseq,overwrite,waitforcompaction,stats`. Each number is the median of three runs; docs/workload.md has the
//! sums. The time of the file system's reads was taken off, for the target's takes its place. They hold for keys of 16 bytes
//! and values of 1 KiB. Nothing was fitted to a result of this model.
//!
//! Every thread has a core of its own: threads wait for each other at the write queue and for the drive, never for a
//! processor.

use crate::generator::words::Words;
use ocssd_base::Nanos;

/// What each step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A put, less [`Self::put_serial`]: the key and value are made and inserted. 7.70 us a put in all.
    pub put: Nanos,
    /// What one put of all threads does at a time (`write_pre_and_post_process_time`).
    pub put_serial: Nanos,
    /// A get, less its blocks.
    pub get: Nanos,
    /// A record of a `readseq`, less its blocks.
    pub next: Nanos,
    /// A block that was read, whatever its length: its iterator is made.
    pub block: Nanos,
    /// Picoseconds for a byte of a block that was read: copy and checksum.
    pub block_byte_ps: u64,
    /// Picoseconds for a byte that a flush takes in (0.76 s of `CompMergeCPU` for 0.528 GiB).
    pub flush_byte_ps: u64,
    /// Picoseconds for a byte that a compaction takes in (1.13 s for 643,000 records of 1,040 bytes).
    pub compaction_byte_ps: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            put: Nanos(7_100),
            put_serial: Nanos(600),
            get: Nanos(8_040),
            next: Nanos(1_280),
            block: Nanos(1_040),
            block_byte_ps: 159,
            flush_byte_ps: 1_340,
            compaction_byte_ps: 1_690,
        }
    }
}

impl Costs {
    /// Reads those that are given.
    pub(super) fn read(words: &mut Words) -> Self {
        let all = Self::default();
        let mut nanos = |name, default: Nanos| Nanos(words.number(name, default.0, 0..=1_000_000_000));
        let (put, put_serial) = (nanos("cpu_put_ns", all.put), nanos("cpu_put_serial_ns", all.put_serial));
        let (get, next) = (nanos("cpu_get_ns", all.get), nanos("cpu_next_ns", all.next));
        let block = nanos("cpu_block_ns", all.block);
        Self {
            put,
            put_serial,
            get,
            next,
            block,
            block_byte_ps: words.number("cpu_block_byte_ps", all.block_byte_ps, 0..=1_000_000),
            flush_byte_ps: words.number("cpu_flush_byte_ps", all.flush_byte_ps, 0..=1_000_000),
            compaction_byte_ps: words.number("cpu_compaction_byte_ps", all.compaction_byte_ps, 0..=1_000_000),
        }
    }

    /// What `bytes` of read blocks take, the blocks being `blocks`.
    #[must_use]
    pub fn of_blocks(&self, blocks: u64, bytes: u64) -> Nanos {
        self.block * blocks + Nanos(bytes * self.block_byte_ps / 1_000)
    }
}
