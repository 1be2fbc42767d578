//! What the host sees: `kv` above, the block target below, and what goes between them.
//!
//! Deliberately not here: what becomes of a command on the way (`exchange`).

use super::below::Below;
use super::exchange::Exchange;
use super::extents::Extents;
use super::options::Options;
use super::{over, survey};
use crate::kv::Kv;
use crate::registry::{Made, TargetSpec};
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::counter::Counter;
use ocssd_lightnvm::interface::key_value::{KvAnswer, KvLimits, KvOp, KvReply, KvRequest, KvTarget};
use ocssd_lightnvm::{Admission, BlockingDevice, Completion, Out, PuId, Status, Tag, Target};

/// Commands taken of `kv` at once (chosen: as many as a batch of its largest transaction has).
const COMMANDS_AT_ONCE: usize = 64;
/// The tag of the block target's shutdown: no command has it, for those are counted from 0.
const SHUTDOWN: Tag = Tag(u32::MAX);

/// How far a shutdown is.
#[derive(Clone, Copy, Debug)]
enum Shutdown {
    /// Nobody asked.
    No,
    /// `kv` is about to end, for the request of this tag.
    OfKeys(Tag),
    /// `kv` ended with this reply, and the block target is to be offered its own.
    Due(KvReply),
    /// The block target has it.
    OfBlocks(KvReply),
}

/// Keys and values on a block device.
pub struct KvOverBlock {
    kv: Kv,
    kv_out: Out<KvReply>,
    below: Box<dyn BlockTarget>,
    block_out: Out<BlockReply>,
    extents: Extents,
    exchange: Exchange,
    shutdown: Shutdown,
    /// The block target refused the next request, and has answered nothing since.
    is_blocked: bool,
}

impl KvOverBlock {
    /// Makes an instance and the block target below it, or mounts both.
    ///
    /// # Errors
    /// A sentence, if the units cannot carry them, they cannot be read, the drive fails or the power goes.
    pub fn mount(
        device: &mut dyn BlockingDevice,
        spec: &TargetSpec<'_>,
        options: &Options,
    ) -> Result<(Self, Vec<String>), String> {
        let Made { mut target, mut notes } = over::make(device, spec, options)?;
        let extents = Extents::new(device.geometry(), target.block_count(), options.extent_bytes)?;
        let mut below = Below {
            device,
            target: target.as_mut(),
            extents,
            exchange: Exchange::new(options),
            out: Out::below(),
        };
        survey::survey(&mut below, options).map_err(|error| error.to_string())?;
        let (kv, report) = Kv::mount(&mut below, &[PuId(0)], &options.keys).map_err(|error| {
            format!("{error} (over {} extents of the block target {})", below.extents.count(), options.over)
        })?;
        let Below { extents, exchange, .. } = below;
        assert_eq!(exchange.len(), 0, "a mount left commands behind");
        notes.insert(
            0,
            format!(
                "{}; its chunks are {} extents of {} blocks of {}",
                kv.describe(&report),
                extents.count(),
                extents.geometry().sectors_per_chunk,
                options.over
            ),
        );
        let target = Self {
            kv,
            kv_out: Out::below(),
            below: target,
            block_out: Out::below(),
            extents,
            exchange,
            shutdown: Shutdown::No,
            is_blocked: false,
        };
        Ok((target, notes))
    }

    /// Takes what `kv` has to do. True if there was anything.
    fn take_commands(&mut self, now: Nanos, out: &mut Out<KvReply>) -> bool {
        let Self { kv, kv_out, exchange, extents, .. } = self;
        out.lend(kv_out, COMMANDS_AT_ONCE, |above| kv.advance(now, above));
        let commands = kv_out.commands_mut().0;
        let any = !commands.is_empty();
        assert!(commands.len() <= COMMANDS_AT_ONCE, "kv gave {} commands at once", commands.len());
        commands.drain(..).for_each(|command| exchange.begin(&command, extents));
        any
    }

