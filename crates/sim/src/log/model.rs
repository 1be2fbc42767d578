//! The model: flushes are applied in the order of their numbers, and survive in it.

use super::image::{LogChange, LogImage};
use crate::contract::{Answerer, Broken};
use crate::model::{Expected, Model, Pending, Staging, equal};
use ocssd_lightnvm::interface::log_structured::{
    LogAnswer, LogLimits, LogOp, LogRefusal, LogReply, LogRequest, PageEntry, PageId, SessionId, Wsn,
};
use ocssd_lightnvm::interface::{Content, Durability, List, Piece, StageRefusal};
use ocssd_lightnvm::{Buffers, Status, Tag};
use std::collections::{BTreeMap, BTreeSet};

/// The model of a log-structured target.
#[derive(Clone, Debug)]
pub struct LogModel {
    limits: LogLimits,
    pub(super) durable: LogImage,
    volatile: LogImage,
    pub(super) pending: Pending<(SessionId, LogChange)>,
    staging: Staging,
    /// Of flushes that are outstanding: the session, and the number of changes taken before the reply can speak of more.
    flushes: BTreeMap<Tag, (SessionId, u64)>,
    /// Names that were ever used: what an observation asks for.
    known: (BTreeSet<SessionId>, BTreeSet<PageId>),
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

fn length(content: &[u8]) -> u32 {
    u32::try_from(content.len()).expect("a page is short")
}

fn of_stage(refusal: StageRefusal) -> LogRefusal {
    if refusal == StageRefusal::BadContent { LogRefusal::BadContent } else { LogRefusal::Stage(refusal) }
}

impl LogModel {
    /// A store without pages.
    #[must_use]
    pub fn new(limits: LogLimits) -> Self {
        Self {
            limits,
            durable: LogImage::default(),
            volatile: LogImage::default(),
            pending: Pending::default(),
            staging: Staging::new(limits.stages),
            flushes: BTreeMap::new(),
            known: (BTreeSet::new(), BTreeSet::new()),
        }
    }

    /// What the target takes.
    #[must_use]
    pub const fn limits(&self) -> &LogLimits {
        &self.limits
    }

    /// Everything as reads see it.
    #[must_use]
    pub const fn volatile(&self) -> &LogImage {
        &self.volatile
    }

    /// The last flush of a session that survives a power cut; 0 if it began anew since.
    fn durable_of(&self, session: SessionId) -> Wsn {
        let of_session = self.pending.iter().filter(|taken| taken.change.0 == session);
        of_session.fold(self.durable.applied(session), |durable, taken| match taken.change.1 {
            LogChange::Opened | LogChange::Closed => Wsn(0),
            LogChange::Flushed(wsn, _) if taken.is_durable => wsn,
            LogChange::Flushed(..) => durable,
        })
    }

    fn change(&mut self, tag: Tag, session: SessionId, change: LogChange, durability: Durability) {
        self.volatile.change(session, &change);
        self.pending.take(tag, (session, change), durability);
    }

    fn progress(&self, session: SessionId) -> LogAnswer {
        LogAnswer::Progress { applied: self.volatile.applied(session), durable: self.durable_of(session) }
    }

    fn open(&mut self, tag: Tag, session: SessionId) -> Result<LogAnswer, LogRefusal> {
        self.known.0.insert(session);
        if !self.volatile.sessions.contains_key(&session) {
            if self.volatile.sessions.len() >= index(self.limits.sessions_max) {
                return Err(LogRefusal::TooManySessions);
            }
            self.change(tag, session, LogChange::Opened, Durability::AtReply);
        }
        Ok(self.progress(session))
    }

    fn close(&mut self, tag: Tag, session: SessionId) -> Result<LogAnswer, LogRefusal> {
        if !self.volatile.sessions.contains_key(&session) {
            return Err(LogRefusal::UnknownSession);
        }
        self.change(tag, session, LogChange::Closed, Durability::AtReply);
        Ok(LogAnswer::Done)
    }

