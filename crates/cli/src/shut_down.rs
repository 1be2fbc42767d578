//! The last request to every target that keeps something about itself: the next mount is quick.

use ocssd_base::Nanos;
use ocssd_engine::{Clock, Host, RunEnd};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{Buffers, Device, Source, Tag, TargetId};

/// Lets targets with a map put away what they know: the next mount on the image finds it at once.
///
/// # Errors
/// If a target does not answer, which is a bug.
pub fn shut_down<D: Device, C: Clock>(host: &mut Host<D, C>, targets: &[TargetId]) -> anyhow::Result<()> {
    let mapped = targets.iter().copied().filter(|&id| host.target(id).zones().is_none()).collect();
    let mut source = ShutDown::new(mapped);
    match host.run(&mut source, Nanos::MAX) {
        RunEnd::Finished => Ok(()),
        RunEnd::Stuck | RunEnd::Stopped => {
            anyhow::bail!("a target did not shut down; this is a bug, please report what was run")
        }
    }
}

/// Asks each target once.
struct ShutDown {
    due: Vec<TargetId>,
    waiting: usize,
}

impl ShutDown {
    /// Asks these.
    const fn new(due: Vec<TargetId>) -> Self {
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
