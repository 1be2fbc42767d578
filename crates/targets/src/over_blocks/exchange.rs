//! Commands on extents become block requests, and their replies completions.
//!
//! A write is one write, a read one read; a reset is a discard, and a flush that makes it durable: if discarded blocks came back
//! after the extent was written again, what was written there could not be told from what was there before. A write with FUA
//! speaks of what was written before it: it waits for a flush, if anything that was written without FUA ended since the last.
//! Deliberately not here: when the block target takes a request (`target`, `below`).

use super::canary::Canary;
use super::extents::Extents;
use super::options::BlockOptions;
use crate::flight::COMMANDS_MAX;
use ocssd_base::{Slab, SlabKey};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{Command, Completion, Op, Status, Tag};
use std::collections::VecDeque;

/// How far a command is.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Its only request was made, or its last.
    Only,
    /// A write without FUA was made.
    Cached,
    /// The first so many writes without FUA are made durable, and then this one is made.
    FlushBefore { cached: u64, write: BlockRequest },
    /// Blocks are discarded.
    Discard,
    /// The discard is made durable.
    Flush,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    /// The command.
    tag: Tag,
    step: Step,
}

/// Commands under way, and the requests that wait for the block target.
#[derive(Clone, Debug)]
pub struct Exchange {
    pending: Slab<Pending>,
    requests: VecDeque<BlockRequest>,
    /// Requests the block target took.
    taken: u64,
    /// Writes without FUA that ended.
    cached: u64,
    /// As many of them are durable.
    durable: u64,
    forgets_fua: bool,
    discards_too_much: bool,
}

impl Exchange {
    pub fn new(options: &BlockOptions) -> Self {
        Self {
            pending: Slab::new(COMMANDS_MAX),
            requests: VecDeque::new(),
            taken: 0,
            cached: 0,
            durable: 0,
            forgets_fua: options.has_canary(Canary::FuaForgotten),
            discards_too_much: options.has_canary(Canary::DiscardTooLong),
        }
    }

    /// Takes a command.
    pub fn begin(&mut self, command: &Command, extents: &Extents) {
        assert_eq!(command.buffer_first, 0, "a block request uses a buffer from its start");
        let (extent, block, count) = extents.blocks_of(&command.addresses);
        let (op, (block, count), step) = match command.op {
            Op::Read => (BlockOp::Read, (block, count), Step::Only),
            Op::Write { fua: true } => {
                (BlockOp::Write { fua: !self.forgets_fua }, (block, count), Step::Only)
            }
            Op::Write { fua: false } => (BlockOp::Write { fua: false }, (block, count), Step::Cached),
            Op::Reset => (BlockOp::Discard, self.discarded(extent, extents), Step::Discard),
            Op::Copy | Op::Flush => unreachable!("nothing on extents copies or flushes: {command:?}"),
        };
        let buffer = command.buffer.filter(|_| op != BlockOp::Discard);
        assert!(buffer.is_some() || op == BlockOp::Discard, "{command:?} has no buffer");
        let key = self.pending.insert(Pending { tag: command.tag, step });
        let key = key.unwrap_or_else(|_| unreachable!("there are as many places as a target has commands"));
        let tag = Tag(key.0);
        let request = BlockRequest { tag, op, block, count, buffer };
        let is_behind = matches!(command.op, Op::Write { fua: true }) && self.cached > self.durable;
        assert!(self.durable <= self.cached, "{} of {} writes are durable", self.durable, self.cached);
        if is_behind {
            self.pending.get_mut(key).step = Step::FlushBefore { cached: self.cached, write: request };
            self.requests.push_back(flush(tag));
        } else {
            self.requests.push_back(request);
        }
    }

    /// The first block and the blocks of a discard of an extent.
    fn discarded(&self, extent: ocssd_lightnvm::ChunkId, extents: &Extents) -> (u64, u32) {
        let (first, all) = extents.whole(extent);
        let is_too_long = self.discards_too_much && extent.0 + 1 < extents.count();
        (first, if is_too_long { all + extents.geometry().ws_opt } else { all })
    }

    /// The next request for the block target.
    pub fn front(&self) -> Option<&BlockRequest> {
        self.requests.front()
    }

    /// The block target took it.
    pub fn taken(&mut self) {
        self.requests.pop_front().expect("a request was taken, so there was one");
        self.taken += 1;
    }

    /// Requests the block target took since the mount.
    pub const fn requests_taken(&self) -> u64 {
        self.taken
    }

    /// The block target answered: the completion of a command, unless there is more to do for it.
    pub fn ended(&mut self, reply: &BlockReply) -> Option<Completion> {
        let key = SlabKey(reply.tag.0);
        let pending = self.pending.get_mut(key);
        match pending.step {
            Step::Discard if reply.status.is_success() => {
                pending.step = Step::Flush;
                self.requests.push_back(flush(reply.tag));
                return None;
            }
            Step::FlushBefore { cached, write } if reply.status.is_success() => {
                assert!(cached <= self.cached, "a flush covers {cached} writes of {}", self.cached);
                pending.step = Step::Only;
                self.durable = self.durable.max(cached);
                self.requests.push_back(write);
                return None;
            }
            Step::Cached => self.cached += 1,
            Step::Only | Step::Discard | Step::FlushBefore { .. } | Step::Flush => {}
        }
        let Pending { tag, step } = self.pending.remove(key);
        let status = as_of_a_drive(reply.status, step);
        let failed = if status.has_data() { 0 } else { u64::MAX };
        Some(Completion { tag, status, failed, violation: reply.violation })
    }

