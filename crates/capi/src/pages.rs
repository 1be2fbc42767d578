//! Requests to a target of pages, as C has them and as the target does.
//!
//! Deliberately not here: the exported functions.

use crate::ask::{Ask, ended, refused};
use crate::boundary::Memory;
use crate::content::{Given, StageAsk, length, room_for};
use crate::failure::Failure;
use crate::payload::Loan;
use crate::reply::{End, Reply};
use crate::request::{OCSSD_FUA, OCSSD_STAGED, durability};
use crate::status::errno_of;
use ocssd_base::usize_of;
use ocssd_lightnvm::interface::log_structured::{
    LogAnswer, LogOp, LogRefusal, LogReply, LogRequest, PageEntry, PageId, SessionId, Wsn,
};
use ocssd_lightnvm::interface::{Durability, Entry, List};
use ocssd_lightnvm::{BufId, Buffers, Tag};
use std::ffi::{c_int, c_void};

/// Begins a session, or resumes one that exists; the reply tells how far it came.
pub const OCSSD_PAGES_OPEN_SESSION: u32 = 0;
/// Ends a session. Its pages stay.
pub const OCSSD_PAGES_CLOSE_SESSION: u32 = 1;
/// Stores the pages of a buffer and deletes others, all at once.
pub const OCSSD_PAGES_FLUSH: u32 = 2;
/// Reads a page.
pub const OCSSD_PAGES_READ: u32 = 3;
/// Asks how much is stored.
pub const OCSSD_PAGES_STAT: u32 = 4;

/// A row of a page table: rows are in the order of their places in the buffer, and name each page once.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The page's name.
    pub page: u64,
    /// Its first byte in the buffer; 0 of a deletion.
    pub offset: u32,
    /// Its bytes; 0 deletes the page, which need not exist.
    pub bytes: u32,
}

/// A request to a target of pages. What an operation does not name is 0 or NULL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PagesRequest {
    /// `OCSSD_PAGES_OPEN_SESSION` and so on.
    pub op: u32,
    /// Of a flush: `OCSSD_FUA` if it ends only when it is durable, `OCSSD_STAGED` if the buffer is what a stage holds.
    pub flags: u32,
    /// The session, of all but reads and stat: any number.
    pub session: u64,
    /// Of a flush its number in the session, from 1 on.
    pub number: u64,
    /// Of a read the page.
    pub page: u64,
    /// Of a read the first byte of the page.
    pub offset: u64,
    /// Of a flush the buffer, which may change when the call that submits returns; NULL if it is staged. Of a read where to put
    /// the page: it must stay until the request has ended.
    pub data: *mut c_void,
    /// Bytes of the buffer, staged or not; of a read how many bytes there is room for, 0 to ask for the page's length.
    pub bytes: u64,
    /// Of a flush the page table, which may change when the call that submits returns.
    pub pages: *const Page,
    /// Rows of it.
    pub page_count: u32,
    /// The stage of `OCSSD_STAGED`.
    pub stage: u32,
}

/// What is asked of a target of pages.
#[derive(Clone, Copy)]
pub enum PagesAsk {
    /// A session begins or goes on.
    OpenSession(SessionId),
    /// It ends.
    CloseSession(SessionId),
    /// A flush.
    Flush {
        /// Of which session.
        session: SessionId,
        /// Its number.
        wsn: Wsn,
        /// The buffer.
        buffer: Given,
        /// The page table, as C has it.
        table: Memory,
        /// Whether it is durable when it is answered.
        durability: Durability,
    },
    /// A read.
    Read {
        /// Of which page.
        page: PageId,
        /// From which byte on.
        offset: u32,
        /// Where to.
        memory: Memory,
    },
    /// How much is stored.
    Stat,
    /// Something about a stage.
    Stage(StageAsk),
}

impl PagesRequest {
    /// One that names nothing.
    pub const fn of(op: u32) -> Self {
        Self {
            op,
            flags: 0,
            session: 0,
            number: 0,
            page: 0,
            offset: 0,
            data: std::ptr::null_mut(),
            bytes: 0,
            pages: std::ptr::null(),
            page_count: 0,
            stage: 0,
        }
    }

    /// What it asks.
    ///
    /// # Errors
    /// Why it asks nothing.
    pub fn ask(&self) -> Result<Ask, Failure> {
        if self.flags & !(OCSSD_FUA | OCSSD_STAGED) != 0 || self.flags != 0 && self.op != OCSSD_PAGES_FLUSH {
            return Err(Failure::invalid(format!(
                "flags are {:#x}, but only flushes have some, OCSSD_FUA and OCSSD_STAGED",
                self.flags
            )));
        }
        let session = SessionId(self.session);
        let ask = match self.op {
            OCSSD_PAGES_OPEN_SESSION => PagesAsk::OpenSession(session),
            OCSSD_PAGES_CLOSE_SESSION => PagesAsk::CloseSession(session),
            OCSSD_PAGES_FLUSH => self.flush(session)?,
            OCSSD_PAGES_READ => PagesAsk::Read {
                page: PageId(self.page),
                offset: length(self.offset, "offset")?,
                memory: Memory::new(self.data, self.bytes, "data")?,
            },
            OCSSD_PAGES_STAT => PagesAsk::Stat,
            other => {
                return Err(Failure::invalid(format!(
                    "op is {other}, but the operations of pages are 0 to {OCSSD_PAGES_STAT}"
                )));
            }
        };
        Ok(Ask::Pages(ask))
    }

