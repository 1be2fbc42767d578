//! Requests: what each changes at once for those behind it, and what it waits for.
//!
//! A request takes effect when it is taken; reads behind a flush see its pages. What is durable when answered is answered when
//! all changes up to it are. Deliberately not here: reads (`read`), buffer units (`write`).

use super::change::{Change, FlushBuffer, Progress, What};
use super::read::REQUESTS_MAX;
use super::store::{Awaiting, Eleos, Newest, Pages, Session};
use crate::ox::state::Ending;
use ocssd_base::usize_of;
use ocssd_lightnvm::interface::log_structured::{
    LogAnswer, LogOp, LogRefusal, LogReply, LogRequest, PageEntry, PageId, SessionId, Wsn,
};
use ocssd_lightnvm::interface::{Content, Durability, List, StageOp, StageRefusal};
use ocssd_lightnvm::{Admission, Buffers, Status, Tag};

/// A flush as a request has it.
#[derive(Clone, Copy)]
struct Flush {
    session: SessionId,
    wsn: Wsn,
    content: Content,
    pages: List<PageEntry>,
    durability: Durability,
}

const fn of_stage(refusal: StageRefusal) -> LogRefusal {
    match refusal {
        StageRefusal::BadContent => LogRefusal::BadContent,
        other => LogRefusal::Stage(other),
    }
}

impl Pages {
    /// Answers at once.
    pub(super) fn refuse(&mut self, tag: Tag, refusal: LogRefusal) {
        self.replies.push_back(LogReply::refused(tag, refusal));
    }

    /// Answers with a status that is no refusal.
    pub(super) fn end(&mut self, tag: Tag, status: Status) {
        self.replies.push_back(LogReply { tag, status, refusal: None, answer: LogAnswer::Done });
    }

    /// The bytes of a page as requests see it.
    pub(super) fn page_bytes(&self, page: PageId) -> Option<u32> {
        match self.newest.get(&page) {
            Some(newest) => (newest.bytes > 0).then_some(newest.bytes),
            None => self.map.bytes(page),
        }
    }

    fn is_full(&self, op: &LogOp) -> bool {
        let answers = self.awaiting.len() + self.reads.len() + self.replies.len();
        let limit = 2 * u64::from(self.limits.flush_bytes_max);
        let holds_much = self.changes.bytes() > limit && !self.awaiting.is_empty();
        answers >= usize_of(REQUESTS_MAX) || holds_much && matches!(op, LogOp::Flush { .. })
    }

    /// Answers once everything taken so far is durable.
    fn answer_later(&mut self, reply: LogReply, session: Option<(SessionId, u64)>) {
        let last = self.awaiting.back().map_or(self.changes.durable(), |awaiting| awaiting.until);
        assert!(last <= self.changes.last(), "answers would overtake each other");
        self.awaiting.push_back(Awaiting { until: self.changes.last(), reply, session });
    }

    /// The rows of a page table that can be used.
    fn rows(&self, flush: &Flush, buffers: &Buffers) -> Result<Vec<PageEntry>, LogRefusal> {
        if flush.content.bytes() > self.limits.flush_bytes_max {
            return Err(LogRefusal::BufferTooLong);
        }
        if flush.pages.count > self.limits.flush_pages_max {
            return Err(LogRefusal::TooManyPages);
        }
        if !flush.pages.lies_within(buffers) {
            return Err(LogRefusal::BadPageTable);
        }
        let rows: Option<Vec<PageEntry>> = flush.pages.entries(buffers).collect();
        let rows = rows.ok_or(LogRefusal::BadPageTable)?;
        self.limits.check_pages(flush.content.bytes(), &rows)?;
        Ok(rows)
    }

    /// Pages and bytes there would be with these rows.
    fn with_rows(&self, rows: &[PageEntry]) -> (u64, u64) {
        let (mut pages, mut bytes) = (self.pages, self.bytes);
        for row in rows {
            let before = self.page_bytes(row.page);
            pages = pages + u64::from(row.bytes > 0) - u64::from(before.is_some());
            bytes = bytes + u64::from(row.bytes) - u64::from(before.unwrap_or(0));
        }
        (pages, bytes)
    }
}

