//! Who asks: threads of a workload.

use super::WRITE;
use ocssd_base::{Nanos, Prng};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{BufId, Buffers, Source, Tag, TargetId};
use std::collections::VecDeque;

/// Threads that each have one request in flight, always; or requests with times of their own.
pub struct Threads {
    pub op: BlockOp,
    pub count: u32,
    pub mixed: Option<Prng>,
    pub idle: VecDeque<u32>,
    pub refused: VecDeque<BlockRequest>,
    pub next_block: u64,
    /// Blocks come round after so many.
    pub span: u64,
    /// One for each thread, if the target looks at them.
    pub buffers: Vec<BufId>,
    pub replies: Vec<(Nanos, Tag)>,
    /// Where requests go; else one follows the other.
    pub anywhere: Option<Prng>,
    /// As many ask again when they are answered, those with the least tags.
    pub stay: u32,
}

impl Threads {
    pub fn new(threads: u32, op: BlockOp, count: u32) -> Self {
        let (idle, refused, replies) = ((0..threads).collect(), VecDeque::new(), Vec::new());
        let (next_block, span, buffers) = (0, u64::MAX, Vec::new());
        Self {
            op,
            count,
            mixed: None,
            idle,
            refused,
            next_block,
            span,
            buffers,
            replies,
            anywhere: None,
            stay: u32::MAX,
        }
    }
}

impl Source for Threads {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        if let Some(request) = self.refused.pop_front() {
            return Some((TargetId(0), request));
        }
        let tag = Tag(self.idle.pop_front()?);
        let (mut op, mut count) = (self.op, self.count);
        if let Some(prng) = &mut self.mixed {
            let draw = prng.below(10);
            op = if draw < 5 {
                BlockOp::Read
            } else if draw < 9 {
                WRITE
            } else {
                BlockOp::Flush
            };
            count = if op == BlockOp::Flush { 0 } else { 1 + u32::try_from(prng.below(8)).expect("below 8") };
        }
        let block = if self.next_block + u64::from(count) <= self.span { self.next_block } else { 0 };
        self.next_block = block + u64::from(count);
        let anywhere = self.anywhere.as_mut().map(|prng| prng.below(self.span - u64::from(count) + 1));
        let block = anywhere.unwrap_or(block);
        let buffer = self.buffers.get(usize::try_from(tag.0).expect("small")).copied();
        Some((TargetId(0), BlockRequest { tag, op, block, count, buffer }))
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, request: BlockRequest) {
        self.refused.push_front(request);
    }

    fn on_reply(&mut self, now: Nanos, _target: TargetId, reply: BlockReply, _buffers: &mut Buffers) {
        assert!(reply.status.is_success());
        self.replies.push((now, reply.tag));
        if reply.tag.0 < self.stay {
            self.idle.push_back(reply.tag.0);
        }
    }

    fn is_finished(&self) -> bool {
        false
    }
}
