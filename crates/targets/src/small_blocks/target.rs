//! The target: what it holds, and how requests and replies move through it.
//!
//! Deliberately not here: what becomes of a request (`request`) and of an inner reply (`parts`).

use super::order::Order;
use super::parts::SubBlockPart;
use super::request::SubBlockRequest;
use super::stages::{COPIES, EDGES, Stages};
use super::stats::SmallBlocksStats;
use ocssd_base::{Nanos, Ring, Slab, SlabKey, usize_of};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Counter, Zones};
use ocssd_lightnvm::{Admission, Buffers, Completion, Out, Payload, PayloadFormat, Status, Target};

/// Requests at once: the queue depth of 1024 deep jobs have (chosen).
pub const REQUESTS_MAX: u32 = 1024;
/// Requests to the inner target at once: one straight one per request, and what the stages hold.
const PARTS_MAX: u32 = REQUESTS_MAX + EDGES + COPIES;
/// Smallest block: what the block layer of Linux, and NVMe's smallest LBA format, have.
const BLOCK_BYTES_MIN: u32 = 512;

/// How far a shutdown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shutdown {
    /// Nobody asked.
    No,
    /// It waits until everything else is over.
    Waits(SlabKey),
    /// The inner target has it, or is done with it.
    Passed,
}

/// Blocks smaller than a sector above a target of sectors; see the module.
pub struct SmallBlocks {
    pub(super) inner: Box<dyn BlockTarget>,
    /// What the inner target gave.
    inner_out: Out<BlockReply>,
    pub(super) block_bytes: u32,
    /// Blocks of a sector.
    pub(super) per_sector: u32,
    pub(super) requests: Slab<SubBlockRequest>,
    pub(super) parts: Slab<SubBlockPart>,
    /// What the inner target is to be offered, in order. Their tags are keys of `parts`.
    pub(super) to_device: Ring<BlockRequest>,
    pub(super) order: Order,
    /// Changes whose turn it is.
    pub(super) turns: Ring<SlabKey>,
    /// Merges that wait for buffers.
    pub(super) merges: Ring<SlabKey>,
    /// Requests with sectors to copy.
    pub(super) copies: Ring<SlabKey>,
    pub(super) stages: Stages,
    pub(super) shutdown: Shutdown,
    /// The inner target refused the next one, and has answered nothing since.
    is_blocked: bool,
    pub(super) replies: Ring<BlockReply>,
    pub(super) stats: SmallBlocksStats,
    /// A bug planted on purpose.
    #[cfg(feature = "canaries")]
    pub(super) canary: Option<super::canary::Canary>,
}

impl SmallBlocks {
    /// Blocks of `block_bytes` above `inner`; its buffers are taken from the pool.
    ///
    /// # Errors
    /// A sentence, if `block_bytes` is no power of two from 512 up to half a block of `inner`, `inner` has zones, or
    /// payload is stamps.
    pub fn new(inner: Box<dyn BlockTarget>, block_bytes: u32, buffers: &mut Buffers) -> Result<Self, String> {
        let sector_bytes = inner.block_bytes();
        assert_eq!(
            buffers.format().sector_bytes,
            usize_of(sector_bytes),
            "blocks of the inner target are sectors"
        );
        Self::fits(block_bytes, &buffers.format())?;
        if inner.zones().is_some() {
            return Err(
                "block_bytes is for targets that can be overwritten, but this one has zones".to_owned()
            );
        }
        assert_eq!(inner.write_unit(), 1, "a target that writes single sectors");
        let places = usize_of(REQUESTS_MAX);
        Ok(Self {
            per_sector: sector_bytes / block_bytes,
            block_bytes,
            requests: Slab::new(REQUESTS_MAX),
            parts: Slab::new(PARTS_MAX),
            to_device: Ring::new(usize_of(PARTS_MAX)),
            order: Order::new(places),
            turns: Ring::new(places),
            merges: Ring::new(places),
            copies: Ring::new(places),
            stages: Stages::take(buffers),
            shutdown: Shutdown::No,
            is_blocked: false,
            replies: Ring::new(places),
            stats: SmallBlocksStats::default(),
            #[cfg(feature = "canaries")]
            canary: None,
            inner,
            inner_out: Out::below(),
        })
    }

