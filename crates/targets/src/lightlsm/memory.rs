//! What tables and logs take of the host's memory.
//!
//! Counted from the sizes of what is kept, each entry of a tree twice, for its nodes may be half full. Deliberately not here:
//! buffers of what is on its way, the journal's pages, lists of chunks (`space`), which grow with the drive and not with tables.

use super::catalog::Record;
use super::change::Number;
use super::object::{Column, Object};
use super::state::LightLsm;
use ocssd_ftl::ChunkIndex;
use ocssd_lightnvm::interface::table::TableId;

/// How often an entry of a tree is counted.
const NODES: usize = 2;

/// Bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Where content lies: runs and chunks.
    pub map_bytes: u64,
    /// All else of tables and logs.
    pub metadata_bytes: u64,
}

impl Memory {
    fn add(&mut self, map: usize, metadata: usize) {
        self.map_bytes += map as u64;
        self.metadata_bytes += metadata as u64;
    }
}

impl LightLsm {
    /// What all tables and logs take.
    pub(super) fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for (_, record) in self.catalog.iter() {
            let metadata = record.attributes.capacity() + record.tail.capacity();
            memory.add(record.layout.memory_bytes(), metadata + NODES * size_of::<(Number, Record)>());
        }
        for object in self.shelf.objects.values() {
            let map = object.layout.memory_bytes() + object.chunks.capacity() * size_of::<ChunkIndex>();
            let columns = object.columns.capacity() * size_of::<Column>();
            let unfilled = object.unfilled.capacity() * size_of::<(ChunkIndex, u32)>();
            let metadata = object.attributes.capacity() + columns + unfilled;
            let entry = NODES * size_of::<(Number, Box<Object>)>() + size_of::<Object>();
            memory.add(map, metadata + entry);
        }
        memory.add(0, NODES * self.shelf.names.len() * size_of::<(TableId, Number)>());
        assert!(
            memory.metadata_bytes > 0 || self.shelf.objects.is_empty(),
            "tables that take no memory were counted"
        );
        memory
    }
}
