//! The log-structured interface: a page store that takes whole I/O buffers (OX-ELEOS).
//!
//! A host such as LLAMA collects pages of any length in a buffer, typically of 8 MiB, and flushes it with a table that says
//! which page lies where. The target places, maps and collects; the host keeps neither log nor map of media.
//!
//! **Sessions.** A host names a session and numbers its flushes from 1: the write sequence number (WSN). A flush must
//! have the number after the last one the target applied. A number that was applied before is a re-send: it succeeds,
//! its content is ignored (a stage it names is over), and so a host that lost an answer sends again. Opening a session that
//! exists resumes it, and tells how far it came.
//!
//! **Atomicity.** A flush is there as a whole or not at all: pages, deletions and sequence number.
//!
//! **Order.** Flushes of a session are applied in the order of their numbers, and after a power cut those that are
//! there are the first so many. Flushes of different sessions apply in the order in which the target took them; of
//! those the power cut spares, the later one decides what a page holds.
//!
//! **Durability.** Of a flush: as it asks ([`Durability`]). Opening and closing a session: when answered. Replies to
//! flushes carry the highest durable number, up to which a host may forget its buffers.
//!
//! **Errors.** A refused flush changes nothing and uses up no number.
//!
//! Deliberately not here: when a host flushes, and what its pages mean.

use super::list::{Entry, List, u32_at, u64_at};
use super::{Content, Durability, StageLimits, StageOp, StageRefusal};
use crate::command::Tag;
use crate::status::Status;
use crate::target::Target;
use std::fmt;

/// A page's name (PID).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u64);

/// A session's name, as the host chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// A write sequence number of a session. The first flush has 1; 0 is before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wsn(pub u64);

impl Wsn {
    /// The number after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// One row of a flush's page table. Rows are in the order of their places in the buffer, and name each page once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEntry {
    /// The page.
    pub page: PageId,
    /// Its first byte in the buffer; 0 of a deletion.
    pub offset: u32,
    /// Its bytes; 0 deletes the page, which need not exist.
    pub bytes: u32,
}

impl Entry for PageEntry {
    const BYTES: usize = 16;

    fn encode(&self, bytes: &mut [u8]) {
        bytes[..8].copy_from_slice(&self.page.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.offset.to_le_bytes());
        bytes[12..].copy_from_slice(&self.bytes.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (offset, length) = (u32_at(bytes, 8), u32_at(bytes, 12));
        Some(Self { page: PageId(u64_at(bytes, 0)), offset, bytes: length })
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOp {
    /// Begins a session, or resumes one that exists.
    OpenSession {
        /// Its name.
        session: SessionId,
    },
    /// Ends a session and forgets how far it came. Its pages stay.
    CloseSession {
        /// Its name.
        session: SessionId,
    },
    /// Stores the pages of a buffer, and deletes others, all at once.
    Flush {
        /// The session.
        session: SessionId,
        /// The flush's number in it.
        wsn: Wsn,
        /// The buffer.
        content: Content,
        /// Which pages it has. Bytes that belong to no page are not stored.
        pages: List<PageEntry>,
        /// When it survives a power cut.
        durability: Durability,
    },
    /// Reads a page: as many of its bytes from `offset` on as there are and as `into` has room for. With no room it asks for
    /// the page's length.
    Read {
        /// The page.
        page: PageId,
        /// First byte of the page.
        offset: u32,
        /// Where to.
        into: Content,
    },
    /// How much is stored.
    Stat,
    /// A stage for the content of a flush.
    Stage(StageOp),
    /// Replies when everything answered before is durable.
    Sync,
    /// Replies when everything is durable and the target can be left; nothing may be asked of it afterwards.
    Shutdown,
}

/// A request to a log-structured target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRequest {
    /// The host's name for it.
    pub tag: Tag,
    /// What to do.
    pub op: LogOp,
}

/// What a successful request brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogAnswer {
    /// Nothing but that it was done; also of a refused request.
    Done,
    /// How far a session is: of an opened one, and of a flush.
    Progress {
        /// The last flush that is applied.
        applied: Wsn,
        /// The last flush that survives a power cut.
        durable: Wsn,
    },
    /// A page.
    Page {
        /// Bytes of the whole page.
        bytes: u32,
    },
    /// What is stored.
    Stat {
        /// Pages.
        pages: u64,
        /// Bytes of all pages.
        live_bytes: u64,
    },
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRefusal {
    /// The session was never opened, or was closed.
    UnknownSession,
    /// No more sessions.
    TooManySessions,
    /// A flush whose predecessor the target does not have.
    FutureSequence {
        /// The number that comes next.
        expected: Wsn,
    },
    /// Flushes count from 1.
    SequenceZero,
    /// The buffer is longer than the target takes.
    BufferTooLong,
    /// The page table has more rows than the target takes.
    TooManyPages,
    /// The page table's buffer does not hold it.
    BadPageTable,
    /// A page begins before the page of the row above ends.
    PageOverlaps {
        /// The row, from 0.
        row: u32,
    },
    /// A page ends behind the buffer's end.
    PageBeyondBuffer {
        /// The row, from 0.
        row: u32,
    },
    /// A page is longer than the target takes.
    PageTooLong {
        /// The row, from 0.
        row: u32,
    },
    /// A page begins at a byte the target cannot begin at, or a deletion has an offset.
    PageMisaligned {
        /// The row, from 0.
        row: u32,
    },
    /// A page has two rows.
    PageTwice {
        /// The second row, from 0.
        row: u32,
    },
    /// The page was never written, or was deleted.
    NoSuchPage,
    /// The pages would be more than fits.
    NoRoom,
    /// The buffer, or where to read to, is no such place.
    BadContent,
    /// Something about a stage.
    Stage(StageRefusal),
}

impl LogRefusal {
    /// The status of the reply.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::UnknownSession | Self::FutureSequence { .. } => Status::COMMAND_SEQUENCE_ERROR,
            Self::NoSuchPage => Status::UNWRITTEN,
            Self::NoRoom => Status::CAPACITY_EXCEEDED,
            Self::Stage(refusal) => refusal.status(),
            Self::TooManySessions
            | Self::SequenceZero
            | Self::BufferTooLong
            | Self::TooManyPages
            | Self::BadPageTable
            | Self::PageOverlaps { .. }
            | Self::PageBeyondBuffer { .. }
            | Self::PageTooLong { .. }
            | Self::PageMisaligned { .. }
            | Self::PageTwice { .. }
            | Self::BadContent => Status::INVALID_FIELD,
        }
    }
}

