//! The last request of a run to every target that keeps something about itself.

use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{Buffers, Source, Tag, TargetId};

/// Asks each target once.
pub struct ShutDown {
    due: Vec<TargetId>,
    waiting: usize,
}

impl ShutDown {
    /// Asks these.
    pub const fn new(due: Vec<TargetId>) -> Self {
        Self { due, waiting: 0 }
    }
}

impl Source for ShutDown {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        let target = self.due.pop()?;
        self.waiting += 1;
        let request = BlockRequest { tag: Tag(0), op: BlockOp::Shutdown, block: 0, count: 0, buffer: None };
        Some((target, request))
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, _request: BlockRequest) {
        self.waiting -= 1;
        self.due.push(target);
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, _reply: BlockReply, _buffers: &mut Buffers) {
        self.waiting -= 1;
    }

    fn is_finished(&self) -> bool {
        self.due.is_empty() && self.waiting == 0
    }
}
