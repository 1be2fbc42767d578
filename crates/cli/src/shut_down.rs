//! The last request to every target that keeps something about itself: the next mount is quick.

use ocssd_base::Nanos;
use ocssd_engine::{Clock, Host, RunEnd};
use ocssd_lightnvm::block::{BlockOp, BlockRequest, BlockTarget};
use ocssd_lightnvm::{Buffers, Device, Source, Tag, Target, TargetId};

/// Lets targets put away what they know: the next mount on the image finds it at once. `last` has the last request of each.
///
/// # Errors
/// If a target does not answer, which is a bug.
pub fn shut_down<D, C, T>(host: &mut Host<D, C, T>, last: Vec<(TargetId, T::Request)>) -> anyhow::Result<()>
where
    D: Device,
    C: Clock,
    T: Target + ?Sized,
{
    let mut source: ShutDown<T> = ShutDown { due: last, waiting: 0 };
    match host.run(&mut source, Nanos::MAX) {
        RunEnd::Finished => Ok(()),
        RunEnd::Stuck | RunEnd::Stopped => {
            anyhow::bail!("a target did not shut down; this is a bug, please report what was run")
        }
    }
}

/// The last request to a target of blocks; `None` to one that keeps nothing about itself, a raw window.
pub fn last_request(target: &dyn BlockTarget) -> Option<BlockRequest> {
    let request = BlockRequest { tag: Tag(0), op: BlockOp::Shutdown, block: 0, count: 0, buffer: None };
    target.zones().is_none().then_some(request)
}

/// Asks each target once.
struct ShutDown<T: Target + ?Sized> {
    due: Vec<(TargetId, T::Request)>,
    waiting: usize,
}

impl<T: Target + ?Sized> Source<T> for ShutDown<T> {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, T::Request)> {
        let due = self.due.pop()?;
        self.waiting += 1;
        Some(due)
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, request: T::Request) {
        self.waiting -= 1;
        self.due.push((target, request));
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, _reply: T::Reply, _buffers: &mut Buffers) {
        self.waiting -= 1;
    }

    fn is_finished(&self) -> bool {
        self.due.is_empty() && self.waiting == 0
    }
}