    /// Whether there can be blocks of `block_bytes` above sectors of a format: what [`Self::new`] asks before anything
    /// is made.
    ///
    /// # Errors
    /// A sentence, as of [`Self::new`].
    pub fn fits(block_bytes: u32, format: &PayloadFormat) -> Result<(), String> {
        let (small, sector) = (usize_of(block_bytes), format.sector_bytes);
        let divides = block_bytes.is_power_of_two() && sector.is_multiple_of(small);
        if !divides || block_bytes < BLOCK_BYTES_MIN || small == sector {
            return Err(format!(
                "block_bytes must be a power of two from {BLOCK_BYTES_MIN} that divides the {sector} bytes of a sector \
                 and is smaller, but is {block_bytes}"
            ));
        }
        if format.payload == Payload::Stamp {
            return Err(format!(
                "block_bytes={block_bytes} needs real bytes, because a stamp stands for a whole sector of {sector} \
                 bytes: run with --set payload=bytes, or leave block_bytes out"
            ));
        }
        Ok(())
    }

    /// What it counted.
    #[must_use]
    pub const fn stats(&self) -> &SmallBlocksStats {
        &self.stats
    }

    /// The target within.
    #[must_use]
    pub fn inner(&self) -> &dyn BlockTarget {
        self.inner.as_ref()
    }

    /// Does everything that can be done now; true if there was anything.
    fn pump(&mut self, now: Nanos, out: &mut Out<BlockReply>) -> bool {
        let mut any = false;
        loop {
            let mut moved = self.take_inner_replies(&mut out.buffers);
            while let Some(key) = self.turns.pop() {
                self.begin_change(key);
                moved = true;
            }
            moved |= self.read_edges();
            moved |= self.copy_on(&mut out.buffers);
            self.shut_down();
            moved |= self.offer(now, out);
            any |= moved;
            if !moved {
                return any;
            }
        }
    }

    /// Takes what the inner target replied; true if there was anything.
    fn take_inner_replies(&mut self, buffers: &mut Buffers) -> bool {
        let mut replies = std::mem::take(self.inner_out.replies_mut().0);
        let any = !replies.is_empty();
        for reply in replies.drain(..) {
            self.is_blocked = false;
            self.part_done(reply, buffers);
        }
        *self.inner_out.replies_mut().0 = replies;
        any
    }

    /// Lets the inner target go on, by one command if there is room for it; true if there was one.
    fn advance_inner(&mut self, now: Nanos, out: &mut Out<BlockReply>) -> bool {
        let inner = &mut self.inner;
        let room = usize::from(out.has_room());
        out.lend(&mut self.inner_out, room, |below| inner.advance(now, below));
        let command = self.inner_out.commands_mut().0.pop();
        command.map(|command| out.command(command)).is_some()
    }

    /// Gives the replies that wait.
    fn give_replies(&mut self, out: &mut Out<BlockReply>) {
        while let Some(reply) = self.replies.pop() {
            out.reply(reply);
        }
    }

    /// Offers what is ready, until the inner target refuses; true if it took any.
    fn offer(&mut self, now: Nanos, out: &mut Out<BlockReply>) -> bool {
        let mut any = false;
        while !self.is_blocked
            && let Some(request) = self.to_device.front()
        {
            let inner = &mut self.inner;
            let admission = out.lend(&mut self.inner_out, 0, |below| inner.submit(now, request, below));
            if !admission.is_taken() {
                self.is_blocked = true;
                break;
            }
            self.to_device.pop();
            any = true;
        }
        any
    }

    /// Passes a shutdown on once it is the only request left: the inner target takes nothing after it.
    fn shut_down(&mut self) {
        let Shutdown::Waits(key) = self.shutdown else { return };
        if self.requests.len() == 1 {
            assert!(self.parts.is_empty() && self.to_device.is_empty(), "parts of no request");
            self.shutdown = Shutdown::Passed;
            self.pass_on(key, BlockOp::Shutdown);
        }
    }
}

