//! `eleos` on a small drive in virtual time, asked one request at a time, or offered several before it goes on.

use ocssd_base::{Nanos, usize_of};
use ocssd_engine::{Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Config, FaultKind, Flash, ScheduledFault, presets};
use ocssd_lightnvm::counter::CounterValue;
use ocssd_lightnvm::interface::log_structured::{
    LogAnswer, LogLimits, LogOp, LogReply, LogRequest, LogTarget, PageEntry, PageId, SessionId, Wsn,
};
use ocssd_lightnvm::interface::{Content, Durability, List, Piece};
use ocssd_lightnvm::{Admission, Buffers, ChunkId, Geometry, Out, Payload, PuId, Source, Tag, TargetId};
use ocssd_targets::eleos::{Eleos, Options};

/// The only target.
const TARGET: TargetId = TargetId(0);
/// The only session.
const SESSION: SessionId = SessionId(7);
/// Units of the drive.
const UNITS: u32 = 2;
/// Chunks of a unit.
const CHUNKS: u32 = 80;
/// Sectors of a chunk.
const SECTORS: u32 = 32;

/// A small drive on which what was written last cannot be read at once.
fn config() -> Config {
    let geometry = Geometry { mw_cunits: 8, ws_min: 4, ..Geometry::example(1, UNITS, CHUNKS, SECTORS, 8) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.payload = Payload::Bytes;
    config.geometry = geometry;
    config
}

/// Everything of a test.
pub struct Rig {
    pub host: Host<Flash, VirtualClock, dyn LogTarget>,
    tag: u32,
    wsn: Wsn,
    /// Requests that were offered and taken, and whose answers nobody waited for.
    owed: usize,
}

/// Whoever waits for so many answers.
struct Answers(usize);

impl Source<dyn LogTarget> for Answers {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, LogRequest)> {
        None
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, request: LogRequest) {
        unreachable!("{request:?} was not asked here");
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: LogReply, _buffers: &mut Buffers) {
        assert!(reply.status.is_success(), "{reply:?}");
        self.0 -= 1;
    }

    fn is_finished(&self) -> bool {
        self.0 == 0
    }
}

impl Rig {
    /// Pages on a fresh drive, and a session.
    pub fn new() -> Self {
        let flash = Flash::format(config()).expect("a sound drive");
        let buffers = Buffers::new(flash.payload_format());
        let mut host: Host<Flash, VirtualClock, dyn LogTarget> =
            Host::new(flash, VirtualClock::default(), buffers);
        let units: Vec<PuId> = (0..UNITS).map(PuId).collect();
        let (target, _) = Eleos::mount(&mut host.caller(), &units, &Options::default()).expect("it fits");
        host.add(Box::new(target));
        let mut rig = Self { host, tag: 0, wsn: Wsn(0), owed: 0 };
        let reply = rig.ask(LogOp::OpenSession { session: SESSION });
        assert!(reply.status.is_success(), "{reply:?}");
        rig
    }

    /// What the target promises.
    pub fn limits(&self) -> LogLimits {
        self.host.target(TARGET).limits()
    }

    /// What the target counted.
    pub fn count(&self, name: &str) -> u64 {
        let counters = self.host.target(TARGET).counters();
        let counter = counters.iter().find(|counter| counter.name == name).expect("a counter");
        match counter.value {
            CounterValue::Count(value) | CounterValue::Gauge(value) => value,
            _ => panic!("{name} is no number"),
        }
    }

    /// The target's books are right, whatever is on its way.
    pub fn check(&self) {
        self.host.target(TARGET).check();
    }

    pub fn ask(&mut self, op: LogOp) -> LogReply {
        self.tag += 1;
        self.host.ask(LogRequest { tag: Tag(self.tag), op })
    }

