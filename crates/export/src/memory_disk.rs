//! Something to serve when there is no drive: bytes in memory behind a dispatcher, for tests and fuzzers of protocols.
//!
//! Beside these disks there may be targets of other interfaces, which need no drive either. It carries out requests in any order
//! a target may. Deliberately not here: media time, and everything a target does.

use crate::dispatcher::Dispatcher;
use crate::exports::{Export, ExportKind, Exports};
use crate::pool::Pool;
use ocssd_base::{Nanos, usize_of};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::interface::{AnyReply, AnyRequest, AnyTarget};
use ocssd_lightnvm::{Buffers, Out, Payload, PayloadFormat, Source, Status, Target, TargetId};
use ocssd_nvme::identify::Uuid;
use std::ops::Range;

/// Bytes of a block.
pub const BLOCK_BYTES: u32 = 512;

/// What its sectors are: as small as its blocks, without metadata.
const FORMAT: PayloadFormat =
    PayloadFormat { payload: Payload::Bytes, data_bytes: 4096, sector_bytes: 4096, oob_bytes: 0 };

/// A disk for each export of a dispatcher.
pub struct MemoryDisks {
    /// Their content.
    pub disks: Vec<Vec<u8>>,
    /// Whether each block was written.
    mapped: Vec<Vec<bool>>,
    /// Requests that touch these blocks of the first disk fail.
    pub bad: Range<u64>,
    /// Taken and not replied to.
    open: Vec<(TargetId, BlockRequest)>,
    /// Writes and flushes carried out, for tests that look at their order.
    pub log: Vec<(TargetId, BlockOp)>,
    /// Targets of other interfaces, behind the disks.
    others: Vec<AnyTarget>,
    /// What they gave.
    out: Out<AnyReply>,
    /// Their time.
    now: Nanos,
}

impl MemoryDisks {
    /// Disks for a dispatcher with these names and numbers of blocks.
    pub fn new(exports: &[(&str, u64)], pieces: [u32; 3]) -> (Dispatcher, Self) {
        Self::with_pool(exports, |buffers| Pool::with_counts(buffers, pieces))
    }

    /// The same, with targets of other interfaces behind the disks.
    pub fn beside(
        exports: &[(&str, u64)],
        others: Vec<(&str, AnyTarget)>,
        pieces: [u32; 3],
    ) -> (Dispatcher, Self) {
        let of = |(name, target): &(&str, AnyTarget)| {
            let of = Export::of(name, "memory", target, 4096, name.ends_with("-ro"));
            of.expect("a target of a test is small")
        };
        let more = others.iter().map(of).collect();
        let (dispatcher, disks) = Self::make(exports, more, |buffers| Pool::with_counts(buffers, pieces));
        let others = others.into_iter().map(|(_, target)| target).collect();
        (dispatcher, Self { others, ..disks })
    }

    /// The same, with any pool.
    pub fn with_pool(exports: &[(&str, u64)], pool: impl FnOnce(&mut Buffers) -> Pool) -> (Dispatcher, Self) {
        Self::make(exports, Vec::new(), pool)
    }

    fn make(
        exports: &[(&str, u64)],
        more: Vec<Export>,
        pool: impl FnOnce(&mut Buffers) -> Pool,
    ) -> (Dispatcher, Self) {
        let list = (1..).zip(exports).map(|(number, &(name, block_count))| Export {
            name: name.to_owned(),
            description: "memory".to_owned(),
            kind: ExportKind::Block,
            block_bytes: BLOCK_BYTES,
            preferred_bytes: 4096,
            block_count,
            read_only: name.ends_with("-ro"),
            has_map: true,
            atomic_blocks: if name.ends_with("-whole") { 2048 } else { 1 },
            fast_zero: true,
            uuid: Uuid::of_seed(7).of_part(number),
        });
        let exports_made = Exports::new(list.chain(more).collect()).expect("the names differ");
        let mut buffers = Buffers::new(FORMAT);
        let pool = pool(&mut buffers);
        let blocks = |&(_, count): &(&str, u64)| usize::try_from(count).expect("small");
        let disks = exports.iter().map(|export| vec![0; blocks(export) * usize_of(BLOCK_BYTES)]).collect();
        let mapped = exports.iter().map(|export| vec![false; blocks(export)]).collect();
        let (others, out) = (Vec::new(), Out::below());
        let (open, log) = (Vec::new(), Vec::new());
        let disks = Self { disks, mapped, bad: 0..0, open, log, others, out, now: Nanos::ZERO };
        (Dispatcher::new(exports_made, pool, buffers), disks)
    }

    /// Takes what the dispatcher has, as a host does.
    pub fn take(&mut self, dispatcher: &mut Dispatcher) {
        let mut none = Buffers::new(FORMAT);
        dispatcher.begin_round();
        while let Some((target, request)) =
            Source::<AnyTarget>::poll_request(dispatcher, Nanos::ZERO, &mut none)
        {
            match request {
                AnyRequest::Block(request) => self.open.push((target, request)),
                request => self.submit(target, request, dispatcher),
            }
        }
        dispatcher.look_up(|target, block| {
            Some(self.mapped[target.index()][usize::try_from(block).expect("it is on the disk")])
        });
    }

