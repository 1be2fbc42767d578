//! What commands in flight are for.
//!
//! Deliberately not here: the queue to the device (`crate::flight`).

use super::buffer_units::BufferUnitId;
use ocssd_base::SlabKey;
use ocssd_ftl::{Append, ChunkIndex};

/// A command's purpose.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// A record, or a piece, for a retrieve.
    Read { read: SlabKey },
    /// A page of the index.
    IndexPage { read: SlabKey },
    /// A unit of records.
    Unit { buffer_unit: BufferUnitId, at: Append },
    /// A page of a checkpoint.
    CheckpointPage { page: SlabKey },
    /// A unit of a victim.
    Collect { read: SlabKey },
    /// A reset of a chunk.
    Reset { chunk: ChunkIndex },
}
