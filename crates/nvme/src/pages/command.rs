//! The commands. A name of 64 bits, of a session or a page, lies in CDW2 and CDW3.
//!
//! Source: this project (the opcodes are OX's). Dwords that a command does not name mean nothing.

use super::PageOpcode;
use crate::sqe::Sqe;
use crate::wire::{bit, flag};

/// Bits of CDW11 that are a number of rows.
const ROWS_MASK: u32 = 0xFF_FFFF;
/// CDW11: force unit access, where a Write of NVMe has it in CDW12.
const FUA_BIT: u32 = 30;
/// CDW11: the buffer is what a stage holds.
const STAGED_BIT: u32 = 31;

/// Stores and deletes pages. The data is the page table, 16 bytes a row, and behind it the buffer, if no stage holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushPages {
    /// CDW2 and CDW3: the session.
    pub session: u64,
    /// CDW14 and CDW15: the flush's number in it, from 1.
    pub wsn: u64,
    /// CDW10: bytes of the buffer.
    pub bytes: u32,
    /// CDW11 bits 23:0: rows of the page table.
    pub rows: u32,
    /// CDW11 bit 30: answered when durable only.
    pub force_unit_access: bool,
    /// CDW11 bit 31 and CDW13: the host's name for the stage that holds the buffer.
    pub stage: Option<u32>,
}

/// Reads a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPage {
    /// CDW2 and CDW3: the page.
    pub page: u64,
    /// CDW12: its first byte that is read.
    pub offset: u32,
    /// CDW10: room, bytes; 0 asks for the page's length.
    pub bytes: u32,
}

/// Begins or ends a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSession {
    /// CDW2 and CDW3: the session.
    pub session: u64,
}

/// Something about a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagePages {
    /// CDW13: the host's name for it.
    pub stage: u32,
    /// CDW10: of an open bytes that it will have, of an append bytes of this command.
    pub bytes: u32,
    /// CDW12: of an append bytes that were there before.
    pub offset: u32,
}

fn name(sqe: &Sqe) -> u64 {
    u64::from(sqe.cdw3) << 32 | u64::from(sqe.cdw2)
}

fn low(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).expect("32 bits")
}

fn named(opcode: PageOpcode, nsid: u32, name: u64) -> Sqe {
    Sqe { opcode: opcode.0, nsid, cdw2: low(name), cdw3: low(name >> 32), ..Sqe::default() }
}

impl FlushPages {
    /// The view of an entry.
    #[must_use]
    pub fn of(sqe: &Sqe) -> Self {
        Self {
            session: name(sqe),
            wsn: u64::from(sqe.cdw15) << 32 | u64::from(sqe.cdw14),
            bytes: sqe.cdw10,
            rows: sqe.cdw11 & ROWS_MASK,
            force_unit_access: bit(sqe.cdw11, FUA_BIT),
            stage: bit(sqe.cdw11, STAGED_BIT).then_some(sqe.cdw13),
        }
    }
}

impl ReadPage {
    /// The view of an entry.
    #[must_use]
    pub fn of(sqe: &Sqe) -> Self {
        Self { page: name(sqe), offset: sqe.cdw12, bytes: sqe.cdw10 }
    }
}

impl PageSession {
    /// The view of an entry.
    #[must_use]
    pub fn of(sqe: &Sqe) -> Self {
        Self { session: name(sqe) }
    }
}

impl StagePages {
    /// The view of an entry.
    #[must_use]
    pub const fn of(sqe: &Sqe) -> Self {
        Self { stage: sqe.cdw13, bytes: sqe.cdw10, offset: sqe.cdw12 }
    }
}

impl Sqe {
    /// A flush of pages.
    ///
    /// # Panics
    /// If it has 2^24 rows or more.
    #[must_use]
    pub fn flush_pages(nsid: u32, flush: FlushPages) -> Self {
        assert!(flush.rows <= ROWS_MASK, "{} rows have no room in 24 bits", flush.rows);
        Self {
            cdw10: flush.bytes,
            cdw11: flush.rows
                | flag(flush.force_unit_access, FUA_BIT)
                | flag(flush.stage.is_some(), STAGED_BIT),
            cdw13: flush.stage.unwrap_or(0),
            cdw14: low(flush.wsn),
            cdw15: low(flush.wsn >> 32),
            ..named(PageOpcode::FLUSH_PAGES, nsid, flush.session)
        }
    }

    /// A read of a page.
    #[must_use]
    pub fn read_page(nsid: u32, read: ReadPage) -> Self {
        Self { cdw10: read.bytes, cdw12: read.offset, ..named(PageOpcode::READ_PAGE, nsid, read.page) }
    }

    /// The begin of a session, or its end, as the opcode says.
    #[must_use]
    pub fn page_session(opcode: PageOpcode, nsid: u32, session: u64) -> Self {
        named(opcode, nsid, session)
    }

    /// Something about a stage.
    #[must_use]
    pub fn page_stage(opcode: PageOpcode, nsid: u32, stage: StagePages) -> Self {
        let StagePages { stage, bytes, offset } = stage;
        Self { cdw10: bytes, cdw12: offset, cdw13: stage, ..named(opcode, nsid, 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_flush_lies_where_the_table_puts_it() {
        let flush = FlushPages {
            session: 0x0807_0605_0403_0201,
            wsn: 0x1817_1615_1413_1211,
            bytes: 8 << 20,
            rows: 2048,
            force_unit_access: true,
            stage: Some(7),
        };
        let bytes = Sqe::flush_pages(9, flush).encode();
        assert_eq!((bytes[0], bytes[4], &bytes[8..16]), (0xA1, 9, &[1, 2, 3, 4, 5, 6, 7, 8][..]));
        assert_eq!(&bytes[40..48], &[0, 0, 0x80, 0, 0, 8, 0, 0xC0]);
        assert_eq!(&bytes[52..64], &[7, 0, 0, 0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
        assert_eq!(FlushPages::of(&Sqe::decode(&bytes)), flush);
        let plain = FlushPages { force_unit_access: false, stage: None, ..flush };
        assert_eq!(FlushPages::of(&Sqe::flush_pages(9, plain)), plain);
    }

    #[test]
    fn the_other_commands_survive_their_encoding() {
        let read = ReadPage { page: u64::MAX - 1, offset: 3, bytes: 4096 };
        assert_eq!(ReadPage::of(&Sqe::read_page(2, read)), read);
        let stage = StagePages { stage: 5, bytes: 6, offset: 7 };
        assert_eq!(StagePages::of(&Sqe::page_stage(PageOpcode::STAGE_APPEND, 2, stage)), stage);
        let open = Sqe::page_session(PageOpcode::OPEN_SESSION, 2, 1 << 40);
        assert_eq!((open.opcode, PageSession::of(&open).session), (0xA4, 1 << 40));
    }
}
