//! A page store's host for log-structured targets: buffers filled with pages of any length, flushed in sessions.
//!
//! As LLAMA's does, each session fills a buffer with the newest pages and flushes it when the next page has no room; deleted
//! pages go with it. Page lengths are uniform between two bounds, or fixed. With `stage` a flush comes in pieces of so many bytes,
//! as OX's capsules of 60 KiB; with `resend` some flushes are sent again after they were answered, as after a lost answer.

use super::payload;
use super::words::Words;
use super::zipfian::{Chooser, RequestDistribution, YCSB_THETA};
use super::{Answered, Generator, Outcome};
use ocssd_base::{Prng, Problems};
use ocssd_lightnvm::interface::log_structured::{
    LogAnswer, LogLimits, LogOp, LogRefusal, LogReply, LogRequest, PageEntry, PageId, SessionId, Wsn,
};
use ocssd_lightnvm::interface::{Content, Durability, List, Piece, StageId, StageOp};
use ocssd_lightnvm::{BufId, Buffers, Tag};
use std::collections::VecDeque;

/// Options of a page store.
#[derive(Clone, Debug, PartialEq)]
pub struct PageStoreOptions {
    /// Pages that exist.
    pub pages: u64,
    /// Shortest page.
    pub page_bytes_min: u32,
    /// Longest page.
    pub page_bytes_max: u32,
    /// Bytes of a buffer.
    pub buffer_bytes: u32,
    /// Sessions that flush.
    pub sessions: u32,
    /// Flushes and reads until the generator ends.
    pub requests: u64,
    /// Percent of requests that are reads.
    pub read_percent: u64,
    /// Percent of rows of a flush that delete.
    pub delete_percent: u64,
    /// Percent of flushes that are sent again.
    pub resend_percent: u64,
    /// Bytes of a piece of a flush; 0 is all at once.
    pub stage_bytes: u32,
    /// Which pages are written and read.
    pub distribution: RequestDistribution,
    /// When flushes survive.
    pub durability: Durability,
}

impl PageStoreOptions {
    /// Reads options for a target of these limits.
    ///
    /// # Errors
    /// Every option that cannot be used, in a sentence.
    pub fn parse(text: &str, limits: &LogLimits) -> Result<Self, Problems> {
        let mut words = Words::new(text);
        let default_max = 4_096.min(limits.page_bytes_max);
        let page_bytes_max = words.number32("page_bytes_max", default_max, 1..=limits.page_bytes_max);
        let buffer_max = limits.flush_bytes_max;
        let options = Self {
            pages: words.number("pages", 1_024, 1..=1 << 40),
            page_bytes_min: words.number32("page_bytes_min", page_bytes_max, 1..=page_bytes_max),
            page_bytes_max,
            buffer_bytes: words.number32("buffer", (8 << 20).min(buffer_max), page_bytes_max..=buffer_max),
            sessions: words.number32("sessions", 1, 1..=limits.sessions_max),
            requests: words.number("requests", 1_000, 0..=1 << 50),
            read_percent: words.number("rwmixread", 50, 0..=100),
            delete_percent: words.number("delete", 0, 0..=100),
            resend_percent: words.number("resend", 0, 0..=100),
            stage_bytes: words.number32("stage", 0, 0..=buffer_max),
            distribution: words.choice(
                "distribution",
                RequestDistribution::Uniform,
                &[
                    ("uniform", RequestDistribution::Uniform),
                    ("zipfian", RequestDistribution::Zipfian),
                    ("latest", RequestDistribution::Latest),
                    ("sequential", RequestDistribution::Sequential),
                ],
            ),
            durability: words.choice(
                "durable",
                Durability::AtReply,
                &[("reply", Durability::AtReply), ("flush", Durability::AtFlush)],
            ),
        };
        let has_stages = options.stage_bytes == 0
            || (limits.stages.stages_max >= options.sessions
                && limits.stages.bytes_max >= options.buffer_bytes);
        words.require(
            has_stages,
            "stage",
            options.stage_bytes,
            "the target must have a stage for each session, as long as a buffer: leave it out, or flush less",
        );
        words.finish().map(|()| options)
    }
}

