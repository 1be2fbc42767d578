//! Commands of a namespace of pages: judged when they come, and what their jobs bring put into answers.
//!
//! A flush is one command: its data is the page table, and behind it the buffer, or the table alone if a stage holds the buffer.
//! The table is used where it lies. A flush whose connection dies is taken as a whole or not at all, like any other; the host
//! opens its session again to hear how far it is, and sends again what is missing. Deliberately not here: stages (`staged`),
//! and what is stored (the target).

use super::command::{Command, Transfer};
use super::commands::Commands;
use super::plan::CommandPlan;
use super::staged::StageStep;
use crate::as_request;
use crate::dispatcher::Dispatcher;
use crate::exports::{Export, ExportId};
use crate::job::{Job, Work};
use crate::pool::{PIECE_BYTES_MAX, PoolPiece};
use crate::shares::Want;
use ocssd_base::{SlabKey, usize_of};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::log_structured::{
    LogAnswer, LogLimits, LogOp, LogRefusal, LogReply, PageEntry, PageId, SessionId, Wsn,
};
use ocssd_lightnvm::interface::{Content, Durability, Entry, List, StageId, StageOp};
use ocssd_nvme::Sqe;
use ocssd_nvme::pages::{FlushPages, PageNamespace, PageOpcode, PageSession, ReadPage, StagePages};

/// Bytes a Stat brings: pages, and bytes of them all, each little-endian.
const STAT_BYTES: usize = 16;

/// Rows that a command has room for.
const ROWS_MAX: u32 = 16_384;
const _: () = assert!(PIECE_BYTES_MAX / PageEntry::BYTES == 16_384, "a page table fills a transfer");

/// Something with pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePlan {
    /// Which namespace.
    pub export: ExportId,
    /// What.
    pub kind: PageKind,
    /// Bytes of the flush's buffer, or of the stage's; the host's room.
    pub bytes: u32,
}

/// What is done with pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// Some are stored and deleted.
    Flush {
        /// The session.
        session: SessionId,
        /// The flush's number.
        wsn: Wsn,
        /// Rows of the page table.
        rows: u32,
        /// Answered when durable only.
        fua: bool,
        /// The host's name for the stage that holds the buffer.
        stage: Option<u32>,
    },
    /// One is read.
    Read {
        /// Which.
        page: PageId,
        /// From this byte on.
        offset: u32,
    },
    /// They are counted.
    Stat,
    /// A session begins or goes on.
    Open(SessionId),
    /// It ends.
    Close(SessionId),
    /// Something about a stage.
    Stage {
        /// The host's name for it.
        name: u32,
        /// What.
        step: StageStep,
    },
}

/// Judges an I/O command of a namespace of pages.
///
/// # Errors
/// The status that is the answer.
pub(super) fn judge(
    sqe: &Sqe,
    id: ExportId,
    export: &Export,
    transfer: Transfer,
) -> Result<CommandPlan, Status> {
    let (kind, bytes, moved) = kind_of(sqe)?;
    let changes = !matches!(kind, PageKind::Read { .. } | PageKind::Stat);
    if changes && export.read_only {
        return Err(Status::WRITE_TO_READ_ONLY);
    }
    let found = u64::try_from(transfer.bytes()).expect("a length");
    // A host may send and take whole pages.
    let fits = if moved == 0 { transfer == Transfer::None } else { found >= moved };
    // A read of no byte asks for a length.
    let asks_length = matches!(kind, PageKind::Read { .. }) && bytes == 0;
    if !fits && !asks_length {
        return Err(Status::INVALID_SGL_LENGTH);
    }
    Ok(CommandPlan::Pages(PagePlan { export: id, kind, bytes }))
}