impl Target for SmallBlocks {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, _now: Nanos, request: &BlockRequest, _out: &mut Out<BlockReply>) -> Admission {
        if self.requests.is_full() || self.replies.len() + self.requests.len() >= self.replies.capacity() {
            return Admission::Full;
        }
        if let Some(status) = self.refusal(request) {
            self.reply(request.tag, status, None);
        } else {
            self.take_request(*request);
        }
        Admission::Taken
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<BlockReply>) {
        let inner = &mut self.inner;
        out.lend(&mut self.inner_out, 0, |below| inner.on_completion(now, completion, below));
        self.is_blocked = false;
        self.pump(now, out);
        self.give_replies(out);
    }

    fn on_deadline(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        if self.inner.deadline().is_some_and(|at| at <= now) {
            let inner = &mut self.inner;
            out.lend(&mut self.inner_out, 0, |below| inner.on_deadline(now, below));
            self.is_blocked = false;
        }
    }

    fn deadline(&self) -> Option<Nanos> {
        self.inner.deadline()
    }

    fn has_deadlines(&self) -> bool {
        self.inner.has_deadlines()
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        loop {
            self.pump(now, out);
            if !self.advance_inner(now, out) && !self.pump(now, out) {
                break;
            }
        }
        self.give_replies(out);
    }

    fn check(&self) {
        self.order.check();
        self.check_parts();
        let taken = self.replies.len() + self.requests.len();
        assert!(taken <= self.replies.capacity(), "room for every reply");
        assert!(self.to_device.len() <= self.parts.len(), "more is offered than there are parts");
        self.inner.check();
    }

    fn counters(&self) -> Vec<Counter> {
        let mut counters = self.inner.counters();
        counters.extend(self.stats.counters());
        counters
    }
}

impl BlockTarget for SmallBlocks {
    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn block_count(&self) -> u64 {
        self.inner.block_count() * u64::from(self.per_sector)
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

    fn is_mapped(&self, block: u64) -> Option<bool> {
        self.inner.is_mapped(block / u64::from(self.per_sector))
    }

    fn zone_written(&self, zone: u64) -> u64 {
        unreachable!("zone {zone} of a target without zones")
    }
}

impl SmallBlocks {
    /// What is wrong with a request before any of it is tried; as the inner target would say it of sectors.
    fn refusal(&self, request: &BlockRequest) -> Option<Status> {
        if self.shutdown != Shutdown::No {
            return Some(Status::NAMESPACE_NOT_READY);
        }
        let end = request.block.checked_add(u64::from(request.count));
        let needs_buffer = matches!(request.op, BlockOp::Read | BlockOp::Write { .. });
        match request.op {
            BlockOp::Flush | BlockOp::Shutdown => None,
            BlockOp::ResetZone => Some(Status::INVALID_OPCODE),
            _ if request.count == 0 || needs_buffer && request.buffer.is_none() => {
                Some(Status::INVALID_FIELD)
            }
            _ if end.is_none_or(|end| end > self.block_count()) => Some(Status::LBA_OUT_OF_RANGE),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::Null;
    use ocssd_lightnvm::Tag;

    #[test]
    fn no_request_is_taken_that_has_no_place_for_its_reply() {
        let format =
            PayloadFormat { payload: Payload::Bytes, data_bytes: 4096, sector_bytes: 4096, oob_bytes: 16 };
        let mut buffers = Buffers::new(format);
        let mut small = SmallBlocks::new(Box::new(Null::default()), 512, &mut buffers).expect("it fits");
        let mut out = Out::new(buffers, 4);
        let block = small.block_count();
        // It is answered as soon as it is given: nothing of it is under way when the next one comes.
        let beyond =
            |tag| BlockRequest { tag: Tag(tag), op: BlockOp::Discard, block, count: 1, buffer: None };
        for tag in 0..REQUESTS_MAX {
            assert!(small.submit(Nanos::ZERO, &beyond(tag), &mut out).is_taken(), "request {tag}");
        }
        assert_eq!(small.submit(Nanos::ZERO, &beyond(REQUESTS_MAX), &mut out), Admission::Full);
        small.check();
        small.advance(Nanos::ZERO, &mut out);
        assert_eq!(out.reply_count(), usize_of(REQUESTS_MAX));
        assert!(
            small.submit(Nanos::ZERO, &beyond(REQUESTS_MAX), &mut out).is_taken(),
            "replies were fetched"
        );
    }
}
