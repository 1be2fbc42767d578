//! What commands in flight are for.
//!
//! Deliberately not here: the queue to the device (`crate::flight`).

use super::write_buffer::BufferUnitId;
use ocssd_base::SlabKey;
use ocssd_ftl::{Append, ChunkIndex};

/// A command's purpose. `R` is what a read of the store's own is for.
#[derive(Clone, Copy, Debug)]
pub enum Purpose<R> {
    /// A read of the store's own.
    Own(R),
    /// A sector that is read again.
    Retry { number: SlabKey },
    /// A buffer unit of data.
    BufferUnit { buffer_unit: BufferUnitId, at: Append },
    /// A page of the log.
    LogPage { page: SlabKey },
    /// A page of a checkpoint.
    CheckpointPage { page: SlabKey },
    /// Sectors of a victim.
    Collect { read: SlabKey },
    /// A reset of a chunk.
    Reset { chunk: ChunkIndex },
}