/// What a command does, the bytes it names, and those that its data has at least.
fn kind_of(sqe: &Sqe) -> Result<(PageKind, u32, u64), Status> {
    let stage = StagePages::of(sqe);
    let of_stage = |step| PageKind::Stage { name: stage.stage, step };
    Ok(match PageOpcode(sqe.opcode) {
        PageOpcode::FLUSH_PAGES => {
            let FlushPages { session, wsn, bytes, rows, force_unit_access: fua, stage } = FlushPages::of(sqe);
            let table = u64::from(rows) * u64::try_from(PageEntry::BYTES).expect("16");
            let moved = table + if stage.is_some() { 0 } else { u64::from(bytes) };
            let (session, wsn) = (SessionId(session), Wsn(wsn));
            (PageKind::Flush { session, wsn, rows, fua, stage }, bytes, moved)
        }
        PageOpcode::READ_PAGE => {
            let ReadPage { page, offset, bytes } = ReadPage::of(sqe);
            (PageKind::Read { page: PageId(page), offset }, bytes, bytes.into())
        }
        PageOpcode::STAT => (PageKind::Stat, 0, u64::try_from(STAT_BYTES).expect("16")),
        PageOpcode::OPEN_SESSION => (PageKind::Open(SessionId(PageSession::of(sqe).session)), 0, 0),
        PageOpcode::CLOSE_SESSION => (PageKind::Close(SessionId(PageSession::of(sqe).session)), 0, 0),
        PageOpcode::STAGE_OPEN => (of_stage(StageStep::Open), stage.bytes, 0),
        PageOpcode::STAGE_APPEND => {
            (of_stage(StageStep::Append { offset: stage.offset }), stage.bytes, stage.bytes.into())
        }
        PageOpcode::STAGE_ABORT => (of_stage(StageStep::Abort), 0, 0),
        _ => return Err(Status::INVALID_OPCODE),
    })
}

/// Bytes that a command moves by its own fields; 0 of one that is not known.
pub(super) fn data_bytes(sqe: &Sqe) -> u64 {
    kind_of(sqe).map_or(0, |(_, _, moved)| moved)
}

impl PagePlan {
    /// The host's name for the stage that it is about, and whether it is begun.
    const fn stage(&self) -> Option<(u32, bool)> {
        match self.kind {
            PageKind::Stage { name, step } => Some((name, matches!(step, StageStep::Open))),
            PageKind::Flush { stage: Some(name), .. } => Some((name, false)),
            _ => None,
        }
    }

    /// What its job does; payload lies in `piece`, and what it is about in a stage of the target, if it is about one.
    fn work(&self, piece: Option<&PoolPiece>, stage: StageId, always_durable: bool) -> Work {
        let bytes = self.bytes;
        let content = |first: u32| match piece {
            Some(piece) if bytes > 0 => Content::Piece(piece.part(first, bytes)),
            _ => Content::Empty,
        };
        Work::Log(match self.kind {
            PageKind::Flush { session, wsn, rows, fua, stage: name } => {
                let piece = piece.expect("a flush takes a piece, if only for no row");
                let table = rows * u32::try_from(PageEntry::BYTES).expect("16");
                let content = if name.is_some() { Content::Staged { stage, bytes } } else { content(table) };
                let durability: Durability = as_request::durability(always_durable || fua);
                LogOp::Flush { session, wsn, content, pages: List::new(piece.buffer, rows), durability }
            }
            PageKind::Read { page, offset } => LogOp::Read { page, offset, into: content(0) },
            PageKind::Stat => LogOp::Stat,
            PageKind::Open(session) => LogOp::OpenSession { session },
            PageKind::Close(session) => LogOp::CloseSession { session },
            PageKind::Stage { step, .. } => LogOp::Stage(match step {
                StageStep::Open => StageOp::Open { stage, bytes },
                StageStep::Append { offset } => StageOp::Append { stage, offset, content: content(0) },
                StageStep::Abort => StageOp::Abort { stage },
                StageStep::Store { .. } => unreachable!("a stage of pages becomes no value"),
            }),
        })
    }
}

impl<P> Commands<P> {
    /// Gives the job of a command on pages; false if there is no room.
    pub(super) fn give_pages(&mut self, key: SlabKey, plan: PagePlan, dispatcher: &mut Dispatcher) -> bool {
        // A stage that another left takes a job more.
        if dispatcher.room(self.client()) < 2 {
            return false;
        }
        if !self.has_table(key, &plan, dispatcher) {
            return false;
        }
        let stage = match plan.stage() {
            Some((name, is_begun)) => match self.stage(key, plan.export, name, is_begun, dispatcher) {
                Ok(stage) => stage,
                Err(status) => return self.fail(key, status, dispatcher),
            },
            None => StageId(0),
        };
        let always_durable = self.always_durable;
        self.give_one(key, dispatcher, |piece| {
            let work = plan.work(piece.as_ref(), stage, always_durable);
            Job { work, ..Job::flush(plan.export, piece) }
        })
    }

    /// A flush without data names an empty table all the same, which lies in a piece; false if there is none.
    fn has_table(&mut self, key: SlabKey, plan: &PagePlan, dispatcher: &mut Dispatcher) -> bool {
        let client = self.client();
        let command = self.open.get_mut(key);
        if command.piece.is_none() && matches!(plan.kind, PageKind::Flush { .. }) {
            command.piece = dispatcher.pool.take(client, PageEntry::BYTES, Want::Share);
            return command.piece.is_some();
        }
        true
    }
}