    /// The rows of a page table that can be used with a buffer of `bytes` bytes.
    fn rows(
        &self,
        pages: List<PageEntry>,
        bytes: u32,
        buffers: &Buffers,
    ) -> Result<Vec<PageEntry>, LogRefusal> {
        if bytes > self.limits.flush_bytes_max {
            return Err(LogRefusal::BufferTooLong);
        }
        if pages.count > self.limits.flush_pages_max {
            return Err(LogRefusal::TooManyPages);
        }
        let rows = pages.lies_within(buffers).then(|| pages.entries(buffers).collect());
        let rows: Vec<PageEntry> = rows.flatten().ok_or(LogRefusal::BadPageTable)?;
        self.limits.check_pages(bytes, &rows)?;
        Ok(rows)
    }

    fn flush(&mut self, tag: Tag, op: &LogOp, buffers: &Buffers) -> Result<LogAnswer, LogRefusal> {
        let LogOp::Flush { session, wsn, content, pages, durability } = *op else {
            unreachable!("only flushes come here")
        };
        let applied = *self.volatile.sessions.get(&session).ok_or(LogRefusal::UnknownSession)?;
        if wsn == Wsn(0) {
            return Err(LogRefusal::SequenceZero);
        }
        if wsn <= applied {
            self.staging.end(&content);
            self.flushes.insert(tag, (session, self.pending.next_number()));
            return Ok(self.progress_of_flush(session, wsn, durability));
        }
        if wsn > applied.next() {
            return Err(LogRefusal::FutureSequence { expected: applied.next() });
        }
        let rows = self.rows(pages, content.bytes(), buffers)?;
        let bytes = self.staging.content(&content, buffers).map_err(of_stage)?;
        let of_row = |row: &PageEntry| {
            let page = || bytes[index(row.offset)..][..index(row.bytes)].to_vec();
            (row.page, (row.bytes > 0).then(page))
        };
        let change = LogChange::Flushed(wsn, rows.iter().map(of_row).collect());
        let mut after = self.volatile.clone();
        after.change(session, &change);
        let pages = u64::try_from(after.pages.len()).expect("an index");
        if after.live_bytes() > self.limits.capacity_bytes || pages > self.limits.pages_max {
            return Err(LogRefusal::NoRoom);
        }
        self.staging.end(&content);
        self.known.1.extend(rows.iter().map(|row| row.page));
        self.change(tag, session, change, durability);
        self.flushes.insert(tag, (session, self.pending.next_number()));
        Ok(self.progress_of_flush(session, wsn, durability))
    }

    /// What a flush answers: one that is durable when answered is the last durable one at least.
    fn progress_of_flush(&self, session: SessionId, wsn: Wsn, durability: Durability) -> LogAnswer {
        let at_least = if durability == Durability::AtReply { wsn } else { Wsn(0) };
        let durable = self.durable_of(session).max(at_least);
        LogAnswer::Progress { applied: self.volatile.applied(session), durable }
    }

    fn read(
        &self,
        page: PageId,
        offset: u32,
        into: Content,
        buffers: &Buffers,
    ) -> Result<Vec<u8>, LogRefusal> {
        if matches!(into, Content::Staged { .. }) || !into.lies_within(buffers) {
            return Err(LogRefusal::BadContent);
        }
        let content = self.volatile.pages.get(&page).ok_or(LogRefusal::NoSuchPage)?;
        let from = index(offset).min(content.len());
        Ok(content[from..].iter().copied().take(index(into.bytes())).collect())
    }

    fn carry_out(&mut self, request: &LogRequest, buffers: &Buffers) -> Result<LogAnswer, LogRefusal> {
        let tag = request.tag;
        match request.op {
            LogOp::OpenSession { session } => self.open(tag, session),
            LogOp::CloseSession { session } => self.close(tag, session),
            LogOp::Flush { .. } => self.flush(tag, &request.op, buffers),
            LogOp::Read { page, offset, into } => {
                self.read(page, offset, into, buffers)?;
                Ok(LogAnswer::Page { bytes: length(&self.volatile.pages[&page]) })
            }
            LogOp::Stat => Ok(LogAnswer::Stat {
                pages: self.volatile.pages.len() as u64,
                live_bytes: self.volatile.live_bytes(),
            }),
            LogOp::Stage(op) => {
                self.staging.apply(&op, buffers).map_err(LogRefusal::Stage)?;
                Ok(LogAnswer::Done)
            }
            LogOp::Sync | LogOp::Shutdown => {
                self.pending.take_flush(tag);
                Ok(LogAnswer::Done)
            }
        }
    }

