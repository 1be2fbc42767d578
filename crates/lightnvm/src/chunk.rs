//! Chunks: their states (OCSSD 2.0 section 2.2, figure 5) and what the drive reports of each (section 3.2.2).
//!
//! Deliberately not here: the 32-byte wire form (`nvme`) and who changes a state (`flash`).

use crate::address::Lba;
use std::fmt;

/// The state of a chunk. OFFLINE is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChunkState {
    /// Reset, nothing written.
    Free,
    /// Partly written; the next write goes to the write pointer.
    Open,
    /// Written to its end, or closed early by the drive.
    Closed,
    /// Worn out or broken; never usable again.
    Offline,
}

impl ChunkState {
    /// All states, in the order of the specification.
    pub const ALL: [Self; 4] = [Self::Free, Self::Open, Self::Closed, Self::Offline];
}

impl fmt::Display for ChunkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Free => "FREE",
            Self::Open => "OPEN",
            Self::Closed => "CLOSED",
            Self::Offline => "OFFLINE",
        })
    }
}

/// One entry of the chunk information log page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkDescriptor {
    /// State.
    pub state: ChunkState,
    /// 0 new to 255 worn out, never falling.
    pub wear_index: u8,
    /// The chunk's first sector in the device's format.
    pub first: Lba,
    /// Sectors in the chunk.
    pub sectors: u32,
    /// Next sector to write, counted from the chunk's start. `None` when OFFLINE (all ones on the wire).
    pub write_pointer: Option<u32>,
}
