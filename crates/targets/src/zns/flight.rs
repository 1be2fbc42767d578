//! What commands in flight are for.
//!
//! Deliberately not here: the queue to the device (`crate::flight`).

use super::buffer_units::BufferUnitId;
use ocssd_base::SlabKey;
use ocssd_ftl::{Append, ChunkIndex};
use ocssd_lightnvm::BufId;

/// A command's purpose.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Blocks of a user's read, from the `index`th on.
    Read { request: SlabKey, index: u32, count: u32 },
    /// A sector that is read again.
    Retry { number: SlabKey },
    /// A unit of a zone.
    Unit { writer: SlabKey, buffer_unit: BufferUnitId, at: Append },
    /// Padding that makes units of a zone readable.
    Window { writer: SlabKey, at: Append, padding: BufId },
    /// Padding to the end of a chunk that no zone writes.
    Padding { chunk: ChunkIndex, sectors: u32, padding: BufId },
    /// A page of tails.
    Tail { page: SlabKey },
    /// A page of the log.
    LogPage { page: SlabKey },
    /// A page of a checkpoint.
    CheckpointPage { page: SlabKey },
    /// A unit of a chunk that is moved for its wear is read.
    MoveRead,
    /// It is written to where it goes.
    MoveWrite,
    /// A reset of a chunk.
    Reset { chunk: ChunkIndex },
    /// A reset of several.
    Resets { batch: SlabKey },
}