    /// Carries out one of the requests taken, if there is one: the one at place `which`, counted round.
    pub fn carry_out(&mut self, which: usize, dispatcher: &mut Dispatcher) -> bool {
        if self.open.is_empty() {
            return self.advance_others(dispatcher);
        }
        let (target, request) = self.open.remove(which % self.open.len());
        let status = self.status(target, &request, &mut dispatcher.buffers);
        let reply = BlockReply { tag: request.tag, status, violation: None };
        let mut none = Buffers::new(FORMAT);
        Source::<AnyTarget>::on_reply(dispatcher, Nanos::ZERO, target, reply.into(), &mut none);
        true
    }

    /// Calls the target of another interface that an export has, with the dispatcher's buffers.
    fn call<R>(
        &mut self,
        target: TargetId,
        dispatcher: &mut Dispatcher,
        call: impl FnOnce(&mut AnyTarget, &mut Out<AnyReply>) -> R,
    ) -> R {
        std::mem::swap(&mut self.out.buffers, &mut dispatcher.buffers);
        let result = call(&mut self.others[target.index() - self.disks.len()], &mut self.out);
        std::mem::swap(&mut self.out.buffers, &mut dispatcher.buffers);
        result
    }

    fn submit(&mut self, target: TargetId, request: AnyRequest, dispatcher: &mut Dispatcher) {
        let now = self.now;
        let admission = self.call(target, dispatcher, |target, out| target.submit(now, &request, out));
        if !admission.is_taken() {
            Source::<AnyTarget>::on_refused(dispatcher, now, target, request);
        }
        self.deliver(target, dispatcher);
    }

    /// Targets of other interfaces go on until one has replied; false if none has anything to do.
    fn advance_others(&mut self, dispatcher: &mut Dispatcher) -> bool {
        while let Some(at) = self.others.iter().filter_map(Target::deadline).min() {
            self.now = self.now.max(at);
            let mut any = false;
            for place in (self.disks.len()..).take(self.others.len()) {
                let target = TargetId(u32::try_from(place).expect("few"));
                let now = self.now;
                self.call(target, dispatcher, |target, out| target.on_deadline(now, out));
                self.call(target, dispatcher, |target, out| target.advance(now, out));
                any |= self.deliver(target, dispatcher);
            }
            if any {
                return true;
            }
        }
        false
    }

    /// Tells the dispatcher of zones that changed by themselves, as a server does after each turn.
    pub fn tell_changed_zones(&mut self, dispatcher: &mut Dispatcher) {
        let zoned: Vec<_> = dispatcher.zoned().collect();
        for (id, zones) in zoned {
            let target = self.others[id.index() - self.disks.len()].zoned_mut();
            let Some(target) = target else { continue };
            while let Some(zone) = target.poll_changed_zone() {
                dispatcher.note_changed_zone(id, zones.start_of(zone));
            }
        }
    }

    /// Tells the dispatcher how much of its exports of keys is in use, as a server does after each turn.
    pub fn tell_used_bytes(&mut self, dispatcher: &mut Dispatcher) {
        let keyed: Vec<_> = dispatcher.keyed().collect();
        for id in keyed {
            let target = self.others[id.index() - self.disks.len()].key_value();
            dispatcher.note_used_bytes(id, target.expect("an export of keys has such a target").used_bytes());
        }
    }

    /// Passes replies on; true if there were any.
    fn deliver(&mut self, target: TargetId, dispatcher: &mut Dispatcher) -> bool {
        assert!(self.out.commands().is_empty(), "there is no drive");
        let replies = std::mem::take(self.out.replies_mut().0);
        let any = !replies.is_empty();
        let mut none = Buffers::new(FORMAT);
        for reply in replies {
            Source::<AnyTarget>::on_reply(dispatcher, self.now, target, reply, &mut none);
        }
        any
    }

    fn status(&mut self, target: TargetId, request: &BlockRequest, buffers: &mut Buffers) -> Status {
        let (disk, mapped) = (&mut self.disks[target.index()], &mut self.mapped[target.index()]);
        let (first, count) = (usize::try_from(request.block).expect("small"), usize_of(request.count));
        let unit = usize_of(BLOCK_BYTES);
        assert!(first + count <= mapped.len(), "{request:?} reaches beyond the disk");
        if target.index() == 0
            && (request.block..request.block + u64::from(request.count)).any(|b| self.bad.contains(&b))
        {
            return Status::UNRECOVERED_READ;
        }
        self.log.push((target, request.op));
        let place = &mut disk[first * unit..][..count * unit];
        match (request.op, request.buffer) {
            (BlockOp::Read, Some(buffer)) => {
                buffers.bytes_mut(buffer, 0, place.len()).copy_from_slice(place);
            }
            (BlockOp::Write { .. }, Some(buffer)) => {
                place.copy_from_slice(buffers.bytes(buffer, 0, place.len()));
                mapped[first..][..count].fill(true);
            }
            (BlockOp::Flush, None) => {}
            (BlockOp::Discard | BlockOp::WriteZeroes, None) => {
                place.fill(0);
                mapped[first..][..count].fill(false);
            }
            other => unreachable!("{other:?} was asked of a disk"),
        }
        Status::SUCCESS
    }
}