    /// Offers a request, and lets the target do nothing about it yet.
    pub fn offer(&mut self, op: LogOp) -> Admission {
        self.tag += 1;
        let request = LogRequest { tag: Tag(self.tag), op };
        let mut out = Out::new(self.host.take_buffers(), 0);
        let now = self.host.clock().now();
        let admission = self.host.target_mut(TARGET).submit(now, &request, &mut out);
        assert_eq!(out.reply_count(), 0, "a target answers when it goes on");
        self.host.return_buffers(out.buffers);
        self.owed += usize::from(admission.is_taken());
        admission
    }

    /// Waits until all that was offered is answered: well.
    pub fn go_on(&mut self) {
        let mut answers = Answers(std::mem::take(&mut self.owed));
        assert_eq!(self.host.run(&mut answers, Nanos::MAX), RunEnd::Finished);
    }

    /// The next flush, of pages of these lengths one behind the other, each of one byte's value; of none: it is deleted.
    pub fn flush_of(&mut self, pages: &[(u64, u32)], durability: Durability) -> LogOp {
        self.wsn = self.wsn.next();
        let buffers = self.host.buffers_mut();
        let bytes: u32 = pages.iter().map(|&(_, bytes)| bytes).sum();
        let sector = u32::try_from(buffers.format().sector_bytes).expect("short");
        let piece = Piece { buffer: buffers.take_whole(bytes.div_ceil(sector).max(1)), first_byte: 0, bytes };
        let (mut content, mut rows) = (Vec::new(), Vec::new());
        for &(page, bytes) in pages {
            let offset = if bytes == 0 { 0 } else { u32::try_from(content.len()).expect("short") };
            rows.push(PageEntry { page: PageId(page), offset, bytes });
            content.resize(content.len() + usize_of(bytes), fill(page));
        }
        piece.scatter(buffers, &content);
        let count = u32::try_from(rows.len()).expect("few");
        let sectors = List::<PageEntry>::sectors(count, buffers);
        let list = buffers.take_whole(sectors);
        let pages = List::write(buffers, list, &rows);
        LogOp::Flush { session: SESSION, wsn: self.wsn, content: Content::Piece(piece), pages, durability }
    }

    /// Flushes these pages, and waits until they are durable.
    pub fn flush(&mut self, pages: &[(u64, u32)]) {
        let op = self.flush_of(pages, Durability::AtReply);
        let reply = self.ask(op);
        assert!(reply.status.is_success(), "{reply:?}");
    }

    /// Reads a page: how that ended, and what was found.
    pub fn read(&mut self, page: u64, bytes: u32) -> (LogReply, Vec<u8>) {
        let buffers = self.host.buffers_mut();
        let sector = u32::try_from(buffers.format().sector_bytes).expect("short");
        let piece = Piece { buffer: buffers.take_whole(bytes.div_ceil(sector)), first_byte: 0, bytes };
        let reply = self.ask(LogOp::Read { page: PageId(page), offset: 0, into: Content::Piece(piece) });
        let mut found = Vec::new();
        piece.gather(self.host.buffers_mut(), &mut found);
        self.host.buffers_mut().give_back(piece.buffer);
        (reply, found)
    }

    /// A page is what was flushed.
    pub fn assert_found(&mut self, page: u64, bytes: u32) {
        let (reply, found) = self.read(page, bytes);
        assert_eq!(reply.answer, LogAnswer::Page { bytes }, "page {page}: {reply:?}");
        assert_eq!(found, vec![fill(page); usize_of(bytes)], "page {page}");
    }

    /// These sectors of every chunk are lost.
    pub fn lose(&mut self, sectors: &[u32]) {
        let kind = FaultKind::UnrecoveredRead;
        for chunk in (0..UNITS * CHUNKS).map(ChunkId) {
            for &sector in sectors {
                let fault = ScheduledFault { kind, chunk, sector: Some(sector), times: u32::MAX };
                self.host.device_mut().schedule_fault(fault);
            }
        }
    }
}

/// The byte of which a page's content is.
fn fill(page: u64) -> u8 {
    u8::try_from(page % 251 + 1).expect("below 256")
}
