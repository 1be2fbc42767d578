//! `ox-block` with a look at each request: when it came and went, and whether garbage was collected where it lies.
//!
//! Deliberately not here: what the looks are for.

use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Counter};
use ocssd_lightnvm::{Admission, Completion, Out, Target};
use ocssd_targets::ox_block::OxBlock;
use std::collections::BTreeMap;

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// A read; else a write.
    pub is_read: bool,
    /// From when it was taken to its answer.
    pub took: Nanos,
    /// The group it lies in was marked when it came or when it went.
    pub is_affected: bool,
    /// Some group was.
    pub is_any_marked: bool,
}

/// A request that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    is_read: bool,
    block: u64,
    began: Nanos,
    marked: u64,
}

/// The target, watched.
pub struct Watched {
    inner: OxBlock,
    open: BTreeMap<u32, Open>,
    seen: Vec<Seen>,
}

impl Watched {
    /// Nothing was asked yet.
    ///
    /// # Panics
    /// If there are more groups than bits.
    pub fn new(inner: OxBlock) -> Self {
        assert!(inner.groups() <= u64::BITS, "{} groups have no bit each", inner.groups());
        Self { inner, open: BTreeMap::new(), seen: Vec::new() }
    }

    /// Blocks of the target.
    pub fn blocks(&self) -> u64 {
        self.inner.block_count()
    }

    /// What was answered since the last call.
    pub fn take_seen(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }

    /// A bit for each marked group.
    fn marked(&self) -> u64 {
        (0..self.inner.groups()).map(|group| u64::from(self.inner.is_collected(group)) << group).sum()
    }

    fn look(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        let (replies, _) = out.replies_mut();
        if replies.is_empty() {
            return;
        }
        let marked = self.marked();
        for reply in replies.iter() {
            let Some(open) = self.open.remove(&reply.tag.0) else { continue };
            let ever = open.marked | marked;
            let group = self.inner.group_of(open.block);
            self.seen.push(Seen {
                is_read: open.is_read,
                took: now.saturating_since(open.began),
                is_affected: group.is_some_and(|group| ever >> group & 1 == 1),
                is_any_marked: ever != 0,
            });
        }
    }
}

impl Target for Watched {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, now: Nanos, request: &BlockRequest, out: &mut Out<BlockReply>) -> Admission {
        let admission = self.inner.submit(now, request, out);
        if admission.is_taken() {
            let is_read = request.op == BlockOp::Read;
            let open = Open { is_read, block: request.block, began: now, marked: self.marked() };
            self.open.insert(request.tag.0, open);
        }
        self.look(now, out);
        admission
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<BlockReply>) {
        self.inner.on_completion(now, completion, out);
        self.look(now, out);
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        self.inner.advance(now, out);
        self.look(now, out);
    }

    fn has_deadlines(&self) -> bool {
        self.inner.has_deadlines()
    }

    fn check(&self) {
        self.inner.check();
    }

    fn counters(&self) -> Vec<Counter> {
        self.inner.counters()
    }
}
