//! Mooncake's store of KV-cache blocks, asked as a trace of its users' prompts has it.
//!
//! Of a prompt the blocks from its first on that the store has are retrieved; those behind are computed by the model, so they are
//! stored, each a value. What is kept is bounded: before a store the blocks used least recently are deleted. Which blocks are
//! there the generator knows, as Mooncake's master does, so a retrieve that finds nothing is a failure, and so is content of
//! another block. Requests come at their times in the trace, or as fast as answers come (`speed=0`).
//!
//! A request waits while another of its block has no answer, as blocks that are being stored are not visible in Mooncake yet; what
//! comes behind it waits, too. Options, `name=value` with commas: `trace`, `requests`, `bytespertoken`, `cachebytes`, `speed`,
//! `storebytes`, `durable`. Deliberately not here: the model's own time, leases, several copies, and files (the caller reads the
//! trace).

mod busy;
mod kept;
mod options;
pub mod synthetic;
pub mod trace;

use super::payload;
use super::ycsb::key_of;
use super::{Answered, Generator, Outcome};
use busy::Busy;
use kept::Kept;
use ocssd_base::Nanos;
use ocssd_lightnvm::interface::key_value::{
    AbsentKey, KvAnswer, KvOp, KvRefusal, KvReply, KvRequest, StoreCondition,
};
use ocssd_lightnvm::interface::{Content, Piece};
use ocssd_lightnvm::{Buffers, Tag};
pub use options::MooncakeOptions;
use std::collections::VecDeque;
use trace::{BLOCK_TOKENS, IDS_MAX, Trace};

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum Due {
    Retrieve { block: u64, bytes: u32 },
    Store { block: u64, bytes: u32 },
    Delete { block: u64 },
}

impl Due {
    const fn block(self) -> u64 {
        match self {
            Self::Retrieve { block, .. } | Self::Store { block, .. } | Self::Delete { block } => block,
        }
    }

    const fn changes(self) -> bool {
        !matches!(self, Self::Retrieve { .. })
    }
}

/// What it came to, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MooncakeStats {
    /// Blocks of prompts that were retrieved.
    pub found: u64,
    /// Blocks that were stored.
    pub stored: u64,
    /// Blocks that were deleted to make room.
    pub evicted: u64,
    /// Blocks behind one that was missing, which were there: they are used without being retrieved.
    pub there: u64,
    /// Blocks of a prompt so long that there was no room for them.
    pub dropped: u64,
}

/// The generator.
#[derive(Clone, Debug)]
pub struct Mooncake {
    options: MooncakeOptions,
    trace: Trace,
    kept: Kept,
    due: VecDeque<Due>,
    /// Requests of the trace begun, over all repetitions.
    begun: u64,
    /// When the last of them arrived.
    arrived: Nanos,
    stored_bytes: u64,
    /// Retrieves without an answer: what they must find.
    expected: Vec<(Tag, u64, u32)>,
    /// What the last reply was found to be wrong by.
    wrong: Option<String>,
    busy: Busy,
    stats: MooncakeStats,
}

impl Mooncake {
    /// A trace, asked by these options.
    ///
    /// # Panics
    /// If the trace has no request.
    #[must_use]
    pub fn new(options: MooncakeOptions, mut trace: Trace) -> Self {
        let most = options.requests.and_then(|count| usize::try_from(count).ok());
        trace.requests.truncate(most.unwrap_or(usize::MAX));
        assert!(!trace.requests.is_empty(), "a trace without a request asks for nothing");
        Self {
            kept: Kept::new(options.cache_bytes),
            options,
            trace,
            due: VecDeque::new(),
            begun: 0,
            arrived: Nanos::ZERO,
            stored_bytes: 0,
            expected: Vec::new(),
            wrong: None,
            busy: Busy::default(),
            stats: MooncakeStats::default(),
        }
    }

    /// What it came to so far.
    #[must_use]
    pub const fn stats(&self) -> MooncakeStats {
        self.stats
    }

    fn count(&self) -> u64 {
        u64::try_from(self.trace.requests.len()).expect("an index")
    }