impl Eleos {
    /// Takes a request, or says that there is no room for it.
    pub(super) fn take(&mut self, request: &LogRequest, buffers: &mut Buffers) -> Admission {
        let tag = request.tag;
        if self.store.is_full(&request.op) {
            return Admission::Full;
        }
        if self.ending != Ending::No {
            self.store.end(tag, Status::NAMESPACE_NOT_READY);
            return Admission::Taken;
        }
        let changes = matches!(
            request.op,
            LogOp::OpenSession { .. } | LogOp::CloseSession { .. } | LogOp::Flush { .. }
        );
        if let Some(status) = self.refuses_changes().filter(|_| changes) {
            self.store.end(tag, status);
            return Admission::Taken;
        }
        self.work_due = true;
        match request.op {
            LogOp::OpenSession { session } => self.open_session(tag, session),
            LogOp::CloseSession { session } => self.close_session(tag, session),
            LogOp::Flush { session, wsn, content, pages, durability } => {
                let flush = Flush { session, wsn, content, pages, durability };
                if let Err(refusal) = self.flush(tag, &flush, buffers) {
                    self.store.refuse(tag, refusal);
                }
            }
            LogOp::Read { page, offset, into } => self.take_read(tag, (page, offset), into, buffers),
            LogOp::Stat => {
                let (pages, live_bytes) = (self.store.pages, self.store.bytes);
                self.store.replies.push_back(LogReply::success(tag, LogAnswer::Stat { pages, live_bytes }));
            }
            LogOp::Stage(op) => {
                let done = self.store.staging.apply(&op, buffers);
                if let (StageOp::Append { content, .. }, Ok(())) = (op, done) {
                    self.store.stats.copied += u64::from(content.bytes());
                }
                self.store.replies.push_back(match done {
                    Ok(()) => LogReply::success(tag, LogAnswer::Done),
                    Err(refusal) => LogReply::refused(tag, LogRefusal::Stage(refusal)),
                });
            }
            LogOp::Sync => self.store.answer_later(LogReply::success(tag, LogAnswer::Done), None),
            LogOp::Shutdown => {
                assert!(self.store.shutdown.is_none(), "a second shutdown was not refused");
                (self.store.shutdown, self.ending) = (Some(tag), Ending::Asked);
            }
        }
        Admission::Taken
    }

    fn change(&mut self, session: SessionId, life: u64, what: What) -> Change {
        assert!(life <= self.store.lives, "session {} has a life that did not begin", session.0);
        Change {
            session,
            life,
            what,
            rows: Vec::new(),
            content: FlushBuffer::Own(Vec::new()),
            progress: Progress::Waiting,
            sectors: 0,
            next: (0, 0),
            parts: Vec::new(),
            flying: 0,
        }
    }

    fn open_session(&mut self, tag: Tag, name: SessionId) {
        let sessions = self.store.sessions.len();
        if let Some(&Session { applied, durable, life }) = self.store.sessions.get(&name) {
            let reply = LogReply::success(tag, LogAnswer::Progress { applied, durable });
            return self.store.answer_later(reply, Some((name, life)));
        }
        if sessions >= usize_of(self.store.limits.sessions_max) {
            return self.store.refuse(tag, LogRefusal::TooManySessions);
        }
        self.store.lives += 1;
        let life = self.store.lives;
        let session = Session { applied: Wsn(0), durable: Wsn(0), life };
        self.store.sessions.insert(name, session);
        let change = self.change(name, life, What::Opened);
        self.store.changes.push(change);
        let answer = LogAnswer::Progress { applied: Wsn(0), durable: Wsn(0) };
        self.store.answer_later(LogReply::success(tag, answer), None);
    }

    fn close_session(&mut self, tag: Tag, name: SessionId) {
        let Some(Session { life, .. }) = self.store.sessions.remove(&name) else {
            return self.store.refuse(tag, LogRefusal::UnknownSession);
        };
        let change = self.change(name, life, What::Closed);
        self.store.changes.push(change);
        self.store.answer_later(LogReply::success(tag, LogAnswer::Done), None);
    }

    fn flush(&mut self, tag: Tag, flush: &Flush, buffers: &Buffers) -> Result<(), LogRefusal> {
        let &Flush { session: name, wsn, .. } = flush;
        let session = *self.store.sessions.get(&name).ok_or(LogRefusal::UnknownSession)?;
        if wsn == Wsn(0) {
            return Err(LogRefusal::SequenceZero);
        }
        if wsn <= session.applied {
            self.store.stats.resends += 1;
            self.store.staging.end(&flush.content);
            self.answer_flush(tag, flush, session);
            return Ok(());
        }
        if wsn > session.applied.next() {
            return Err(LogRefusal::FutureSequence { expected: session.applied.next() });
        }
        let rows = self.store.rows(flush, buffers)?;
        self.store.staging.look(&flush.content, buffers).map_err(of_stage)?;
        let (pages, bytes) = self.store.with_rows(&rows);
        if pages > self.store.limits.pages_max || bytes > self.store.limits.capacity_bytes {
            return Err(LogRefusal::NoRoom);
        }
        let content = self.buffer_of(flush, buffers);
        self.apply_at_once(flush, session, rows, content);
        (self.store.pages, self.store.bytes) = (pages, bytes);
        assert!(pages > 0 || bytes == 0, "{bytes} bytes in no page");
        let session = Session { applied: wsn, ..session };
        self.store.sessions.insert(name, session);
        self.answer_flush(tag, flush, session);
        Ok(())
    }

