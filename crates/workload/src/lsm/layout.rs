//! Where the records of a table lie: in blocks, then what finds them.
//!
//! Filter and index are at the end. They are written, and not read again: RocksDB keeps those of open tables in memory.
//! Each block begins with the table's name and its own number, so that a read can be judged.

use super::options::LsmOptions;

/// Bytes of the index for a block: a key, an offset and a length in varints (chosen: what `sst_dump` shows of such tables).
const INDEX_ENTRY_BYTES: u64 = 32;

/// The same for all tables of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    record_bytes: u64,
    records_per_block: u64,
    bloom_bits: u64,
}

impl Layout {
    /// RocksDB ends a block that another record would make longer than asked, if it is nine tenths full
    /// (`block_size_deviation` 10).
    pub(super) fn new(options: &LsmOptions) -> Self {
        let fitting = options.block_bytes / options.record_bytes;
        let is_full = fitting * options.record_bytes * 10 > options.block_bytes * 9;
        let records_per_block = if is_full { fitting } else { fitting + 1 };
        assert!(records_per_block > 0, "a block holds a record");
        Self {
            record_bytes: options.record_bytes,
            records_per_block,
            bloom_bits: u64::from(options.bloom_bits),
        }
    }

    pub(super) const fn block_bytes(&self) -> u64 {
        self.records_per_block * self.record_bytes
    }

    pub(super) const fn block_of(&self, record: u64) -> u64 {
        record / self.records_per_block
    }

    pub(super) const fn blocks(&self, records: u64) -> u64 {
        records.div_ceil(self.records_per_block)
    }

    /// Bytes of the blocks of so many records.
    pub(super) const fn data_bytes(&self, records: u64) -> u64 {
        records * self.record_bytes
    }

    /// Bytes behind the blocks.
    pub(super) const fn meta_bytes(&self, records: u64) -> u64 {
        (records * self.bloom_bits).div_ceil(8) + self.blocks(records) * INDEX_ENTRY_BYTES
    }

    pub(super) const fn table_bytes(&self, records: u64) -> u64 {
        self.data_bytes(records) + self.meta_bytes(records)
    }

    /// The blocks from the one with this record on, `bytes` of them or one, as offset and bytes; and the first record behind.
    pub(super) fn window(&self, record: u64, records: u64, bytes: u64) -> (u64, u64, u64) {
        assert!(record < records, "record {record} of {records}");
        let first = self.block_of(record) * self.records_per_block;
        let blocks = (bytes / self.block_bytes()).max(1);
        let behind = (first + blocks * self.records_per_block).min(records);
        (first * self.record_bytes, (behind - first) * self.record_bytes, behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(flags: &str) -> Layout {
        Layout::new(&LsmOptions::parse(flags).expect("flags"))
    }

    #[test]
    fn blocks_are_cut_as_rocksdb_cuts_them() {
        // 3 x 1,040 are less than nine tenths of 4,096, so a fourth record goes in; 94 are more than nine tenths of 98,304.
        assert_eq!(layout("--block_size=4096").block_bytes(), 4 * 1_040);
        assert_eq!(layout("--block_size=98304").block_bytes(), 94 * 1_040);
        assert_eq!(layout("--block_size=64 --bloom_bits=10").table_bytes(8), 8 * 1_040 + 10 + 8 * 32);
    }

    #[test]
    fn a_window_has_whole_blocks_and_ends_with_the_records() {
        let layout = layout("--block_size=4096");
        assert_eq!(layout.window(5, 100, 0), (4_160, 4_160, 8));
        assert_eq!(layout.window(5, 100, 9_000), (4_160, 8_320, 12));
        assert_eq!(layout.window(99, 100, 1 << 20), (96 * 1_040, 4_160, 100));
        assert_eq!(layout.window(8, 9, 1 << 20), (8_320, 1_040, 9));
    }
}
