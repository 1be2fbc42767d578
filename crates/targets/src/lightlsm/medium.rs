//! What an instance's chunks are, and what follows from it for its content.
//!
//! Deliberately not here: where the chunks of a block target come from (`over_blocks`).

use ocssd_lightnvm::Op;

/// What chunks are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// Chunks of an open-channel drive: each sector has a tag beside it, and a write pointer says how far a chunk is written.
    #[default]
    Chunks,
    /// Extents of a block target, which has neither. Pages are known by what they say of themselves, and how far an extent of
    /// content is written by the catalog: what lies behind is written over.
    Extents,
}

impl Medium {
    /// Sectors have tags, by which lost and misplaced content is found. A block target looks after its content itself.
    #[must_use]
    pub const fn has_tags(self) -> bool {
        matches!(self, Self::Chunks)
    }

    /// The write of a unit of content. On extents it goes to the block target's cache: a page of the log that names it is
    /// written behind a flush.
    #[must_use]
    pub const fn content_write(self) -> Op {
        Op::Write { fua: self.has_tags() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_forced_where_nothing_below_flushes_it_before_the_log() {
        assert_eq!(Medium::Chunks.content_write(), Op::Write { fua: true });
        assert_eq!(Medium::Extents.content_write(), Op::Write { fua: false });
        assert_eq!(Medium::default(), Medium::Chunks, "a drive, unless it is said otherwise");
    }
}
