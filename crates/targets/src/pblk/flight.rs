//! Commands on their way: what each is for, and the queue to the device.
//!
//! Deliberately not here: what their ends mean.

use ocssd_base::{Ring, Slab, SlabKey};
use ocssd_ftl::{FrameId, LineId, UnitIndex, Write};
use ocssd_lightnvm::{Addresses, BufId, Command, Op, Ppa, Tag, VECTOR_MAX};

/// Commands at once: what the deepest NVMe queue pairs of a host take (chosen).
pub const COMMANDS_MAX: u32 = 8192;

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
    /// A frame to an open line.
    Frame {
        /// Which frame.
        frame: FrameId,
        /// Where.
        line: LineId,
        /// Which write of the line.
        write: Write,
    },
    /// A head, a tail, fill, or a piece of a snapshot.
    Meta {
        /// Its buffer.
        buffer: BufId,
        /// Where.
        line: LineId,
        /// Which write of the line.
        write: Write,
        /// Pieces of a snapshot it carries.
        pieces: u32,
        /// The first of them.
        first_piece: u32,
    },
    /// Valid sectors to be moved, into a buffer of the collector's.
    Collect {
        /// Into which buffer; their addresses are in it.
        buffer: BufId,
        /// How many.
        count: u32,
        /// The victim they were read of; `None` for weak sectors.
        victim: Option<LineId>,
    },
    /// Chunks of a line.
    Reset {
        /// Which line.
        line: LineId,
        /// From which unit on; the addresses follow the good chunks.
        first_unit: UnitIndex,
        /// The list of addresses.
        buffer: BufId,
    },
    /// Everything acknowledged so far becomes durable.
    Barrier,
}

/// Commands in flight and not yet given out.
#[derive(Clone, Debug)]
pub struct Flight {
    purposes: Slab<Purpose>,
    outbox: Ring<Command>,
}

impl Flight {
    pub fn new() -> Self {
        Self {
            purposes: Slab::new(COMMANDS_MAX),
            outbox: Ring::new(usize::try_from(COMMANDS_MAX).expect("32 bits fit an index")),
        }
    }

    /// Room for `count` more commands.
    pub fn has_room(&self, count: usize) -> bool {
        self.purposes.len() + count <= usize::try_from(COMMANDS_MAX).expect("32 bits fit an index")
    }

    /// Queues a command.
    pub fn send(
        &mut self,
        purpose: Purpose,
        op: Op,
        addresses: Addresses,
        buffer: Option<BufId>,
        buffer_first: u32,
    ) {
        let command = self.make(purpose, op, addresses, buffer, buffer_first);
        self.outbox.push(command).expect("there are as many places as commands");
        assert!(self.outbox.len() <= self.purposes.len(), "a command without a purpose waits");
    }

    /// A command for the device that is given out at once.
    #[inline(always)]
    pub fn make(
        &mut self,
        purpose: Purpose,
        op: Op,
        addresses: Addresses,
        buffer: Option<BufId>,
        buffer_first: u32,
    ) -> Command {
        let key = self.purposes.insert(purpose).expect("room was asked for before");
        assert!(addresses.count() <= VECTOR_MAX, "{} sectors in one command", addresses.count());
        assert!(buffer.is_some() || matches!(op, Op::Flush), "a command that moves data has a buffer");
        assert!(matches!(op, Op::Flush) || addresses.count() > 0, "a command names nothing");
        let oob = matches!(op, Op::Read | Op::Write { .. });
        Command { tag: Tag(key.0), op, addresses, buffer, buffer_first, oob }
    }

    /// The next command for the device.
    pub fn take(&mut self) -> Option<Command> {
        self.outbox.pop()
    }

    /// True if a command waits for the device.
    pub fn has_next(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// A command ended: what it was for.
    pub fn end(&mut self, tag: Tag) -> Purpose {
        assert!(!self.purposes.is_empty(), "command {} ended, but none was in flight", tag.0);
        let purpose = *self.purposes.get(SlabKey(tag.0));
        self.purposes.free(SlabKey(tag.0));
        purpose
    }

    /// Commands in flight or queued.
    pub fn len(&self) -> usize {
        self.purposes.len()
    }
}
