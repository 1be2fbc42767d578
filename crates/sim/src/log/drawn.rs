//! Requests of sessions and pages, drawn: flushes in order, some again, some too early.
//!
//! Deliberately not here: what they must be answered with (`model`).

use super::LogModel;
use crate::model::held::Held;
use crate::model::judge::Interface;
use crate::model::trial::Requests;
use ocssd_base::Prng;
use ocssd_lightnvm::interface::log_structured::{
    LogLimits, LogOp, LogReply, LogRequest, LogTarget, PageEntry, PageId, SessionId, Wsn,
};
use ocssd_lightnvm::interface::{Content, Durability, Entry, List, Piece};
use ocssd_lightnvm::{Buffers, Tag};

/// Longest flush (chosen: more than most write units of drawn drives).
const BYTES_MAX: u32 = 150_000;

/// The log-structured interface.
pub struct LogInterface;

impl Interface for LogInterface {
    type Model = LogModel;
    type Target = dyn LogTarget;
    type Drawn = DrawnLog;

    fn model(target: &dyn LogTarget) -> LogModel {
        LogModel::new(target.limits())
    }

    fn limits(target: &dyn LogTarget) -> String {
        format!("{:?}", target.limits())
    }

    fn drawn(model: &LogModel, prng: &mut Prng) -> DrawnLog {
        DrawnLog::new(*model.limits(), prng)
    }

    fn shutdown(tag: Tag) -> LogRequest {
        LogRequest { tag, op: LogOp::Shutdown }
    }

    fn name(request: &LogRequest) -> &'static str {
        match request.op {
            LogOp::OpenSession { .. } => "requests.sessions_opened",
            LogOp::CloseSession { .. } => "requests.sessions_closed",
            LogOp::Flush { .. } => "requests.flushes",
            LogOp::Read { .. } => "requests.reads",
            LogOp::Stat => "requests.stats",
            LogOp::Stage(_) => "requests.stages",
            LogOp::Sync => "requests.syncs",
            LogOp::Shutdown => "requests.shutdowns",
        }
    }
}

/// Draws.
#[derive(Clone, Debug)]
pub struct DrawnLog {
    limits: LogLimits,
    sessions: u64,
    pages: u64,
    /// Pages are shorter than this.
    usual: u32,
    durable_percent: u64,
    held: Held,
}

fn short(number: u64) -> u32 {
    u32::try_from(number).expect("a drawn number is short")
}

impl DrawnLog {
    /// In a manner that `prng` chooses.
    pub fn new(limits: LogLimits, prng: &mut Prng) -> Self {
        let three = |prng: &mut Prng| usize::try_from(prng.below(3)).expect("three");
        Self {
            limits,
            sessions: 1 + prng.below(u64::from(limits.sessions_max.min(3))),
            pages: [4, 30, 200][three(prng)],
            usual: [100, 4_096, 20_000][three(prng)].min(limits.page_bytes_max),
            durable_percent: [0, 20, 60][three(prng)],
            held: Held::default(),
        }
    }

    /// Rows of one flush, and the bytes they take: pages in order, gaps now and then, deletions without place.
    fn rows(&self, prng: &mut Prng) -> (Vec<PageEntry>, u32) {
        let align = self.limits.page_align_bytes;
        let (mut rows, mut end) = (Vec::<PageEntry>::new(), 0_u32);
        for _ in 0..1 + prng.below(u64::from(self.limits.flush_pages_max.min(12))) {
            let page = PageId(prng.below(self.pages));
            if rows.iter().any(|row| row.page == page) {
                continue;
            }
            if prng.below(8) == 0 {
                rows.push(PageEntry { page, offset: 0, bytes: 0 });
                continue;
            }
            let bytes = 1 + short(prng.below(u64::from(self.usual)));
            let offset = (end + short(prng.below(8) / 7 * 100)).next_multiple_of(align);
            if offset + bytes > self.limits.flush_bytes_max.min(BYTES_MAX) {
                break;
            }
            rows.push(PageEntry { page, offset, bytes });
            end = offset + bytes;
        }
        (rows, end)
    }

    fn flush(&mut self, tag: Tag, prng: &mut Prng, model: &LogModel, buffers: &mut Buffers) -> LogOp {
        let session = SessionId(prng.below(self.sessions));
        let applied = model.volatile().applied(session).0;
        let wsn = match prng.below(16) {
            0 => applied,
            1 => applied + 2,
            _ => applied + 1,
        };
        let (rows, bytes) = self.rows(prng);
        let payload =
            self.held.take_whole(tag, buffers, bytes, u8::try_from(prng.below(256)).expect("a byte"));
        let table = self.held.take_whole(tag, buffers, short((rows.len() * PageEntry::BYTES) as u64), 0);
        let is_durable = prng.below(100) < self.durable_percent;
        LogOp::Flush {
            session,
            wsn: Wsn(wsn),
            content: Content::Piece(Piece { buffer: payload, first_byte: 0, bytes }),
            pages: List::write(buffers, table, &rows),
            durability: if is_durable { Durability::AtReply } else { Durability::AtFlush },
        }
    }
}

impl Requests<LogModel> for DrawnLog {
    fn next(
        &mut self,
        tag: Tag,
        prng: &mut Prng,
        model: &LogModel,
        buffers: &mut Buffers,
    ) -> Option<LogRequest> {
        // Now and then one that is never opened otherwise.
        let more = prng.below(12) / 11;
        let session = SessionId(prng.below(self.sessions + more));
        let op = match prng.below(40) {
            0..6 => LogOp::OpenSession { session },
            6 if prng.below(4) == 0 => LogOp::CloseSession { session },
            6..16 => {
                let bytes = short(prng.below(u64::from(self.usual) + 100));
                let buffer = self.held.take_whole(tag, buffers, bytes, 0);
                let offset = short(prng.below(3) / 2 * prng.below(u64::from(self.usual)));
                let into = Content::Piece(Piece { buffer, first_byte: 0, bytes });
                LogOp::Read { page: PageId(prng.below(self.pages)), offset, into }
            }
            16..18 => LogOp::Sync,
            18 => LogOp::Stat,
            _ => self.flush(tag, prng, model, buffers),
        };
        Some(LogRequest { tag, op })
    }

    fn answered(&mut self, request: &LogRequest, _: &LogReply, buffers: &mut Buffers) {
        self.held.give_back(request.tag, buffers);
    }

    fn power_cut(&mut self, _: &LogModel, _: &mut Buffers) {
        self.held.forget();
    }
}