    /// Everything that is there if the first `counts` of each session's changes survive.
    fn surviving(&self, counts: &BTreeMap<SessionId, usize>) -> LogImage {
        let (mut image, mut left) = (self.durable.clone(), counts.clone());
        for taken in self.pending.iter() {
            let (session, change) = &taken.change;
            let left = left.get_mut(session).expect("every session was counted");
            if *left > 0 {
                *left -= 1;
                image.change(*session, change);
            }
        }
        image.sessions.retain(|_, wsn| *wsn > Wsn(0));
        image
    }

    /// Of each session: how many of its changes may survive, so that it is as far as was found.
    fn choices(&self, found: &LogImage) -> BTreeMap<SessionId, Vec<usize>> {
        let mut choices = BTreeMap::new();
        for session in self.pending.iter().map(|taken| taken.change.0) {
            choices.entry(session).or_insert_with(|| {
                let of_session = self.pending.iter().filter(|taken| taken.change.0 == session);
                let durable = of_session.clone().filter(|taken| taken.is_durable).count();
                let mut image = self.durable.clone();
                let mut fits = Vec::new();
                for (count, taken) in (0..).zip(of_session.map(Some).chain([None])) {
                    if count >= durable && image.applied(session) == found.applied(session) {
                        fits.push(count);
                    }
                    taken.inspect(|taken| image.change(session, &taken.change.1));
                }
                fits
            });
        }
        choices
    }

    /// The image among those that may survive that was found.
    fn find(&self, found: &LogImage) -> Option<LogImage> {
        let mut counts: Vec<BTreeMap<SessionId, usize>> = vec![BTreeMap::new()];
        for (session, fits) in self.choices(found) {
            let with = |counts: &BTreeMap<SessionId, usize>, fit| {
                let mut counts = counts.clone();
                counts.insert(session, fit);
                counts
            };
            counts =
                counts.iter().flat_map(|counts| fits.iter().map(move |&fit| with(counts, fit))).collect();
        }
        counts.iter().map(|counts| self.surviving(counts)).find(|image| image == found)
    }
}

fn told(image: &LogImage) -> String {
    let sessions: Vec<String> =
        image.sessions.iter().map(|(session, wsn)| format!("session {} at {}", session.0, wsn.0)).collect();
    let pages = image.pages.len();
    format!("{} with {pages} pages of {} bytes", sessions.join(", "), image.live_bytes())
}

impl Model for LogModel {
    type Request = LogRequest;
    type Reply = LogReply;
    /// Sessions of which nothing was flushed are left out.
    type Observation = LogImage;

    fn tag(request: &LogRequest) -> Tag {
        request.tag
    }

    fn reply_tag(reply: &LogReply) -> Tag {
        reply.tag
    }

    fn is_refused(reply: &LogReply) -> bool {
        !reply.status.is_success()
    }

    fn flush(tag: Tag) -> LogRequest {
        LogRequest { tag, op: LogOp::Sync }
    }

    fn apply(&mut self, request: &LogRequest, buffers: &Buffers) -> Expected<LogReply> {
        match self.carry_out(request, buffers) {
            Err(refusal) => Expected::plain(LogReply::refused(request.tag, refusal)),
            Ok(answer) => {
                let reply = LogReply::success(request.tag, answer);
                let LogOp::Read { page, offset, into } = request.op else { return Expected::plain(reply) };
                let content = self.read(page, offset, into, buffers).expect("it was read before");
                Expected { reply, content, into }
            }
        }
    }

    /// More may be durable than was known when the request was taken, and never more than is applied.
    fn agrees(
        &self,
        expected: &Expected<LogReply>,
        reply: &LogReply,
        buffers: &Buffers,
    ) -> Result<(), Broken> {
        if let LogAnswer::Progress { applied, durable } = expected.reply.answer
            && let LogAnswer::Progress { applied: told, durable: kept } = reply.answer
            && told == applied
            && (durable..=applied.max(durable)).contains(&kept)
        {
            let reply = LogReply { answer: expected.reply.answer, ..*reply };
            return equal(expected, &reply, buffers);
        }
        equal(expected, reply, buffers)
    }

