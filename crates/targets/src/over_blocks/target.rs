//! What the host sees: one target above, the block target below, and what goes between them.
//!
//! Deliberately not here: what becomes of a command on the way (`exchange`).

use super::above::Above;
use super::below::Below;
use super::exchange::Exchange;
use super::extents::Extents;
use super::options::BlockOptions;
use super::{over, survey};
use crate::registry::{BlocksMade, TargetSpec};
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::counter::{Counter, CounterValue};
use ocssd_lightnvm::{Admission, BlockingDevice, Completion, Out, Status, Tag, Target};

/// Commands taken from above at once (chosen: as many as a batch of the largest transaction of `kv` has).
const COMMANDS_AT_ONCE: usize = 64;
/// The tag of the block target's shutdown: no command has it, for those are counted from 0.
const SHUTDOWN: Tag = Tag(u32::MAX);

/// How far a shutdown is.
#[derive(Clone, Copy, Debug)]
enum Shutdown {
    /// Nobody asked.
    No,
    /// The target above is about to end, for the request of this tag.
    Above(Tag),
    /// It ended like this, and the block target is to be offered its own end.
    Due(Tag, Status),
    /// The block target has it.
    OfBlocks(Tag, Status),
}

/// A target on extents of a block device.
pub struct OverBlocks<A: Above> {
    above: A,
    above_out: Out<A::Reply>,
    below: Box<dyn BlockTarget + Send>,
    block_out: Out<BlockReply>,
    extents: Extents,
    exchange: Exchange,
    shutdown: Shutdown,
    /// The block target refused the next request, and has answered nothing since.
    is_blocked: bool,
}

impl<A: Above> OverBlocks<A> {
    /// Makes an instance and the block target below it, or mounts both.
    ///
    /// # Errors
    /// A sentence, if the units cannot carry them, they cannot be read, the drive fails or the power goes.
    pub fn mount(
        device: &mut dyn BlockingDevice,
        spec: &TargetSpec<'_>,
        blocks: &BlockOptions,
        options: &A::Options,
    ) -> Result<(Self, Vec<String>), String> {
        let BlocksMade { mut target, mut notes } = over::make(device, spec, blocks, A::KEEPS)?;
        let extents = Extents::new(device.geometry(), target.block_count(), blocks.extent_bytes, A::CUT)?;
        let mut below = Below {
            device,
            target: target.as_mut(),
            extents,
            exchange: Exchange::new(blocks),
            out: Out::below(),
        };
        survey::survey(&mut below, blocks, A::CUT).map_err(|error| error.to_string())?;
        let (above, mut told) = A::mount(&mut below, options, spec.options).map_err(|error| {
            format!("{error} (over {} extents of the block target {})", below.extents.count(), blocks.over)
        })?;
        let Below { extents, exchange, .. } = below;
        assert_eq!(exchange.len(), 0, "a mount left commands behind");
        told[0].push_str(&format!(
            "; its chunks are {} extents of {} blocks of {}",
            extents.count(),
            extents.geometry().sectors_per_chunk,
            blocks.over
        ));
        told.append(&mut notes);
        let target = Self {
            above,
            above_out: Out::below(),
            below: target,
            block_out: Out::below(),
            extents,
            exchange,
            shutdown: Shutdown::No,
            is_blocked: false,
        };
        Ok((target, told))
    }

    /// The target that stands on the extents.
    pub const fn above(&self) -> &A {
        &self.above
    }

    /// Takes what the target above has to do. True if there was anything.
    fn take_commands(&mut self, now: Nanos, out: &mut Out<A::Reply>) -> bool {
        let Self { above, above_out, exchange, extents, .. } = self;
        out.lend(above_out, COMMANDS_AT_ONCE, |inner| above.advance(now, inner));
        let commands = above_out.commands_mut().0;
        let any = !commands.is_empty();
        assert!(commands.len() <= COMMANDS_AT_ONCE, "{} commands came at once", commands.len());
        commands.drain(..).for_each(|command| {
            // The block target judges whole sectors, by their metadata, whatever bytes of them are wanted above.
            command.buffer.into_iter().for_each(|buffer| out.buffers.want_all(buffer));
            exchange.begin(&command, extents);
        });
        any
    }

    /// Offers requests until the block target refuses one. True if it took any.
    fn offer(&mut self, now: Nanos, out: &mut Out<A::Reply>) -> bool {
        let mut any = false;
        let Self { below, block_out, exchange, .. } = self;
        while !self.is_blocked
            && let Some(request) = exchange.front()
        {
            if !out.lend(block_out, 0, |inner| below.submit(now, request, inner)).is_taken() {
                self.is_blocked = true;
                break;
            }
            exchange.taken();
            any = true;
        }
        any | self.shut_down(now, out)
    }

    /// Passes a shutdown on once the target above has ended. True if it did.
    fn shut_down(&mut self, now: Nanos, out: &mut Out<A::Reply>) -> bool {
        let Shutdown::Due(tag, status) = self.shutdown else { return false };
        assert_eq!(self.exchange.len(), 0, "the target above ended and left commands behind");
        let request = BlockRequest { tag: SHUTDOWN, op: BlockOp::Shutdown, block: 0, count: 0, buffer: None };
        let Self { below, block_out, .. } = self;
        let is_taken = out.lend(block_out, 0, |inner| below.submit(now, &request, inner)).is_taken();
        if is_taken {
            self.shutdown = Shutdown::OfBlocks(tag, status);
        }
        is_taken
    }