impl fmt::Display for LogRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSession => f.write_str("the session is not open: open it first"),
            Self::TooManySessions => f.write_str("the target keeps no more sessions: close one"),
            Self::FutureSequence { expected } => {
                write!(f, "the next flush of the session has write sequence number {}", expected.0)
            }
            Self::SequenceZero => f.write_str("write sequence numbers count from 1"),
            Self::BufferTooLong => f.write_str("the buffer is longer than a flush may be: flush it in two"),
            Self::TooManyPages => f.write_str("the page table has more rows than a flush may have"),
            Self::BadPageTable => {
                f.write_str("a page table lies in a whole buffer that has room for its rows")
            }
            Self::PageOverlaps { row } => {
                write!(f, "row {row} of the page table begins before the row above it ends")
            }
            Self::PageBeyondBuffer { row } => {
                write!(f, "the page of row {row} ends behind the end of the buffer")
            }
            Self::PageTooLong { row } => write!(f, "the page of row {row} is longer than a page may be"),
            Self::PageMisaligned { row } => {
                write!(
                    f,
                    "the page of row {row} begins at a multiple of the target's alignment; a deletion at 0"
                )
            }
            Self::PageTwice { row } => {
                write!(f, "the page of row {row} has a row above: name each page once")
            }
            Self::NoSuchPage => f.write_str("the page does not exist"),
            Self::NoRoom => f.write_str("the pages do not fit any more: delete some"),
            Self::BadContent => f.write_str("a buffer of the request does not hold what the request names"),
            Self::Stage(refusal) => refusal.fmt(f),
        }
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogReply {
    /// The request's tag.
    pub tag: Tag,
    /// Success, the refusal's status, or a failure of the media.
    pub status: Status,
    /// Why it was refused, if it was.
    pub refusal: Option<LogRefusal>,
    /// What came of it.
    pub answer: LogAnswer,
}

impl LogReply {
    /// The reply to a request that succeeded.
    #[must_use]
    pub const fn success(tag: Tag, answer: LogAnswer) -> Self {
        Self { tag, status: Status::SUCCESS, refusal: None, answer }
    }

    /// The reply to a request that was refused.
    #[must_use]
    pub const fn refused(tag: Tag, refusal: LogRefusal) -> Self {
        Self { tag, status: refusal.status(), refusal: Some(refusal), answer: LogAnswer::Done }
    }
}

/// What a log-structured target takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Bytes of a flush; the paper's buffers have 8 MiB.
    pub flush_bytes_max: u32,
    /// Rows of a page table.
    pub flush_pages_max: u32,
    /// Bytes of a page.
    pub page_bytes_max: u32,
    /// What the places of pages in a buffer are multiples of, in bytes: 1, or with buffers of stamps a sector.
    pub page_align_bytes: u32,
    /// Sessions that are open at once.
    pub sessions_max: u32,
    /// Bytes of pages that fit; more are refused.
    pub capacity_bytes: u64,
    /// Pages that fit; more are refused.
    pub pages_max: u64,
    /// Stages.
    pub stages: StageLimits,
}

