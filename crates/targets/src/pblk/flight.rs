//! Commands on their way: what each is for. The queue to the device is every target's (`crate::flight`).
//!
//! Deliberately not here: what their ends mean.

use crate::vector_reset::VectorReset;
use ocssd_base::SlabKey;
use ocssd_ftl::{BufferUnitId, LineId, ResetCommand, Write};
use ocssd_lightnvm::{BufId, Ppa};

/// Commands in flight and not yet given out.
pub type Flight = crate::flight::Flight<Purpose>;

/// What a command is for.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Sectors of a user's read: the request, the first sector within it, how many. The addresses of more than one are
    /// in the user's buffer.
    Read {
        /// Which request.
        request: SlabKey,
        /// First sector, counted from the request's start.
        index: u32,
        /// Sectors.
        count: u32,
        /// The first sector.
        first: Ppa,
    },
    /// A sector of a read that failed, see `retry`.
    Retry {
        /// The number of the read.
        number: u64,
    },
    /// A buffer unit to an open line.
    BufferUnit {
        /// Which buffer unit.
        buffer_unit: BufferUnitId,
        /// Where.
        line: LineId,
        /// Which write of the line.
        write: Write,
    },
    /// A head, a tail, fill, or a piece of a checkpoint.
    Meta {
        /// Its buffer.
        buffer: BufId,
        /// Where.
        line: LineId,
        /// Which write of the line.
        write: Write,
        /// Pieces of a checkpoint it carries.
        pieces: u32,
        /// The first of them.
        first_piece: u32,
    },
    /// Valid sectors to be moved, into a buffer of the relocator's.
    GcRead {
        /// Into which buffer; their addresses are in it.
        buffer: BufId,
        /// How many.
        count: u32,
        /// The victim they were read of; `None` for weak sectors.
        victim: Option<LineId>,
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
}
