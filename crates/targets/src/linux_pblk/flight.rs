//! Commands on their way: what each is for. The queue to the device is every target's (`crate::flight`).
//!
//! Deliberately not here: what their ends mean.

use super::open_line::UnitWrite;
use super::read::ReadPurpose;
use crate::vector_reset::VectorReset;
use ocssd_ftl::{BufferUnitId, LineId, PhysicalAddress, ResetCommand};
use ocssd_lightnvm::BufId;

/// Commands in flight and not yet given out.
pub type Flight = crate::flight::Flight<Purpose>;

/// What a write carries.
#[derive(Clone, Copy, Debug)]
pub enum Carried {
    /// Blocks.
    BufferUnit(BufferUnitId),
    /// Metadata or padding, in a buffer of the target's own.
    Own(BufId),
}

/// What a command is for.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Sectors of a user's read.
    Read(ReadPurpose),
    /// A sector of a read that failed, see `retry`.
    Retry {
        /// The number of the read.
        number: u64,
    },
    /// A unit of the open line.
    Write {
        /// Which unit.
        write: UnitWrite,
        /// With what.
        carried: Carried,
    },
    /// A unit with sectors to be moved.
    GcRead {
        /// Into which buffer.
        buffer: BufId,
        /// Of which line.
        line: LineId,
        /// From where.
        first: PhysicalAddress,
    },
    /// Chunks of a line.
    Reset {
        /// Which chunks of which line.
        command: ResetCommand,
        /// Where their list is, and what became of each.
        reset: VectorReset,
    },
    /// Everything acknowledged so far becomes durable.
    Barrier,
    /// The same, before the end metadata of a line are written.
    EndBarrier,
}