    /// No more requests of the trace are begun.
    fn is_over(&self) -> bool {
        if self.options.store_bytes > 0 {
            self.stored_bytes >= self.options.store_bytes
        } else {
            self.begun == self.count()
        }
    }

    /// The next request of the trace, its repetition and its time from the start.
    fn upcoming(&self) -> (usize, u64, Nanos) {
        let (round, nth) = (self.begun / self.count(), self.begun % self.count());
        let nth = usize::try_from(nth).expect("an index");
        let requests = &self.trace.requests;
        // A repetition begins a burst after the end of the one before.
        let last = requests.last().map_or(0, |request| request.at_ms) + MILLIS_BETWEEN;
        let at_ms = round * last + requests[nth].at_ms;
        (nth, round, self.options.scaled(at_ms))
    }

    /// Begins a request of the trace: what of it is retrieved, and what is stored.
    fn begin(&mut self) {
        let (nth, round, at) = self.upcoming();
        self.begun += 1;
        self.arrived = at;
        self.kept.begin();
        let request = self.trace.requests[nth].clone();
        let mut is_prefix = true;
        for (place, id) in request.blocks.iter().enumerate() {
            // Each repetition has blocks of its own, or all of them would be there.
            let block = round * IDS_MAX + id;
            if let Some(bytes) = self.kept.touch(block) {
                if is_prefix {
                    self.due.push_back(Due::Retrieve { block, bytes });
                    self.stats.found += 1;
                } else {
                    self.stats.there += 1;
                }
                continue;
            }
            is_prefix = false;
            let bytes = request.tokens_of(place) * self.options.bytes_per_token;
            let Some(evicted) = self.kept.add(block, bytes) else {
                self.stats.dropped += 1;
                continue;
            };
            self.stats.evicted += u64::try_from(evicted.len()).expect("an index");
            self.due.extend(evicted.into_iter().map(|block| Due::Delete { block }));
            self.due.push_back(Due::Store { block, bytes });
            self.stats.stored += 1;
            self.stored_bytes += u64::from(bytes);
        }
    }

    fn room(&self, bytes: u32, buffers: &mut Buffers) -> Piece {
        let sector = u32::try_from(buffers.format().sector_bytes).expect("a sector is short");
        // All of one length, so that buffers are used again.
        let most = BLOCK_TOKENS * self.options.bytes_per_token;
        let buffer = buffers.take_whole(most.div_ceil(sector));
        Piece { buffer, first_byte: 0, bytes }
    }

    fn request(&mut self, due: Due, tag: Tag, buffers: &mut Buffers) -> KvOp {
        let durability = self.options.durability;
        match due {
            Due::Retrieve { block, bytes } => {
                self.expected.push((tag, block, bytes));
                let into = Content::Piece(self.room(BLOCK_TOKENS * self.options.bytes_per_token, buffers));
                KvOp::Retrieve { key: key_of(block), offset: 0, into }
            }
            Due::Store { block, bytes } => {
                let piece = self.room(bytes, buffers);
                payload::fill(buffers, piece, block, u64::from(bytes));
                let (content, condition) = (Content::Piece(piece), StoreCondition::MustNotExist);
                KvOp::Store { key: key_of(block), content, condition, durability }
            }
            Due::Delete { block } => {
                KvOp::Delete { key: key_of(block), absent: AbsentKey::Refused, durability }
            }
        }
    }

    /// What is wrong with a retrieved block.
    fn judge(&mut self, tag: Tag, into: Piece, reply: &KvReply, buffers: &Buffers) -> Option<String> {
        let nth = self.expected.iter().position(|&(of, ..)| of == tag);
        let (_, block, bytes) = self.expected.swap_remove(nth.expect("a retrieve is expected"));
        let KvAnswer::Value { bytes: found } = reply.answer else { return None };
        if found != bytes {
            return Some(format!("block {block} has {found} bytes, but {bytes} were stored"));
        }
        let stamp = payload::stamp(block, u64::from(bytes));
        let is_there = |first: u32| {
            let most = bytes.saturating_sub(first).min(STAMP_BYTES);
            let place = Piece { first_byte: into.first_byte + first, bytes: most, ..into };
            Content::Piece(place).gathered(buffers) == stamp[..usize::try_from(most).expect("short")]
        };
        // The first and the last whole stamp: what is between was written with them.
        let last = bytes.saturating_sub(STAMP_BYTES) / STAMP_BYTES * STAMP_BYTES;
        let is_right = is_there(0) && is_there(last);
        (!is_right).then(|| format!("block {block} holds content of another"))
    }
}