/// What a session does.
#[derive(Clone, Debug)]
enum Step {
    /// It is not open.
    Closed,
    /// It can flush.
    Idle,
    /// Requests of it are to be sent, in order, one after the other.
    Sending(VecDeque<LogOp>),
    /// One is outstanding, and these follow.
    Waiting(VecDeque<LogOp>),
}

#[derive(Clone, Debug)]
struct Session {
    next: Wsn,
    step: Step,
    /// Buffers of the flush that is on.
    held: Vec<BufId>,
}

/// The generator.
#[derive(Clone, Debug)]
pub struct PageStore {
    options: PageStoreOptions,
    limits: LogLimits,
    prng: Prng,
    chooser: Chooser,
    sessions: Vec<Session>,
    versions: u64,
    drawn: u64,
    outstanding: u64,
}

fn name(session: usize) -> SessionId {
    SessionId(u64::try_from(session).expect("an index fits 64 bits"))
}

impl PageStore {
    /// The workload of these options, with randomness of `prng`.
    #[must_use]
    pub fn new(options: PageStoreOptions, limits: LogLimits, prng: &Prng) -> Self {
        let chooser = Chooser::new(options.distribution, YCSB_THETA);
        let session = Session { next: Wsn(1), step: Step::Closed, held: Vec::new() };
        let sessions = vec![session; usize::try_from(options.sessions).expect("an index")];
        let prng = prng.split("page store");
        Self { options, limits, prng, chooser, sessions, versions: 0, drawn: 0, outstanding: 0 }
    }

    /// The power went: every session is opened again, and goes on where the target tells. Nothing is outstanding.
    pub fn power_cut(&mut self) {
        for session in &mut self.sessions {
            session.step = Step::Closed;
            session.held.clear();
        }
        self.outstanding = 0;
    }

    fn page_bytes(&mut self) -> u32 {
        let PageStoreOptions { page_bytes_min, page_bytes_max, .. } = self.options;
        let range = u64::from(page_bytes_max - page_bytes_min) + 1;
        page_bytes_min + u32::try_from(self.prng.below(range)).expect("32 bits")
    }

    /// Fills a page table until the next page has no room. Each page comes once.
    fn rows(&mut self) -> Vec<PageEntry> {
        let (mut rows, mut offset): (Vec<PageEntry>, u32) = (Vec::new(), 0);
        let rows_max = u64::from(self.limits.flush_pages_max).min(self.options.pages);
        // A skewed choice names the same pages again and again: a bound on trying.
        for _ in 0..4 * rows_max {
            let page = PageId(self.chooser.choose(self.options.pages, &mut self.prng));
            let deletes = self.prng.below(100) < self.options.delete_percent;
            let bytes = self.page_bytes();
            if !deletes && u64::from(offset) + u64::from(bytes) > u64::from(self.options.buffer_bytes) {
                break;
            }
            if rows.iter().any(|row| row.page == page) {
                continue;
            }
            if deletes {
                rows.push(PageEntry { page, offset: 0, bytes: 0 });
            } else {
                rows.push(PageEntry { page, offset, bytes });
                offset = (offset + bytes).next_multiple_of(self.limits.page_align_bytes);
            }
            if rows.len() as u64 == rows_max {
                break;
            }
        }
        rows
    }

