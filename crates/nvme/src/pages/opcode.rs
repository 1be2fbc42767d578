//! Opcodes of a namespace of pages. All but Flush are a vendor's.
//!
//! OX gave reads A3h, whose bits 1:0 say that data moves both ways. It moves to the host only: which way a command of this set
//! moves data is said by this table, and not by its bits.

use crate::opcode::{DataDirection, opcodes};
use std::fmt;

/// An opcode of an I/O queue, for a namespace of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageOpcode(pub u8);

opcodes!(PageOpcode {
    /// Make everything acknowledged durable.
    FLUSH = 0x00, "Flush";
    /// Pages are stored and deleted, all at once: the data is their table and, if no stage holds it, the buffer they lie in.
    FLUSH_PAGES = 0xA1, "Flush Pages";
    /// How many pages there are, and their bytes.
    STAT = 0xA2, "Stat";
    /// A page, or a part of it.
    READ_PAGE = 0xA3, "Read Page";
    /// A session begins, or is resumed.
    OPEN_SESSION = 0xA4, "Open Session";
    /// A session ends; its pages stay.
    CLOSE_SESSION = 0xA8, "Close Session";
    /// A buffer longer than a command begins to be collected.
    STAGE_OPEN = 0xC0, "Stage Open";
    /// Its next bytes.
    STAGE_APPEND = 0xC1, "Stage Append";
    /// What was collected is forgotten.
    STAGE_ABORT = 0xC8, "Stage Abort";
});

impl PageOpcode {
    /// Which way it moves data.
    #[must_use]
    pub fn direction(self) -> DataDirection {
        if self == Self::READ_PAGE { DataDirection::ToHost } else { DataDirection::of(self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_moves_as_this_table_says() {
        use DataDirection::{None, ToDevice, ToHost};
        let directions: Vec<_> = PageOpcode::all().iter().map(|opcode| opcode.direction()).collect();
        assert_eq!(directions, [None, ToDevice, ToHost, ToHost, None, None, None, ToDevice, None]);
        assert_eq!(DataDirection::of(PageOpcode::READ_PAGE.0), DataDirection::Both, "what its bits say");
        assert_eq!(PageOpcode::FLUSH_PAGES.to_string(), "Flush Pages (A1h)");
    }
}