/// Bytes of a stamp of content.
const STAMP_BYTES: u32 = 16;
/// Between two repetitions (chosen: a burst of the published trace).
const MILLIS_BETWEEN: u64 = 3_000;

impl Generator for Mooncake {
    type Request = KvRequest;
    type Reply = KvReply;

    fn next(&mut self, tag: Tag, buffers: &mut Buffers) -> Option<KvRequest> {
        while self.due.is_empty() {
            if self.is_over() {
                return None;
            }
            self.begin();
        }
        let is_free = self.due.front().is_some_and(|due| self.busy.may(due.block(), due.changes()));
        let due = self.due.pop_front_if(|_| is_free)?;
        self.busy.begin(tag, due.block(), due.changes());
        let op = self.request(due, tag, buffers);
        Some(KvRequest { tag, op })
    }

    fn arrival(&self) -> Option<Nanos> {
        if !self.options.is_timed() {
            return None;
        }
        Some(if self.due.is_empty() { self.upcoming().2 } else { self.arrived })
    }

    fn on_reply(&mut self, request: &KvRequest, reply: &KvReply, buffers: &mut Buffers) {
        self.busy.end(request.tag);
        self.wrong = None;
        match request.op {
            KvOp::Retrieve { into: Content::Piece(piece), .. } => {
                self.wrong = self.judge(request.tag, piece, reply, buffers);
                buffers.give_back(piece.buffer);
            }
            KvOp::Store { content: Content::Piece(piece), .. } => buffers.give_back(piece.buffer),
            _ => {}
        }
    }

    fn tag(request: &KvRequest) -> Tag {
        request.tag
    }

    fn reply_tag(reply: &KvReply) -> Tag {
        reply.tag
    }

    fn answered(&self, request: &KvRequest, reply: &KvReply) -> Answered {
        let (name, bytes) = match (request.op, reply.answer) {
            (KvOp::Store { content, .. }, _) => ("store", u64::from(content.bytes())),
            (KvOp::Retrieve { .. }, KvAnswer::Value { bytes }) => ("retrieve", u64::from(bytes)),
            (KvOp::Retrieve { .. }, _) => ("retrieve", 0),
            (KvOp::Delete { .. }, _) => ("delete", 0),
            _ => ("other", 0),
        };
        let refusal = reply.refusal.as_ref().map(|refusal: &KvRefusal| refusal as &dyn std::fmt::Display);
        let outcome = match &self.wrong {
            Some(sentence) => Outcome::Failed(sentence.clone()),
            None => Outcome::of(reply.status, refusal),
        };
        Answered { name, bytes, is_stored: name == "store", outcome }
    }

    fn shutdown(tag: Tag) -> KvRequest {
        KvRequest { tag, op: KvOp::Shutdown }
    }

    /// Blocks fill the store until the first is deleted.
    fn phase(&self) -> &'static str {
        if self.stats.evicted == 0 { "fill" } else { "run" }
    }

    fn operations_begun(&self) -> u64 {
        self.begun
    }

    fn operation_count_max(&self) -> u64 {
        // Of repetitions nobody knows how many there will be: as many as it looks now.
        match self.options.store_bytes {
            0 => self.count(),
            bytes if self.stored_bytes == 0 => bytes,
            bytes => {
                let all = u128::from(self.begun) * u128::from(bytes) / u128::from(self.stored_bytes);
                u64::try_from(all).unwrap_or(u64::MAX).max(self.begun)
            }
        }
    }

    fn is_finished(&self) -> bool {
        self.is_over() && self.due.is_empty() && self.busy.is_empty()
    }
}

#[cfg(test)]
mod tests;