    /// The requests of a session's next flush: its pieces, if it is staged, and the flush itself.
    fn flush(&mut self, session: usize, buffers: &mut Buffers) -> VecDeque<LogOp> {
        let rows = self.rows();
        let sector = u32::try_from(buffers.format().sector_bytes).expect("a sector is short");
        let bytes = rows.iter().map(|row| row.offset + row.bytes).max().unwrap_or_default();
        let table = buffers.take_whole(List::<PageEntry>::sectors(self.limits.flush_pages_max, buffers));
        let buffer = buffers.take_whole(self.options.buffer_bytes.div_ceil(sector));
        self.sessions[session].held = vec![table, buffer];
        self.versions += 1;
        for row in rows.iter().filter(|row| row.bytes > 0) {
            let piece = Piece { buffer, first_byte: row.offset, bytes: row.bytes };
            payload::fill(buffers, piece, row.page.0, self.versions);
        }
        let mut requests = VecDeque::new();
        let whole = Content::Piece(Piece { buffer, first_byte: 0, bytes });
        let content = if self.options.stage_bytes == 0 || bytes == 0 {
            whole
        } else {
            let stage = StageId(u32::try_from(session).expect("a session is an index"));
            requests.extend(pieces(stage, buffer, bytes, self.options.stage_bytes));
            Content::Staged { stage, bytes }
        };
        let (wsn, durability) = (self.sessions[session].next, self.options.durability);
        let pages = List::write(buffers, table, &rows);
        let flush = LogOp::Flush { session: name(session), wsn, content, pages, durability };
        requests.push_back(flush);
        if self.prng.below(100) < self.options.resend_percent {
            // Its stage is over by then; what is sent again is not looked at.
            requests.push_back(LogOp::Flush {
                session: name(session),
                wsn,
                content: whole,
                pages,
                durability,
            });
        }
        requests
    }

    fn read(&mut self, buffers: &mut Buffers) -> LogOp {
        let page = PageId(self.chooser.choose(self.options.pages, &mut self.prng));
        let sector = u32::try_from(buffers.format().sector_bytes).expect("a sector is short");
        let buffer = buffers.take_whole(self.options.page_bytes_max.div_ceil(sector));
        let piece = Piece { buffer, first_byte: 0, bytes: self.options.page_bytes_max };
        LogOp::Read { page, offset: 0, into: Content::Piece(piece) }
    }

    /// The next request of a session, if it has one to send.
    fn step(&mut self, session: usize) -> Option<LogOp> {
        match &mut self.sessions[session].step {
            Step::Closed => {
                self.sessions[session].step = Step::Waiting(VecDeque::new());
                Some(LogOp::OpenSession { session: name(session) })
            }
            Step::Sending(requests) => {
                let op = requests.pop_front().expect("a session that sends has requests");
                let rest = std::mem::take(requests);
                self.sessions[session].step = Step::Waiting(rest);
                Some(op)
            }
            Step::Idle | Step::Waiting(_) => None,
        }
    }

    /// The session a request is of.
    fn session_of(op: &LogOp) -> Option<usize> {
        let number = match op {
            LogOp::OpenSession { session } | LogOp::Flush { session, .. } => session.0,
            LogOp::Stage(
                StageOp::Open { stage, .. } | StageOp::Append { stage, .. } | StageOp::Abort { stage },
            ) => u64::from(stage.0),
            _ => return None,
        };
        usize::try_from(number).ok()
    }

    /// A session's request was answered.
    fn advance(&mut self, session: usize, reply: &LogReply, buffers: &mut Buffers) {
        let Session { next, step, held } = &mut self.sessions[session];
        let Step::Waiting(rest) = step else { unreachable!("a session waits for its request") };
        if let LogAnswer::Progress { applied, .. } = reply.answer {
            *next = applied.next();
        }
        let rest = std::mem::take(rest);
        *step = if rest.is_empty() { Step::Idle } else { Step::Sending(rest) };
        if matches!(step, Step::Idle) {
            held.drain(..).for_each(|buffer| buffers.give_back(buffer));
        }
    }
}

/// A stage of a buffer's bytes.
fn pieces(stage: StageId, buffer: BufId, bytes: u32, piece_bytes: u32) -> VecDeque<LogOp> {
    let mut requests = VecDeque::from([LogOp::Stage(StageOp::Open { stage, bytes })]);
    let mut offset = 0;
    while offset < bytes {
        let piece = Piece { buffer, first_byte: offset, bytes: piece_bytes.min(bytes - offset) };
        let content = Content::Piece(piece);
        requests.push_back(LogOp::Stage(StageOp::Append { stage, offset, content }));
        offset += piece.bytes;
    }
    requests
}

impl Generator for PageStore {
    type Request = LogRequest;
    type Reply = LogReply;