    /// The buffer of a flush: where the host has it if that waits until the flush is durable, else in memory of the target's own.
    fn buffer_of(&mut self, flush: &Flush, buffers: &Buffers) -> FlushBuffer {
        match flush.content {
            Content::Piece(piece)
                if flush.durability == Durability::AtReply && buffers.is_whole(piece.buffer) =>
            {
                FlushBuffer::Host(piece)
            }
            content => {
                let is_staged = matches!(content, Content::Staged { .. });
                self.store.stats.copied += if is_staged { 0 } else { u64::from(content.bytes()) };
                FlushBuffer::Own(self.store.staging.take(&content, buffers))
            }
        }
    }

    /// Requests behind a flush see its pages.
    fn apply_at_once(&mut self, flush: &Flush, session: Session, rows: Vec<PageEntry>, content: FlushBuffer) {
        let change = self.change(flush.session, session.life, What::Flushed(flush.wsn));
        let number = self.store.changes.push(Change { rows: rows.clone(), content, ..change });
        self.store.stats.flushes += 1;
        for row in rows {
            let newest = Newest { number, at: row.offset, bytes: row.bytes };
            self.store.newest.insert(row.page, newest);
            self.store.stats.bytes_written += u64::from(row.bytes);
            let counted = if row.bytes > 0 {
                &mut self.store.stats.pages_written
            } else {
                &mut self.store.stats.pages_deleted
            };
            *counted += 1;
        }
    }

    /// A flush is answered at once if it may be lost, and memory has room for more; else when it is durable.
    fn answer_flush(&mut self, tag: Tag, flush: &Flush, session: Session) {
        let Session { applied, durable, life } = session;
        assert!(durable <= applied && flush.wsn <= applied, "{session:?} is not as far as {:?}", flush.wsn);
        let is_durable = flush.durability == Durability::AtReply;
        let has_room = self.store.changes.bytes() <= u64::from(self.store.limits.flush_bytes_max);
        let is_over = if is_durable { flush.wsn <= durable } else { has_room };
        let told = if is_durable { durable.max(flush.wsn) } else { durable };
        let reply = LogReply::success(tag, LogAnswer::Progress { applied, durable: told });
        if is_over {
            self.store.replies.push_back(reply);
        } else {
            self.store.answer_later(reply, Some((flush.session, life)));
        }
    }

    /// Answers those who waited for what is durable now. True if there was one.
    pub(super) fn answer_awaiting(&mut self) -> bool {
        let mut any = false;
        let until = self.store.changes.durable().max(self.store.answerable);
        while let Some(awaiting) = self.store.awaiting.pop_front_if(|awaiting| awaiting.until <= until) {
            let mut reply = awaiting.reply;
            if let (LogAnswer::Progress { applied, durable }, Some((name, life))) =
                (reply.answer, awaiting.session)
                && let Some(session) = self.store.sessions.get(&name).filter(|session| session.life == life)
            {
                let durable = durable.max(session.durable.min(applied));
                reply.answer = LogAnswer::Progress { applied, durable };
            }
            self.store.replies.push_back(reply);
            any = true;
        }
        any
    }

    /// No more changes are taken: what is not durable is forgotten, and who waits for it hears why.
    pub(super) fn forget_changes(&mut self, status: Status) {
        let store = &mut self.store;
        while let Some(awaiting) = store.awaiting.pop_front() {
            store.end(awaiting.reply.tag, status);
        }
        store.changes.clear();
        store.answerable = store.changes.durable();
        store.newest.clear();
        (store.pages, store.bytes) = (store.map.pages(), store.map.live_bytes());
        let durable = &store.durable_sessions;
        store.sessions.retain(|name, _| durable.contains_key(name));
        for (&name, &wsn) in durable {
            let session = Session { applied: wsn, durable: wsn, life: 0 };
            store.sessions.entry(name).or_insert(session).applied = wsn;
        }
    }
}
