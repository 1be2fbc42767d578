//! A log-structured writer: streams of segments of their own, which are written in order and given up as a whole.
//!
//! Each stream keeps so many segments and gives up its oldest: a reset where segments are zones, a discard elsewhere. Streams take
//! turns, so all write alike, and the more a stream keeps, the longer its segments live. Deliberately not here: moving
//! what is alive out of a segment, which such a writer does itself on any device.

use ocssd_base::{Nanos, Prng};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::{Buffers, Source, Tag, TargetId};
use ocssd_workload::results::LatencyStats;
use std::collections::{BTreeMap, VecDeque};

/// Blocks of a write: a write unit of the drive.
pub const WRITE_BLOCKS: u32 = 24;
/// Writes outstanding of all streams (chosen: enough for every unit of the drive).
const WRITES: u32 = 32;

#[derive(Default)]
struct Stream {
    /// Segments that are kept, the oldest in front.
    full: VecDeque<u64>,
    /// Most of these.
    keeps: usize,
    /// The segment that is written, and how far.
    open: Option<(u64, u64)>,
    outstanding: u32,
}

/// What a request was for.
#[derive(Clone, Copy)]
enum Purpose {
    Write(usize),
    Read,
    GiveUp(u64),
}

/// The writer, with one reader of what it keeps.
pub struct Segments {
    streams: Vec<Stream>,
    free: VecDeque<u64>,
    blocks: u64,
    /// Segments that are given up with a reset.
    are_zones: bool,
    due: VecDeque<u64>,
    in_flight: BTreeMap<u32, (Purpose, Nanos, BlockRequest)>,
    refused: Option<BlockRequest>,
    is_reading: bool,
    prng: Prng,
    turn: usize,
    tag: u32,
    /// Blocks that are still to be written.
    left: u64,
    /// Blocks that were written.
    pub written: u64,
    /// How long writes took.
    pub writes: LatencyStats,
    /// How long reads took.
    pub reads: LatencyStats,
    /// The first failure.
    pub failed: Option<&'static str>,
}

impl Segments {
    /// `streams` streams over segments of `blocks`, `kept` of which are kept in all: of each stream twice as many as of the one
    /// before.
    pub fn new(
        (streams, kept): (u32, u64),
        (segments, blocks): (u64, u64),
        are_zones: bool,
        seed: u64,
    ) -> Self {
        let all = (1_u64 << streams) - 1;
        let keeps = |nth: u32| usize::try_from((kept << nth) / all).expect("an index").max(1);
        Self {
            streams: (0..streams).map(|nth| Stream { keeps: keeps(nth), ..Stream::default() }).collect(),
            free: (0..segments).collect(),
            blocks,
            are_zones,
            due: VecDeque::new(),
            in_flight: BTreeMap::new(),
            refused: None,
            is_reading: false,
            prng: Prng::new(seed).split("segments"),
            turn: 0,
            tag: 0,
            left: 0,
            written: 0,
            writes: LatencyStats::default(),
            reads: LatencyStats::default(),
            failed: None,
        }
    }

    /// Goes on for so many blocks, and measures anew; with reads or without.
    pub fn go_on(&mut self, blocks: u64, is_reading: bool) {
        (self.left, self.written, self.is_reading) = (blocks, 0, is_reading);
        (self.writes, self.reads) = (LatencyStats::default(), LatencyStats::default());
    }

    /// The next write of the stream whose turn it is.
    fn write(&mut self) -> Option<(Purpose, BlockOp, u64, u32)> {
        let share = WRITES / u32::try_from(self.streams.len()).expect("few streams");
        for _ in 0..self.streams.len() {
            let turn = self.turn;
            self.turn = (turn + 1) % self.streams.len();
            let stream = &mut self.streams[turn];
            if stream.outstanding == share.max(1) {
                continue;
            }
            if stream.open.is_none() {
                stream.open = self.free.pop_front().map(|segment| (segment, 0));
            }
            let Some((segment, at)) = &mut stream.open else { continue };
            let block = *segment * self.blocks + *at;
            let count = u64::from(WRITE_BLOCKS).min(self.blocks - *at);
            *at += count;
            if *at == self.blocks {
                stream.full.push_back(*segment);
                stream.open = None;
                if stream.full.len() > stream.keeps {
                    self.due.extend(stream.full.pop_front());
                }
            }
            stream.outstanding += 1;
            self.left = self.left.saturating_sub(count);
            let op = BlockOp::Write { fua: false };
            return Some((Purpose::Write(turn), op, block, u32::try_from(count).expect("a write unit")));
        }
        None
    }

    /// A read anywhere in what is kept, if none is outstanding.
    fn read(&mut self) -> Option<(Purpose, BlockOp, u64, u32)> {
        let is_idle = !self.in_flight.values().any(|(purpose, ..)| matches!(purpose, Purpose::Read));
        if !self.is_reading || self.left == 0 || !is_idle {
            return None;
        }
        let kept: Vec<u64> = self.streams.iter().flat_map(|stream| stream.full.iter().copied()).collect();
        let count = u64::try_from(kept.len()).expect("an index");
        let nth = usize::try_from(self.prng.below(count.max(1))).expect("an index");
        let segment = *kept.get(nth)?;
        Some((Purpose::Read, BlockOp::Read, segment * self.blocks + self.prng.below(self.blocks), 1))
    }

    fn next(&mut self) -> Option<(Purpose, BlockOp, u64, u32)> {
        if let Some(segment) = self.due.pop_front() {
            let op = if self.are_zones { BlockOp::ResetZone } else { BlockOp::Discard };
            let count = u32::try_from(self.blocks).expect("a segment is short");
            return Some((Purpose::GiveUp(segment), op, segment * self.blocks, count));
        }
        let read = self.read();
        if read.is_some() || self.left == 0 { read } else { self.write() }
    }
}

impl Source<dyn BlockTarget> for Segments {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        if let Some(request) = self.refused.take() {
            return Some((TargetId(0), request));
        }
        let (purpose, op, block, count) = self.next()?;
        self.tag += 1;
        let has_buffer = matches!(op, BlockOp::Read | BlockOp::Write { .. });
        let buffer = has_buffer.then(|| buffers.take(count));
        let request = BlockRequest { tag: Tag(self.tag), op, block, count, buffer };
        self.in_flight.insert(self.tag, (purpose, now, request));
        Some((TargetId(0), request))
    }

    fn on_refused(&mut self, _: Nanos, _: TargetId, request: BlockRequest) {
        self.refused = Some(request);
    }

    fn on_reply(&mut self, now: Nanos, _: TargetId, reply: BlockReply, buffers: &mut Buffers) {
        let (purpose, made, request) =
            self.in_flight.remove(&reply.tag.0).expect("a reply answers a request");
        if !reply.status.is_success() {
            self.failed = Some(reply.status.name());
        }
        let took = now.saturating_since(made);
        match purpose {
            Purpose::Write(stream) => {
                self.streams[stream].outstanding -= 1;
                self.written += u64::from(request.count);
                self.writes.record(took);
            }
            Purpose::Read => self.reads.record(took),
            Purpose::GiveUp(segment) => self.free.push_back(segment),
        }
        if let Some(buffer) = request.buffer {
            buffers.give_back(buffer);
        }
    }

    fn is_finished(&self) -> bool {
        self.left == 0 && self.in_flight.is_empty() && self.refused.is_none() && self.due.is_empty()
    }
}