    fn next(&mut self, tag: Tag, buffers: &mut Buffers) -> Option<LogRequest> {
        let sending = (0..self.sessions.len()).find_map(|session| self.step(session));
        let op = match sending {
            Some(op) => op,
            None if self.drawn == self.options.requests => return None,
            None => {
                let idle = self.sessions.iter().position(|session| matches!(session.step, Step::Idle));
                let reads = self.prng.below(100) < self.options.read_percent;
                match idle.filter(|_| !reads) {
                    Some(session) => {
                        self.drawn += 1;
                        self.sessions[session].step = Step::Sending(self.flush(session, buffers));
                        self.step(session)?
                    }
                    None if !reads => return None,
                    None => {
                        self.drawn += 1;
                        self.read(buffers)
                    }
                }
            }
        };
        self.outstanding += 1;
        Some(LogRequest { tag, op })
    }

    fn on_reply(&mut self, request: &LogRequest, reply: &LogReply, buffers: &mut Buffers) {
        self.outstanding -= 1;
        if let Some(session) = Self::session_of(&request.op) {
            self.advance(session, reply, buffers);
        }
        if let LogOp::Read { into: Content::Piece(piece), .. } = request.op {
            buffers.give_back(piece.buffer);
        }
    }

    fn tag(request: &LogRequest) -> Tag {
        request.tag
    }

    fn reply_tag(reply: &LogReply) -> Tag {
        reply.tag
    }

    fn answered(&self, request: &LogRequest, reply: &LogReply) -> Answered {
        let (name, bytes) = match request.op {
            LogOp::OpenSession { .. } => ("open", 0),
            LogOp::CloseSession { .. } => ("close", 0),
            LogOp::Flush { content, .. } => ("flush", u64::from(content.bytes())),
            LogOp::Read { into, .. } => match reply.answer {
                LogAnswer::Page { bytes } => ("read", u64::from(bytes.min(into.bytes()))),
                _ => ("read", 0),
            },
            LogOp::Stat => ("stat", 0),
            LogOp::Stage(_) => ("stage", 0),
            LogOp::Sync => ("sync", 0),
            LogOp::Shutdown => ("shutdown", 0),
        };
        let outcome = match reply.refusal {
            Some(LogRefusal::NoSuchPage) => Outcome::Absent,
            Some(refusal) => Outcome::of(reply.status, Some(&refusal)),
            None => Outcome::of(reply.status, None),
        };
        Answered { name, bytes, is_stored: name == "flush", outcome }
    }

    fn shutdown(tag: Tag) -> LogRequest {
        LogRequest { tag, op: LogOp::Shutdown }
    }

    fn operations_begun(&self) -> u64 {
        self.drawn
    }

    fn operation_count_max(&self) -> u64 {
        self.options.requests
    }