    fn flush(&self, session: SessionId) -> Result<PagesAsk, Failure> {
        let rows = usize_of(self.page_count) * size_of::<Page>();
        let rows = u64::try_from(rows).expect("fewer than 2^64 bytes");
        Ok(PagesAsk::Flush {
            session,
            wsn: Wsn(self.number),
            buffer: Given::of(self.flags, self.stage, self.data, self.bytes)?,
            table: Memory::new(self.pages.cast(), rows, "pages")?,
            durability: durability(self.flags),
        })
    }
}

impl PagesAsk {
    /// The request.
    ///
    /// # Errors
    /// There is no memory for it now, or it has more than a request can have.
    pub fn request(&self, tag: Tag, loan: &mut Loan<'_>) -> Result<LogRequest, Failure> {
        let op = match *self {
            Self::OpenSession(session) => LogOp::OpenSession { session },
            Self::CloseSession(session) => LogOp::CloseSession { session },
            Self::Flush { session, wsn, buffer, table, durability } => {
                let content = buffer.content(loan)?;
                LogOp::Flush { session, wsn, content, pages: rows(table, loan)?, durability }
            }
            Self::Read { page, offset, memory } => {
                LogOp::Read { page, offset, into: room_for(memory, loan)? }
            }
            Self::Stat => LogOp::Stat,
            Self::Stage(ask) => LogOp::Stage(ask.op(loan)?),
        };
        Ok(LogRequest { tag, op })
    }

    /// What the reply brings.
    pub fn end(&self, reply: &LogReply, buffer: Option<BufId>, buffers: &Buffers) -> End {
        let mut told = Reply::of(reply.status);
        match reply.answer {
            LogAnswer::Done => {}
            LogAnswer::Progress { applied, durable } => (told.applied, told.durable) = (applied.0, durable.0),
            LogAnswer::Page { bytes } => {
                told.bytes = u64::from(bytes);
                if let (Self::Read { offset, memory, .. }, 0) = (self, errno_of(reply.status)) {
                    memory.fill_as_far(buffers, buffer, bytes.saturating_sub(*offset));
                }
            }
            LogAnswer::Stat { pages, live_bytes } => (told.count, told.bytes) = (pages, live_bytes),
        }
        let Some(refusal) = reply.refusal else { return ended(told, || self.words()) };
        match refusal {
            LogRefusal::FutureSequence { expected } => told.applied = expected.0 - 1,
            LogRefusal::PageOverlaps { row }
            | LogRefusal::PageBeyondBuffer { row }
            | LogRefusal::PageTooLong { row }
            | LogRefusal::PageMisaligned { row }
            | LogRefusal::PageTwice { row } => told.entry = u64::from(row),
            _ => {}
        }
        refused(told, errno_of_refusal(refusal), &self.words(), &refusal)
    }

    fn words(&self) -> String {
        match self {
            Self::OpenSession(session) => format!("opening session {}", session.0),
            Self::CloseSession(session) => format!("closing session {}", session.0),
            Self::Flush { session, wsn, .. } => format!("flush {} of session {}", wsn.0, session.0),
            Self::Read { page, .. } => format!("a read of page {}", page.0),
            Self::Stat => "a question how much is stored".to_owned(),
            Self::Stage(ask) => ask.words(),
        }
    }
}

/// The caller's page table as a list.
fn rows(table: Memory, loan: &mut Loan<'_>) -> Result<List<PageEntry>, Failure> {
    let count = table.bytes() / size_of::<Page>();
    let buffer = loan.room(count * PageEntry::BYTES)?;
    let rows: Vec<PageEntry> = (0..count)
        .map(|row| {
            let Page { page, offset, bytes } = table.nth(row);
            PageEntry { page: PageId(page), offset, bytes }
        })
        .collect();
    Ok(List::write(loan.buffers, buffer, &rows))
}

const fn errno_of_refusal(refusal: LogRefusal) -> c_int {
    match refusal {
        LogRefusal::UnknownSession | LogRefusal::NoSuchPage => libc::ENOENT,
        LogRefusal::TooManySessions => libc::EMFILE,
        LogRefusal::BufferTooLong | LogRefusal::TooManyPages | LogRefusal::PageTooLong { .. } => libc::EFBIG,
        LogRefusal::NoRoom => libc::ENOSPC,
        _ => libc::EINVAL,
    }
}
