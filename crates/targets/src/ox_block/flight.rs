//! What commands in flight are for.
//!
//! Deliberately not here: the queue to the device (`crate::flight`).

use super::write_buffer::FrameId;
use ocssd_base::SlabKey;
use ocssd_ftl::{Append, ChunkIndex};

/// A command's purpose.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Blocks of a user's read, from the `index`th on.
    Read { request: SlabKey, index: u32, count: u32 },
    /// A sector that is read again.
    Retry { number: SlabKey },
    /// A frame of data.
    Frame { frame: FrameId, at: Append },
    /// A page of the log.
    LogPage { page: SlabKey },
    /// A page of a checkpoint.
    CheckpointPage { page: SlabKey },
    /// Sectors of a victim.
    Collect { read: SlabKey },
    /// A reset of a chunk.
    Reset { chunk: ChunkIndex },
}
