//! Commands down, completions up: the typed form of the vector and scalar commands (OCSSD 2.0 sections 3.3 and 3.4).
//!
//! Deliberately not here: payload. A command names a buffer; data, metadata and address lists lie in
//! [`Buffers`](crate::Buffers).

use crate::address::Ppa;
use crate::buffers::BufId;
use crate::rule::Violation;
use crate::status::Status;

/// Most sectors of one vector command: the completion's bitmap has 64 bits (OCSSD 2.0 section 3.4).
pub const VECTOR_MAX: u32 = 64;

/// The issuer's name for a command or request; comes back in its completion or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Fills the buffer's data and metadata from the addressed sectors.
    Read,
    /// Programs the buffer's data and metadata at the addressed sectors.
    Write {
        /// Complete only when the data is on media (NVMe force unit access).
        fua: bool,
    },
    /// Resets the chunks whose first sectors are addressed.
    Reset,
    /// Moves sectors and metadata inside the drive: the list holds the sources, then as many destinations.
    Copy,
    /// Completes when everything acknowledged before is on media (NVMe flush).
    Flush,
}

/// How a read drives the planes of a parallel unit (OCSSD 1.2, CDW12 bits 17:16). What it means for time is the drive's:
/// a drive whose controller chooses itself takes either the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlaneMode {
    /// One page of one plane after the other.
    #[default]
    Single,
    /// A page of every plane together.
    Multi,
}

/// Where a command acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// `count` sectors from `first` on, in one chunk.
    Run {
        /// The first sector.
        first: Ppa,
        /// How many.
        count: u32,
    },
    /// `count` addresses of the buffer's list, from entry `offset` on. For a copy, `count` sources, then `count`
    /// destinations.
    List {
        /// The first entry.
        offset: u32,
        /// How many.
        count: u32,
    },
    /// Nowhere: flush.
    None,
}

impl Addresses {
    /// How many sectors (or chunks, for a reset).
    #[must_use]
    pub const fn count(&self) -> u32 {
        match *self {
            Self::Run { count, .. } | Self::List { count, .. } => count,
            Self::None => 0,
        }
    }
}

/// One command to a device. Small and plain, so that queues of them are cheap.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// The issuer's name for it.
    pub tag: Tag,
    /// What to do.
    pub op: Op,
    /// Where.
    pub addresses: Addresses,
    /// Whose data; `None` for resets, flushes and reads whose data nobody wants.
    pub buffer: Option<BufId>,
    /// The buffer's first sector that belongs to this command.
    pub buffer_first: u32,
    /// The buffer's metadata goes along; else it is stored as zeroes, and not read.
    pub oob: bool,
    /// How a read drives the planes. Writes always drive all of them, and other commands none.
    pub plane_mode: PlaneMode,
}

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The command's tag.
    pub tag: Tag,
    /// Success; if all entries that did not succeed have the same status, that; else one of theirs. Our drive gives the
    /// gravest (`docs/ppa.md`), others may not: who needs to know what became of one entry of several that failed asks
    /// again with a command for it alone.
    pub status: Status,
    /// Bit `i`: address `i` failed. Only if `status` [has data](Status::has_data) it is weak instead, and none failed.
    /// Nothing beyond the command's addresses, of which scalar commands may have more than there are bits.
    pub failed: u64,
    /// Which rule was broken, if one was.
    pub violation: Option<Violation>,
}

impl Completion {
    /// A command that did what was asked.
    #[must_use]
    pub const fn success(tag: Tag) -> Self {
        Self { tag, status: Status::SUCCESS, failed: 0, violation: None }
    }

    /// How one address of the command ended, by its place in the command. Of a command that names none of those that failed,
    /// and of an address for which there is no bit, nothing better is known than how the command ended.
    #[must_use]
    pub const fn status_of(&self, entry: u32) -> Status {
        let is_named = self.failed != 0 && entry < u64::BITS;
        if is_named && self.failed >> entry & 1 == 0 { Status::SUCCESS } else { self.status }
    }
}

/// Why a device took no command. Nothing was changed; try again after a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// As many commands are in flight as the device takes.
    QueueFull,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_ended_as_the_command_did_unless_others_are_named_that_failed() {
        let ended = |status, failed| Completion { status, failed, ..Completion::success(Tag(1)) };
        let some = ended(Status::UNRECOVERED_READ, 1 << 63 | 1 << 5 | 1);
        for entry in 0..64 {
            let is_named = matches!(entry, 0 | 5 | 63);
            let expected = if is_named { Status::UNRECOVERED_READ } else { Status::SUCCESS };
            assert_eq!(some.status_of(entry), expected, "entry {entry}");
            assert_eq!(Completion::success(Tag(1)).status_of(entry), Status::SUCCESS, "entry {entry}");
            for status in [Status::INTERNAL_ERROR, Status::HIGH_ECC] {
                assert_eq!(ended(status, 0).status_of(entry), status, "entry {entry}, none is named");
            }
        }
        assert_eq!(some.status_of(64), Status::UNRECOVERED_READ, "there is no bit for it");
    }
}