    /// Offers requests until the block target refuses one. True if it took any.
    fn offer(&mut self, now: Nanos, out: &mut Out<KvReply>) -> bool {
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

    /// Passes a shutdown on once `kv` has ended. True if it did.
    fn shut_down(&mut self, now: Nanos, out: &mut Out<KvReply>) -> bool {
        let Shutdown::Due(reply) = self.shutdown else { return false };
        assert_eq!(self.exchange.len(), 0, "kv ended and left commands behind");
        let request = BlockRequest { tag: SHUTDOWN, op: BlockOp::Shutdown, block: 0, count: 0, buffer: None };
        let Self { below, block_out, .. } = self;
        let is_taken = out.lend(block_out, 0, |inner| below.submit(now, &request, inner)).is_taken();
        if is_taken {
            self.shutdown = Shutdown::OfBlocks(reply);
        }
        is_taken
    }

    /// Takes what the block target replied. True if there was anything.
    fn take_replies(&mut self, now: Nanos, out: &mut Out<KvReply>) -> bool {
        let mut replies = std::mem::take(self.block_out.replies_mut().0);
        let any = !replies.is_empty();
        for reply in replies.drain(..) {
            let is_end = reply.tag == SHUTDOWN;
            assert!(!is_end || matches!(self.shutdown, Shutdown::OfBlocks(_)), "{:?}", self.shutdown);
            self.is_blocked = false;
            if is_end {
                self.is_shut_down(reply.status, out);
            } else if let Some(completion) = self.exchange.ended(&reply) {
                let Self { kv, kv_out, .. } = self;
                out.lend(kv_out, 0, |above| kv.on_completion(now, completion, above));
            }
        }
        *self.block_out.replies_mut().0 = replies;
        any
    }

    /// The block target ended: the shutdown ends as the first of the two that failed, or well.
    fn is_shut_down(&mut self, status: Status, out: &mut Out<KvReply>) {
        let Shutdown::OfBlocks(reply) = std::mem::replace(&mut self.shutdown, Shutdown::No) else {
            unreachable!("the block target ended, and nobody asked")
        };
        let is_well = !reply.status.is_success() || status.is_success();
        out.reply(if is_well { reply } else { KvReply { status, answer: KvAnswer::Done, ..reply } });
    }

    /// Lets the block target go on, by one command if there is room for it. True if there was one.
    fn advance_below(&mut self, now: Nanos, out: &mut Out<KvReply>) -> bool {
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

    /// Gives the host what `kv` replied, but for the end of a shutdown, of which there is more to do.
    fn give_replies(&mut self, out: &mut Out<KvReply>) -> bool {
        let mut replies = std::mem::take(self.kv_out.replies_mut().0);
        let any = !replies.is_empty();
        for reply in replies.drain(..) {
            match self.shutdown {
                Shutdown::OfKeys(tag) if tag == reply.tag => self.shutdown = Shutdown::Due(reply),
                _ => out.reply(reply),
            }
        }
        *self.kv_out.replies_mut().0 = replies;
        any
    }

    /// Does everything that can be done without the drive.
    fn pump(&mut self, now: Nanos, out: &mut Out<KvReply>) {
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

impl Target for KvOverBlock {
    type Request = KvRequest;
    type Reply = KvReply;

    fn submit(&mut self, now: Nanos, request: &KvRequest, out: &mut Out<KvReply>) -> Admission {
        let is_first = matches!(self.shutdown, Shutdown::No);
        let Self { kv, kv_out, .. } = self;
        let admission = out.lend(kv_out, 0, |above| kv.submit(now, request, above));
        if admission.is_taken() && is_first && request.op == KvOp::Shutdown {
            self.shutdown = Shutdown::OfKeys(request.tag);
        }
        self.give_replies(out);
        admission
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<KvReply>) {
        let Self { below, block_out, .. } = self;
        out.lend(block_out, 0, |inner| below.on_completion(now, completion, inner));
        self.is_blocked = false;
        self.take_replies(now, out);
        self.give_replies(out);
    }

    fn on_deadline(&mut self, now: Nanos, out: &mut Out<KvReply>) {
        if self.below.deadline().is_some_and(|at| at <= now) {
            let Self { below, block_out, .. } = self;
            out.lend(block_out, 0, |inner| below.on_deadline(now, inner));
            self.is_blocked = false;
        }
    }

    fn deadline(&self) -> Option<Nanos> {
        self.below.deadline()
    }

    fn has_deadlines(&self) -> bool {
        self.below.has_deadlines()
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<KvReply>) {
        loop {
            self.pump(now, out);
            if !self.advance_below(now, out) && self.block_out.reply_count() == 0 {
                return;
            }
        }
    }

    fn check(&self) {
        self.kv.check();
        self.exchange.check();
        self.below.check();
    }

    /// Those of `kv`, whose chunks are extents, and those of the block target that are not called the same.
    fn counters(&self) -> Vec<Counter> {
        let as_extents = |name| match name {
            "free_chunks" => "free_extents",
            "good_chunks" => "good_extents",
            "chunks_needed" => "extents_needed",
            other => other,
        };
        let keys = self.kv.counters().into_iter();
        let mut counters: Vec<Counter> =
            keys.map(|counter| Counter { name: as_extents(counter.name), ..counter }).collect();
        let of_keys = counters.len();
        for counter in self.below.counters() {
            if counters[..of_keys].iter().all(|other| other.name != counter.name) {
                counters.push(counter);
            }
        }
        counters
    }

    fn summary(&self) -> String {
        format!(
            "{}; {} commands on extents, shutdown {:?}; below: {}",
            self.kv.summary(),
            self.exchange.len(),
            self.shutdown,
            self.below.summary()
        )
    }
}

impl KvTarget for KvOverBlock {
    fn limits(&self) -> KvLimits {
        self.kv.limits()
    }
}