    /// Commands that are not over.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Asserts that no request waits for a command that is over.
    pub fn check(&self) {
        assert!(self.requests.len() <= self.pending.len(), "more requests wait than commands are under way");
        assert!(self.cached <= self.taken, "{} writes ended, of {} requests", self.cached, self.taken);
        assert!(self.durable <= self.cached, "{} of {} writes are durable", self.durable, self.cached);
    }
}

const fn flush(tag: Tag) -> BlockRequest {
    BlockRequest { tag, op: BlockOp::Flush, block: 0, count: 0, buffer: None }
}

/// What the target above is told. A block target that takes no more changes has no better place for what it refused: as a drive
/// that is full, it ends changes at once, and no extent is to blame.
fn as_of_a_drive(status: Status, step: Step) -> Status {
    let is_over = status == Status::WRITE_TO_READ_ONLY;
    let is_transfer = matches!(step, Step::Only | Step::Cached);
    if is_over || !is_transfer && !status.is_success() { Status::CAPACITY_EXCEEDED } else { status }
}

#[cfg(test)]
mod tests {
    use super::super::above::Cut;
    use super::*;
    use ocssd_lightnvm::{Addresses, BufId, ChunkId, Geometry, PlaneMode, Ppa};

    fn parts() -> (Exchange, Extents) {
        let cut = Cut { extents: 512, units_min: 4, writes_blocks: false, names_content: false };
        let extents = Extents::new(&Geometry::example(1, 4, 100, 48, 4), 1000, None, cut).expect("it fits");
        (Exchange::new(&BlockOptions::default()), extents)
    }

    fn command(tag: u32, op: Op) -> Command {
        let addresses = Addresses::Run { first: Ppa::new(ChunkId(1), 4), count: 4 };
        let buffer = (op != Op::Reset).then_some(BufId(3));
        Command {
            tag: Tag(tag),
            op,
            addresses,
            buffer,
            buffer_first: 0,
            oob: false,
            plane_mode: PlaneMode::Single,
        }
    }

    fn next(exchange: &mut Exchange) -> BlockRequest {
        let request = *exchange.front().expect("a request waits");
        exchange.taken();
        request
    }

    fn reply(request: &BlockRequest, status: Status) -> BlockReply {
        BlockReply { tag: request.tag, status, violation: None }
    }

    #[test]
    fn a_write_is_durable_and_a_reset_is_a_discard_that_was_flushed() {
        let (mut exchange, extents) = parts();
        exchange.begin(&command(7, Op::Write { fua: true }), &extents);
        let write = next(&mut exchange);
        assert_eq!((write.op, write.block, write.count), (BlockOp::Write { fua: true }, 20, 4));
        assert_eq!(exchange.ended(&reply(&write, Status::SUCCESS)), Some(Completion::success(Tag(7))));
        exchange.begin(&command(8, Op::Reset), &extents);
        let discard = next(&mut exchange);
        assert_eq!((discard.op, discard.block, discard.count), (BlockOp::Discard, 16, 16));
        assert_eq!(exchange.ended(&reply(&discard, Status::SUCCESS)), None, "it is not durable yet");
        let flush = next(&mut exchange);
        assert_eq!((flush.op, exchange.len()), (BlockOp::Flush, 1));
        assert_eq!(exchange.ended(&reply(&flush, Status::SUCCESS)), Some(Completion::success(Tag(8))));
        exchange.check();
    }

    #[test]
    fn what_no_extent_is_to_blame_for_ends_changes() {
        for (op, status, told) in [
            (Op::Write { fua: true }, Status::WRITE_TO_READ_ONLY, Status::CAPACITY_EXCEEDED),
            (Op::Reset, Status::WRITE_TO_READ_ONLY, Status::CAPACITY_EXCEEDED),
            (Op::Read, Status::UNRECOVERED_READ, Status::UNRECOVERED_READ),
        ] {
            let (mut exchange, extents) = parts();
            exchange.begin(&command(1, op), &extents);
            let request = next(&mut exchange);
            let end = exchange.ended(&reply(&request, status)).expect("it is over");
            assert_eq!((end.status, end.failed), (told, u64::MAX), "{op:?}");
        }
    }

    #[test]
    fn a_write_with_fua_waits_for_a_flush_of_what_was_cached_before_it_and_for_no_other() {
        let (mut exchange, extents) = parts();
        exchange.begin(&command(1, Op::Write { fua: false }), &extents);
        let cached = next(&mut exchange);
        assert_eq!(cached.op, BlockOp::Write { fua: false });
        exchange.begin(&command(2, Op::Write { fua: true }), &extents);
        let early = next(&mut exchange);
        assert_eq!(early.op, BlockOp::Write { fua: true }, "what is not there yet is not spoken of");
        assert!(exchange.ended(&reply(&cached, Status::SUCCESS)).is_some());
        exchange.begin(&command(3, Op::Write { fua: true }), &extents);
        exchange.begin(&command(4, Op::Write { fua: true }), &extents);
        let (first, second) = (next(&mut exchange), next(&mut exchange));
        assert_eq!((first.op, second.op), (BlockOp::Flush, BlockOp::Flush), "neither has ended");
        assert_eq!(exchange.ended(&reply(&first, Status::SUCCESS)), None);
        assert_eq!(next(&mut exchange).op, BlockOp::Write { fua: true });
        exchange.begin(&command(5, Op::Write { fua: true }), &extents);
        assert_eq!(next(&mut exchange).op, BlockOp::Write { fua: true }, "it is durable already");
        let end = exchange.ended(&reply(&second, Status::INTERNAL_ERROR)).expect("it is over");
        assert_eq!((end.tag, end.status), (Tag(4), Status::CAPACITY_EXCEEDED));
        exchange.check();
    }
}