impl LogLimits {
    /// The first thing wrong with a page table, for a buffer of `bytes` bytes. Every target refuses the same tables in the same
    /// words. Cost: a look at each row, and a sort of their names.
    ///
    /// # Errors
    /// Why the table is refused.
    pub fn check_pages(&self, bytes: u32, pages: &[PageEntry]) -> Result<(), LogRefusal> {
        let mut end = 0;
        for (row, entry) in (0..).zip(pages) {
            let last = u64::from(entry.offset) + u64::from(entry.bytes);
            let is_misplaced = entry.bytes == 0 && entry.offset != 0;
            if entry.bytes > self.page_bytes_max {
                return Err(LogRefusal::PageTooLong { row });
            } else if is_misplaced || !entry.offset.is_multiple_of(self.page_align_bytes) {
                return Err(LogRefusal::PageMisaligned { row });
            } else if last > u64::from(bytes) {
                return Err(LogRefusal::PageBeyondBuffer { row });
            } else if entry.bytes > 0 && u64::from(entry.offset) < end {
                return Err(LogRefusal::PageOverlaps { row });
            }
            end = end.max(last);
        }
        let mut names: Vec<(PageId, u32)> = pages.iter().map(|entry| entry.page).zip(0..).collect();
        names.sort_unstable();
        let twice = names.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1).min();
        twice.map_or(Ok(()), |row| Err(LogRefusal::PageTwice { row }))
    }
}

/// A target with the log-structured interface.
pub trait LogTarget: Target<Request = LogRequest, Reply = LogReply> {
    /// What it takes; never changes.
    fn limits(&self) -> LogLimits;
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LogLimits = LogLimits {
        flush_bytes_max: 1_000,
        flush_pages_max: 10,
        page_bytes_max: 100,
        page_align_bytes: 4,
        sessions_max: 2,
        capacity_bytes: 10_000,
        pages_max: 100,
        stages: StageLimits { stages_max: 1, bytes_max: 1_000 },
    };

    fn row(page: u64, offset: u32, bytes: u32) -> PageEntry {
        PageEntry { page: PageId(page), offset, bytes }
    }

    #[test]
    fn a_page_table_is_judged_row_by_row() {
        for (rows, verdict) in [
            (&[row(1, 0, 100), row(2, 100, 1), row(3, 104, 3), row(9, 0, 0)][..], Ok(())),
            (&[], Ok(())),
            (&[row(1, 0, 101)], Err(LogRefusal::PageTooLong { row: 0 })),
            (&[row(1, 0, 4), row(2, 6, 4)], Err(LogRefusal::PageMisaligned { row: 1 })),
            (&[row(1, 4, 0)], Err(LogRefusal::PageMisaligned { row: 0 })),
            (&[row(1, 180, 21)], Err(LogRefusal::PageBeyondBuffer { row: 0 })),
            (&[row(1, u32::MAX - 3, 100)], Err(LogRefusal::PageBeyondBuffer { row: 0 })),
            (&[row(1, 8, 4), row(2, 0, 9)], Err(LogRefusal::PageOverlaps { row: 1 })),
            (&[row(1, 0, 9), row(2, 8, 4)], Err(LogRefusal::PageOverlaps { row: 1 })),
            (
                &[row(5, 0, 4), row(2, 4, 4), row(5, 8, 4), row(2, 0, 0)],
                Err(LogRefusal::PageTwice { row: 2 }),
            ),
        ] {
            assert_eq!(LIMITS.check_pages(200, rows), verdict, "{rows:?}");
        }
    }

    #[test]
    fn rows_survive_their_encoding() {
        let (entry, mut bytes) = (row(0x0102_0304_0506_0708, 0x1122, 7), [0; PageEntry::BYTES]);
        entry.encode(&mut bytes);
        assert_eq!(bytes, [8, 7, 6, 5, 4, 3, 2, 1, 0x22, 0x11, 0, 0, 7, 0, 0, 0]);
        assert_eq!(PageEntry::decode(&bytes), Some(entry));
    }

    #[test]
    fn a_refusal_is_told_by_status_and_by_name() {
        let reply = LogReply::refused(Tag(3), LogRefusal::FutureSequence { expected: Wsn(7).next() });
        assert_eq!(reply.status, Status::COMMAND_SEQUENCE_ERROR);
        let sentence = reply.refusal.expect("it was refused").to_string();
        assert!(sentence.ends_with("write sequence number 8"), "{sentence}");
        assert_eq!(LogRefusal::Stage(StageRefusal::IsOpen).status(), Status::COMMAND_SEQUENCE_ERROR);
        assert!(LogReply::success(Tag(3), LogAnswer::Done).status.is_success());
    }
}
