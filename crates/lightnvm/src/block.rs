//! The block interface: requests and replies every block target shares, zoned ones included.
//!
//! A block is the target's unit of address. Deliberately not here: partial blocks; who serves smaller units splits them
//! (`targets::small_blocks`).

use crate::buffers::BufId;
use crate::command::Tag;
pub use crate::counter::{Counter, CounterValue};
use crate::rule::Violation;
use crate::status::Status;
use crate::target::Target;
use crate::transaction::Transactions;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockOp {
    /// Fills the buffer.
    Read,
    /// Stores the buffer. On a zoned target it must start at the zone's write pointer.
    Write {
        /// Reply only when durable.
        fua: bool,
    },
    /// Replies when everything replied to before is durable.
    Flush,
    /// The range's content is no longer needed: it reads as zeroes. Durable as a write is. Of a target whose blocks are
    /// smaller than what it maps, only whole sectors are discarded; the rest of the range keeps its content.
    Discard,
    /// The range reads as zeroes from now on. Durable as a write is.
    WriteZeroes,
    /// Replies when everything is durable and the target can be left: what it keeps about itself is on media, and the
    /// next mount is quick. Nothing may be asked of it afterwards.
    Shutdown,
    /// Makes the zone that starts at the address empty. Zoned targets only.
    ResetZone,
}

/// A request to a block target.
#[derive(Clone, Copy, Debug)]
pub struct BlockRequest {
    /// The host's name for it.
    pub tag: Tag,
    /// What to do.
    pub op: BlockOp,
    /// First block.
    pub block: u64,
    /// How many blocks; 0 for flush and shutdown.
    pub count: u32,
    /// The host's buffer, from its first sector on. Reads and writes need one that holds `count` blocks
    /// ([`PayloadFormat::sectors_of_blocks`](crate::PayloadFormat::sectors_of_blocks)). A read may change the buffer up to
    /// the end of the sector in which its last block ends.
    pub buffer: Option<BufId>,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockReply {
    /// The request's tag.
    pub tag: Tag,
    /// Success, or the first failure.
    pub status: Status,
    /// Which rule was broken, if one was.
    pub violation: Option<Violation>,
}

/// Zones of a zoned target: all of one size, written in order, reset as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zones {
    /// Blocks of a zone.
    pub blocks: u64,
    /// How many zones.
    pub count: u64,
}

/// A target that is a block device.
pub trait BlockTarget: Target<Request = BlockRequest, Reply = BlockReply> {
    /// Bytes of a block.
    fn block_bytes(&self) -> u32;

    /// Blocks of the device.
    fn block_count(&self) -> u64;

    /// Its zones, if it must be written zone by zone; most must not.
    fn zones(&self) -> Option<Zones> {
        None
    }

    /// What writes must be multiples of, and best start at, in blocks.
    fn write_unit(&self) -> u32 {
        1
    }

    /// How many of the newest blocks of a zone cannot be read until more are written (MW_CUNITS seen through the
    /// target); 0 if any written block can be read.
    fn unreadable_tail(&self) -> u64 {
        0
    }

    /// Blocks that one write stores as a whole or not at all, whatever happens meanwhile, and that one read sees so: 1 of a target
    /// that promises no more.
    fn atomic_blocks(&self) -> u32 {
        1
    }

    /// Its transactions over several requests, if it has such.
    fn transactions(&mut self) -> Option<&mut dyn Transactions> {
        None
    }

    /// Whether a block holds something: it was written, and not discarded since. `None` of targets without a map, and where a map
    /// that is in memory in part does not know.
    fn is_mapped(&self, block: u64) -> Option<bool> {
        let _ = block;
        None
    }

    /// Blocks written in order from a zone's start, those of taken requests included.
    ///
    /// # Panics
    /// If there is no such zone, or the target has none.
    fn zone_written(&self, zone: u64) -> u64 {
        unreachable!("zone {zone} of a target without zones")
    }
}