    fn is_finished(&self) -> bool {
        let sending = |session: &Session| matches!(session.step, Step::Sending(_));
        self.drawn == self.options.requests && self.outstanding == 0 && !self.sessions.iter().any(sending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::interface::StageLimits;
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};

    const LIMITS: LogLimits = LogLimits {
        flush_bytes_max: 1 << 20,
        flush_pages_max: 300,
        page_bytes_max: 8_192,
        page_align_bytes: 64,
        sessions_max: 4,
        capacity_bytes: 1 << 30,
        pages_max: 1 << 20,
        stages: StageLimits { stages_max: 4, bytes_max: 1 << 20 },
    };

    /// All requests, answered at once by a target that applies every flush; and the flushes' tables.
    fn run(text: &str, seed: u64) -> (Vec<LogRequest>, Vec<Vec<PageEntry>>) {
        let geometry = Geometry::example(1, 1, 4, 24, 24);
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry));
        let options = PageStoreOptions::parse(text, &LIMITS).expect("the options can be used");
        let mut store = PageStore::new(options, LIMITS, &Prng::new(seed));
        let (mut applied, mut requests, mut tables) = ([0_u64; 4], Vec::new(), Vec::new());
        let mut staged = [0_u32; 4];
        while let Some(request) = store.next(Tag(0), &mut buffers) {
            let mut answer = LogAnswer::Done;
            match request.op {
                LogOp::Flush { session, wsn, content, pages, .. } => {
                    let nth = usize::try_from(session.0).expect("an index");
                    assert!(wsn.0 == applied[nth] || wsn.0 == applied[nth] + 1, "seed {seed}: {wsn:?}");
                    let rows: Vec<PageEntry> = pages.entries(&buffers).flatten().collect();
                    assert_eq!(LIMITS.check_pages(content.bytes(), &rows), Ok(()), "seed {seed}");
                    if let Content::Staged { bytes, .. } = content {
                        assert_eq!(std::mem::take(&mut staged[nth]), bytes, "seed {seed}");
                    }
                    applied[nth] = wsn.0;
                    answer = LogAnswer::Progress { applied: wsn, durable: wsn };
                    tables.push(rows);
                }
                LogOp::OpenSession { .. } => {
                    answer = LogAnswer::Progress { applied: Wsn(0), durable: Wsn(0) }
                }
                LogOp::Stage(StageOp::Append { stage, offset, content }) => {
                    let staged = &mut staged[usize::try_from(stage.0).expect("an index")];
                    assert_eq!(offset, *staged, "seed {seed}");
                    *staged += content.bytes();
                }
                _ => {}
            }
            store.on_reply(&request, &LogReply::success(request.tag, answer), &mut buffers);
            requests.push(request);
        }
        assert!(store.is_finished() && buffers.in_use() == 0, "seed {seed}: {text}");
        (requests, tables)
    }

    #[test]
    fn buffers_are_filled_with_pages_of_any_length() {
        let (_, tables) = run("buffer=64k,page_bytes_min=100,page_bytes_max=3000,rwmixread=0,requests=50", 1);
        assert_eq!(tables.len(), 50);
        for table in &tables {
            let bytes = table.iter().map(|row| row.offset + row.bytes).max().expect("pages");
            assert!(bytes > 60_000, "seed 1: only {bytes} bytes of 65536");
            assert!(table.iter().all(|row| (100..=3_000).contains(&row.bytes)));
        }
        let lengths: Vec<u64> = tables.iter().flatten().map(|row| u64::from(row.bytes)).collect();
        let mean = lengths.iter().sum::<u64>() / lengths.len() as u64;
        assert!((1_450..1_650).contains(&mean), "seed 1: {mean} bytes on average");
    }

    #[test]
    fn sessions_flush_in_order_and_in_pieces_and_again() {
        for seed in 0..10 {
            let text = "sessions=4,buffer=32k,page_bytes_max=700,delete=10,resend=20,stage=5000,pages=200,requests=200";
            let (requests, tables) = run(text, seed);
            assert_eq!(requests, run(text, seed).0, "the same seed repeats");
            assert!(tables.iter().flatten().any(|row| row.bytes == 0), "seed {seed}");
            let opens =
                requests.iter().filter(|request| matches!(request.op, LogOp::OpenSession { .. })).count();
            assert!((1..=4).contains(&opens), "seed {seed}");
        }
    }

    #[test]
    fn a_skewed_choice_ends_also_where_pages_are_few() {
        let (_, tables) = run("pages=3,distribution=zipfian,buffer=1m,requests=20,rwmixread=0", 4);
        assert!(tables.iter().all(|table| (1..=3).contains(&table.len())));
    }

    #[test]
    fn bad_options_are_refused_in_words() {
        for (text, says) in [
            ("page_bytes_max=10000", "from 1 to 8192"),
            ("page_bytes_max=100,page_bytes_min=200", "from 1 to 100"),
            ("buffer=2m", "buffer is 2m"),
            ("sessions=5", "from 1 to 4"),
            ("page_bytes_maxx=5", "did you mean `page_bytes_max`?"),
            ("distribution=zipf", "one of uniform, zipfian"),
        ] {
            let problem = PageStoreOptions::parse(text, &LIMITS).expect_err(text).to_string();
            assert!(problem.contains(says), "{text}: {problem}");
        }
        let few = LogLimits { stages: StageLimits { stages_max: 1, bytes_max: 1 << 20 }, ..LIMITS };
        let problem =
            PageStoreOptions::parse("sessions=2,stage=4k", &few).expect_err("one stage").to_string();
        assert!(problem.contains("a stage for each session"), "{problem}");
    }
}