    fn answered(&mut self, reply: &LogReply) {
        if !reply.status.is_success() {
            return;
        }
        let flushed = self.flushes.remove(&reply.tag);
        self.pending.answered(reply.tag);
        if let (Some((session, end)), LogAnswer::Progress { durable, .. }) = (flushed, reply.answer) {
            let told =
                self.pending.iter_mut().filter(|taken| taken.change.0 == session && taken.number < end);
            for taken in told {
                taken.is_durable |= matches!(taken.change.1, LogChange::Flushed(wsn, _) if wsn <= durable);
            }
        }
        self.pending.spread(|later, earlier| later.0 == earlier.0);
        for (session, change) in self.pending.take_durable() {
            self.durable.change(session, &change);
        }
    }

    fn observe(&self, target: &mut dyn Answerer<LogRequest, LogReply>) -> Result<LogImage, Broken> {
        let mut found = LogImage::default();
        let bad =
            |reply: LogReply| Broken::new("readable after a power cut", "an answer", format!("{reply:?}"));
        for &session in &self.known.0 {
            let reply = target.ask(LogRequest { tag: Tag(0), op: LogOp::OpenSession { session } })?;
            if reply.refusal == Some(LogRefusal::TooManySessions) {
                continue;
            }
            let LogAnswer::Progress { applied, .. } = reply.answer else { return Err(bad(reply)) };
            found.sessions.insert(session, applied);
            if applied == Wsn(0) {
                found.sessions.remove(&session);
                target.ask(LogRequest { tag: Tag(0), op: LogOp::CloseSession { session } })?;
            }
        }
        let sector = u32::try_from(target.buffers().format().sector_bytes).expect("a sector is short");
        let buffer = target.buffers().take_whole(self.limits.page_bytes_max.div_ceil(sector));
        for &page in &self.known.1 {
            let piece = Piece { buffer, first_byte: 0, bytes: self.limits.page_bytes_max };
            let op = LogOp::Read { page, offset: 0, into: Content::Piece(piece) };
            let reply = target.ask(LogRequest { tag: Tag(0), op })?;
            match reply.answer {
                _ if reply.status == Status::UNWRITTEN => continue,
                LogAnswer::Page { bytes } if reply.status.has_data() && bytes <= piece.bytes => {
                    let content = Content::Piece(Piece { bytes, ..piece }).gathered(target.buffers());
                    found.pages.insert(page, content);
                }
                _ => return Err(bad(reply)),
            }
        }
        target.buffers().give_back(buffer);
        let reply = target.ask(LogRequest { tag: Tag(0), op: LogOp::Stat })?;
        let stat = LogAnswer::Stat { pages: found.pages.len() as u64, live_bytes: found.live_bytes() };
        if reply.answer == stat {
            return Ok(found);
        }
        Err(Broken::new(
            "what is stored is what can be read",
            format!("{stat:?}"),
            format!("{:?}", reply.answer),
        ))
    }

    fn may_hold(&self, found: &LogImage) -> Result<(), Broken> {
        if self.find(found).is_some() {
            return Ok(());
        }
        let promised = format!(
            "every session's first flushes, from {} to {}",
            told(&self.durable),
            told(&self.volatile)
        );
        Err(Broken::new("what survives a power cut", promised, told(found)))
    }

    fn settle(&mut self, found: &LogImage) {
        let image = self.find(found).expect("settled on what may not be: ask may_hold first");
        (self.durable, self.volatile) = (image.clone(), image);
        self.pending.clear();
        self.flushes.clear();
        self.staging.clear();
    }

    fn cut(&mut self) {
        for taken in self.pending.iter().filter(|taken| taken.is_durable) {
            self.durable.change(taken.change.0, &taken.change.1);
        }
        self.durable.sessions.retain(|_, wsn| *wsn > Wsn(0));
        self.volatile = self.durable.clone();
        self.pending.clear();
        self.flushes.clear();
        self.staging.clear();
    }
}
