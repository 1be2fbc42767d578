//! Commands on extents become block requests, and their replies completions.
//!
//! A write is one write with FUA, a read one read; a reset is a discard, and a flush that makes it durable: if discarded blocks
//! came back after the extent was written again, what was written there could not be told from what was there before.
//! Deliberately not here: when the block target takes a request (`target`, `below`).

use super::canary::Canary;
use super::extents::Extents;
use super::options::Options;
use crate::flight::COMMANDS_MAX;
use ocssd_base::{Slab, SlabKey};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{Command, Completion, Op, Status, Tag};
use std::collections::VecDeque;

/// How far a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Its only request was made.
    Only,
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
    forgets_fua: bool,
    discards_too_much: bool,
}

impl Exchange {
    pub fn new(options: &Options) -> Self {
        Self {
            pending: Slab::new(COMMANDS_MAX),
            requests: VecDeque::new(),
            forgets_fua: options.has_canary(Canary::FuaForgotten),
            discards_too_much: options.has_canary(Canary::DiscardTooLong),
        }
    }

    /// Takes a command of `kv`.
    pub fn begin(&mut self, command: &Command, extents: &Extents) {
        assert_eq!(command.buffer_first, 0, "kv uses its buffers from their starts");
        let (extent, block, count) = extents.blocks_of(&command.addresses);
        let (op, block, count, step) = match command.op {
            Op::Read => (BlockOp::Read, block, count, Step::Only),
            Op::Write { .. } => (BlockOp::Write { fua: !self.forgets_fua }, block, count, Step::Only),
            Op::Reset => {
                let (first, all) = extents.whole(extent);
                let too_many = if self.discards_too_much && extent.0 + 1 < extents.count() {
                    extents.geometry().ws_opt
                } else {
                    0
                };
                (BlockOp::Discard, first, all + too_many, Step::Discard)
            }
            Op::Copy | Op::Flush => unreachable!("kv neither copies nor flushes by commands: {command:?}"),
        };
        let buffer = command.buffer.filter(|_| step == Step::Only);
        assert!(buffer.is_some() || step == Step::Discard, "{command:?} has no buffer");
        let key = self.pending.insert(Pending { tag: command.tag, step });
        let key = key.unwrap_or_else(|_| unreachable!("there are as many places as kv has commands"));
        self.requests.push_back(BlockRequest { tag: Tag(key.0), op, block, count, buffer });
    }

    /// The next request for the block target.
    pub fn front(&self) -> Option<&BlockRequest> {
        self.requests.front()
    }

    /// The block target took it.
    pub fn taken(&mut self) {
        self.requests.pop_front().expect("a request was taken, so there was one");
    }

    /// The block target answered: the completion of a command, unless there is more to do for it.
    pub fn ended(&mut self, reply: &BlockReply) -> Option<Completion> {
        let key = SlabKey(reply.tag.0);
        let pending = self.pending.get_mut(key);
        if pending.step == Step::Discard && reply.status.is_success() {
            pending.step = Step::Flush;
            let flush = BlockRequest { tag: reply.tag, op: BlockOp::Flush, block: 0, count: 0, buffer: None };
            self.requests.push_back(flush);
            return None;
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
    }
}

/// What `kv` is told. A block target that takes no more changes has no better place for what it refused: as a drive that is
/// full, it ends changes at once, and no extent is to blame.
fn as_of_a_drive(status: Status, step: Step) -> Status {
    let is_over = status == Status::WRITE_TO_READ_ONLY;
    if is_over || step != Step::Only && !status.is_success() { Status::CAPACITY_EXCEEDED } else { status }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Addresses, BufId, ChunkId, Geometry, PlaneMode, Ppa};

    fn parts() -> (Exchange, Extents) {
        let extents = Extents::new(&Geometry::example(1, 4, 100, 48, 4), 1000, None).expect("it fits");
        (Exchange::new(&Options::default()), extents)
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
}
