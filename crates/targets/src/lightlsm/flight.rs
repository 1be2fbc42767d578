//! What commands in flight are for.
//!
//! Deliberately not here: the queue to the device (`crate::flight`).

use super::change::Number;
use ocssd_base::SlabKey;
use ocssd_ftl::{Append, ChunkIndex};
use ocssd_lightnvm::BufId;

/// A command's purpose.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// A part of a host's read.
    Read { part: SlabKey },
    /// A unit of a table or log, or padding behind its content, which lies in this buffer.
    Unit { number: Number, column: u32, what: Result<u64, BufId>, at: Append },
    /// A page of the log.
    LogPage { page: SlabKey },
    /// A page of a checkpoint.
    CheckpointPage { page: SlabKey },
    /// Padding that closes a chunk.
    Close { chunk: ChunkIndex, from: u32, padding: BufId },
    /// A reset of a chunk.
    Reset { chunk: ChunkIndex },
}
