//! A plain block device in memory that remembers what it was asked: no zones, no rules, any write anywhere.
//!
//! Content is settled in the order requests come; a request ends after the time a server needs for it. It can be told
//! to fail a request, or to lie about a block.

use ocssd_base::{EventQueue, Nanos};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Zones};
use ocssd_lightnvm::{Admission, Buffers, Completion, Out, Status, Target};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// A request, when it came, and how many were in flight with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub at: Nanos,
    pub op: BlockOp,
    pub block: u64,
    pub count: u32,
    pub depth: u32,
}

/// What the device is, does wrong, holds and saw.
#[derive(Debug, Default)]
pub struct State {
    pub seen: Vec<Seen>,
    pub content: BTreeMap<u64, Vec<u8>>,
    /// Reads of this block come back with a bit flipped.
    pub lie: Option<u64>,
    /// Requests that fail, by their place in `seen`.
    pub fail: Vec<usize>,
    in_flight: u32,
}

/// The device's shape and speed.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub blocks: u64,
    /// How long one request takes one server.
    pub service: Nanos,
    /// How many requests are served at once.
    pub servers: usize,
}

pub struct Memory {
    shape: Shape,
    state: Rc<RefCell<State>>,
    waiting: VecDeque<(BlockRequest, Status)>,
    busy_until: Vec<Nanos>,
    due: EventQueue<BlockReply>,
    replies: VecDeque<BlockReply>,
}

impl Memory {
    pub fn new(shape: Shape, state: Rc<RefCell<State>>) -> Self {
        let busy_until = vec![Nanos::ZERO; shape.servers];
        let due = EventQueue::with_capacity(64);
        Self { shape, state, waiting: VecDeque::new(), busy_until, due, replies: VecDeque::new() }
    }

    fn transfer(&self, request: &BlockRequest, buffers: &mut Buffers) {
        let mut state = self.state.borrow_mut();
        for (place, block) in (0..request.count).zip(request.block..) {
            match (request.op, request.buffer) {
                (BlockOp::Read, Some(buffer)) => {
                    let data = buffers.data_mut(buffer, place, 1);
                    match state.content.get(&block) {
                        Some(content) => data.copy_from_slice(content),
                        None => data.fill(0),
                    }
                    if state.lie == Some(block) {
                        data[0] ^= 1;
                    }
                }
                (BlockOp::Write { .. }, Some(buffer)) => {
                    state.content.insert(block, buffers.data(buffer, place, 1).to_vec());
                }
                (BlockOp::Discard, None) => {
                    state.content.remove(&block);
                }
                (op, buffer) => panic!("{op:?} with buffer {buffer:?}"),
            }
        }
    }
}

impl Target for Memory {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, now: Nanos, request: &BlockRequest, _out: &mut Out<BlockReply>) -> Admission {
        let request = *request;
        let mut state = self.state.borrow_mut();
        let end = request.block + u64::from(request.count);
        assert!(end <= self.shape.blocks, "blocks {}..{end} of {}", request.block, self.shape.blocks);
        state.in_flight += 1;
        let failed = state.fail.contains(&state.seen.len());
        let status = if failed { Status::UNRECOVERED_READ } else { Status::SUCCESS };
        let BlockRequest { op, block, count, .. } = request;
        let seen = Seen { at: now, op, block, count, depth: state.in_flight };
        state.seen.push(seen);
        self.waiting.push_back((request, status));
        Admission::Taken
    }

    fn on_completion(&mut self, _now: Nanos, completion: Completion, _out: &mut Out<BlockReply>) {
        unreachable!("no command was given, but {} completed", completion.tag.0);
    }

    fn on_deadline(&mut self, now: Nanos, _out: &mut Out<BlockReply>) {
        while let Some((_, reply)) = self.due.pop_due(now) {
            self.state.borrow_mut().in_flight -= 1;
            self.replies.push_back(reply);
        }
    }

    fn deadline(&self) -> Option<Nanos> {
        self.due.deadline()
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        while let Some((request, status)) = self.waiting.pop_front() {
            if status.is_success() && request.op != BlockOp::Flush {
                self.transfer(&request, &mut out.buffers);
            }
            let server = self.busy_until.iter_mut().min().expect("at least one server");
            *server = now.max(*server) + self.shape.service;
            self.due.push(*server, BlockReply { tag: request.tag, status, violation: None });
        }
        self.replies.drain(..).for_each(|reply| out.reply(reply));
    }

    fn check(&self) {}
}

impl BlockTarget for Memory {
    fn block_bytes(&self) -> u32 {
        4096
    }

    fn block_count(&self) -> u64 {
        self.shape.blocks
    }

    fn zones(&self) -> Option<Zones> {
        None
    }

    fn write_unit(&self) -> u32 {
        1
    }

    fn unreadable_tail(&self) -> u64 {
        0
    }

    fn zone_written(&self, zone: u64) -> u64 {
        unreachable!("zone {zone} of a device without zones")
    }
}