/// Puts what a job on pages brought into its command.
pub(super) fn on_done<P>(command: &mut Command<P>, reply: &LogReply, dispatcher: &mut Dispatcher) {
    let CommandPlan::Pages(plan) = command.plan else { return };
    if let Some(refusal) = reply.refusal.filter(|_| !matches!(plan.kind, PageKind::Stage { .. })) {
        command.result = (detail(refusal), reason(refusal));
    }
    let filled = match (plan.kind, reply.answer) {
        (PageKind::Open(_), LogAnswer::Progress { applied, .. }) => {
            command.result = halves(applied.0);
            return;
        }
        (PageKind::Flush { .. }, LogAnswer::Progress { durable, .. }) => {
            command.result = halves(durable.0);
            return;
        }
        (PageKind::Read { offset, .. }, LogAnswer::Page { bytes }) => {
            command.result = (bytes, 0);
            bytes.saturating_sub(offset).min(plan.bytes)
        }
        (PageKind::Stat, LogAnswer::Stat { pages, live_bytes }) => {
            let piece = command.piece.as_ref().expect("a stat has room");
            let place = dispatcher.buffers.bytes_mut(piece.buffer, 0, STAT_BYTES);
            place[..8].copy_from_slice(&pages.to_le_bytes());
            place[8..].copy_from_slice(&live_bytes.to_le_bytes());
            u32::try_from(STAT_BYTES).expect("16")
        }
        _ => return,
    };
    if let Some(piece) = &command.piece {
        // What another left in the piece is not sent.
        let place = dispatcher.buffers.bytes_mut(piece.buffer, 0, command.transfer.bytes());
        place[usize_of(filled)..].fill(0);
    }
}

/// DW0 and DW1.
fn halves(number: u64) -> (u32, u32) {
    let low = u32::try_from(number & u64::from(u32::MAX)).expect("32 bits");
    (low, u32::try_from(number >> 32).expect("32 bits"))
}

/// DW1 of a refused command: why, as docs/eleos.md lists it.
const fn reason(refusal: LogRefusal) -> u32 {
    match refusal {
        LogRefusal::UnknownSession => 1,
        LogRefusal::TooManySessions => 2,
        LogRefusal::FutureSequence { .. } => 3,
        LogRefusal::SequenceZero => 4,
        LogRefusal::BufferTooLong => 5,
        LogRefusal::TooManyPages => 6,
        LogRefusal::BadPageTable => 7,
        LogRefusal::PageOverlaps { .. } => 8,
        LogRefusal::PageBeyondBuffer { .. } => 9,
        LogRefusal::PageTooLong { .. } => 10,
        LogRefusal::PageMisaligned { .. } => 11,
        LogRefusal::PageTwice { .. } => 12,
        LogRefusal::NoSuchPage => 13,
        LogRefusal::NoRoom => 14,
        LogRefusal::BadContent => 15,
        LogRefusal::Stage(_) => 16,
    }
}

/// DW0 of a refused command: the row, or the low half of the number that comes next; else 0.
fn detail(refusal: LogRefusal) -> u32 {
    match refusal {
        LogRefusal::FutureSequence { expected } => halves(expected.0).0,
        LogRefusal::PageOverlaps { row }
        | LogRefusal::PageBeyondBuffer { row }
        | LogRefusal::PageTooLong { row }
        | LogRefusal::PageMisaligned { row }
        | LogRefusal::PageTwice { row } => row,
        _ => 0,
    }
}

/// What identify says of a namespace. A page table travels in one command. What is in use is asked by Stat: here it says
/// that all may be.
pub(super) fn namespace(export: &Export, limits: &LogLimits) -> PageNamespace {
    PageNamespace {
        nsze: limits.capacity_bytes,
        nuse: limits.capacity_bytes,
        nsattr: export.read_only.into(),
        nguid: export.uuid.0,
        eui64: if export.uuid.is_nil() { [0; 8] } else { export.uuid.eui64() },
        pages_max: limits.pages_max,
        flush_bytes_max: limits.flush_bytes_max,
        flush_pages_max: limits.flush_pages_max.min(ROWS_MAX),
        page_bytes_max: limits.page_bytes_max,
        page_align_bytes: limits.page_align_bytes,
        sessions_max: limits.sessions_max,
        stages_max: limits.stages.stages_max,
        stage_bytes_max: limits.stages.bytes_max,
    }
}