    /// Takes what the block target replied. True if there was anything.
    fn take_replies(&mut self, now: Nanos, out: &mut Out<A::Reply>) -> bool {
        let mut replies = std::mem::take(self.block_out.replies_mut().0);
        let any = !replies.is_empty();
        for reply in replies.drain(..) {
            let is_end = reply.tag == SHUTDOWN;
            assert!(!is_end || matches!(self.shutdown, Shutdown::OfBlocks(..)), "{:?}", self.shutdown);
            self.is_blocked = false;
            if is_end {
                self.is_shut_down(reply.status, out);
            } else if let Some(completion) = self.exchange.ended(&reply) {
                let Self { above, above_out, .. } = self;
                out.lend(above_out, 0, |inner| above.on_completion(now, completion, inner));
            }
        }
        *self.block_out.replies_mut().0 = replies;
        any
    }

    /// The block target ended: the shutdown ends as the first of the two that failed, or well.
    fn is_shut_down(&mut self, status: Status, out: &mut Out<A::Reply>) {
        let Shutdown::OfBlocks(tag, of_above) = std::mem::replace(&mut self.shutdown, Shutdown::No) else {
            unreachable!("the block target ended, and nobody asked")
        };
        out.reply(A::shut_down(tag, if of_above.is_success() { status } else { of_above }));
    }

    /// Lets the block target go on, by one command if there is room for it. True if there was one.
    fn advance_below(&mut self, now: Nanos, out: &mut Out<A::Reply>) -> bool {
        let Self { below, block_out, .. } = self;
        let room = usize::from(out.has_room());
        out.lend(block_out, room, |inner| below.advance(now, inner));
        let command = block_out.commands_mut().0.pop();
        assert!(
            block_out.commands().is_empty(),
            "the block target gave more commands than there was room for"
        );
        command.map(|command| out.command(command)).is_some()
    }

    /// Gives the host what the target above replied, but for the end of a shutdown, of which there is more to do.
    fn give_replies(&mut self, out: &mut Out<A::Reply>) -> bool {
        let mut replies = std::mem::take(self.above_out.replies_mut().0);
        let any = !replies.is_empty();
        for reply in replies.drain(..) {
            let (of, status) = A::end_of(&reply);
            match self.shutdown {
                Shutdown::Above(tag) if tag == of => self.shutdown = Shutdown::Due(tag, status),
                _ => out.reply(reply),
            }
        }
        *self.above_out.replies_mut().0 = replies;
        any
    }

    /// Does everything that can be done without the drive.
    fn pump(&mut self, now: Nanos, out: &mut Out<A::Reply>) {
        loop {
            let mut any = self.take_commands(now, out);
            any |= self.give_replies(out);
            any |= self.offer(now, out);
            any |= self.take_replies(now, out);
            if !any {
                return;
            }
        }
    }
}

impl<A: Above> Target for OverBlocks<A> {
    type Request = A::Request;
    type Reply = A::Reply;

    fn submit(&mut self, now: Nanos, request: &A::Request, out: &mut Out<A::Reply>) -> Admission {
        let is_first = matches!(self.shutdown, Shutdown::No);
        let Self { above, above_out, .. } = self;
        let admission = out.lend(above_out, 0, |inner| above.submit(now, request, inner));
        if let Some(tag) = A::shutdown_of(request).filter(|_| admission.is_taken() && is_first) {
            self.shutdown = Shutdown::Above(tag);
        }
        self.give_replies(out);
        admission
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<A::Reply>) {
        let Self { below, block_out, .. } = self;
        out.lend(block_out, 0, |inner| below.on_completion(now, completion, inner));
        self.is_blocked = false;
        self.take_replies(now, out);
        self.give_replies(out);
    }

    fn on_deadline(&mut self, now: Nanos, out: &mut Out<A::Reply>) {
        if self.below.deadline().is_some_and(|at| at <= now) {
            let Self { below, block_out, .. } = self;
            out.lend(block_out, 0, |inner| below.on_deadline(now, inner));
            self.is_blocked = false;
        }
        if self.above.deadline().is_some_and(|at| at <= now) {
            let Self { above, above_out, .. } = self;
            out.lend(above_out, 0, |inner| above.on_deadline(now, inner));
        }
    }

    /// The sooner of both: each sends again what was not carried out.
    fn deadline(&self) -> Option<Nanos> {
        self.below.deadline().into_iter().chain(self.above.deadline()).min()
    }

    fn has_deadlines(&self) -> bool {
        self.below.has_deadlines() || self.above.has_deadlines()
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<A::Reply>) {
        loop {
            self.pump(now, out);
            if !self.advance_below(now, out) && self.block_out.reply_count() == 0 {
                return;
            }
        }
    }

    fn check(&self) {
        self.above.check();
        self.exchange.check();
        self.below.check();
    }

    /// Those of the target above, whose chunks are extents, and those of the block target that are not called the same.
    fn counters(&self) -> Vec<Counter> {
        let as_extents = |name| match name {
            "free_chunks" => "free_extents",
            "good_chunks" => "good_extents",
            "chunks_needed" => "extents_needed",
            "content_chunks" => "content_extents",
            other => other,
        };
        let own = self.above.counters().into_iter();
        let mut counters: Vec<Counter> =
            own.map(|counter| Counter { name: as_extents(counter.name), ..counter }).collect();
        let requests = CounterValue::Count(self.exchange.requests_taken());
        let about = "Requests to the block target below.";
        counters.push(Counter { name: "block_requests", about, value: requests });
        let of_above = counters.len();
        for counter in self.below.counters() {
            if counters[..of_above].iter().all(|other| other.name != counter.name) {
                counters.push(counter);
            }
        }
        counters
    }

    fn summary(&self) -> String {
        format!(
            "{}; {} commands on extents, shutdown {:?}; below: {}",
            self.above.summary(),
            self.exchange.len(),
            self.shutdown,
            self.below.summary()
        )
    }
}
