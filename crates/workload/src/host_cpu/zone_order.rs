//! Zoned targets take changes in the order the host made them, however long each was on its core.
//!
//! Stands for the lock of a zone a kernel takes for each write. Deliberately not here: requests that change nothing.

use super::thread::Step;
use super::threads::{ThreadNumber, Threads};
use ocssd_base::Ring;
use ocssd_lightnvm::block::BlockOp;

/// Changes the inner target has not taken, in order of arrival.
#[derive(Clone, Debug)]
pub(super) struct ZoneOrder {
    queue: Ring<ThreadNumber>,
}

impl ZoneOrder {
    pub fn new(requests: usize) -> Self {
        Self { queue: Ring::new(requests) }
    }

    pub const fn covers(op: BlockOp) -> bool {
        !matches!(op, BlockOp::Read | BlockOp::Flush | BlockOp::Shutdown)
    }

    pub fn arrive(&mut self, number: ThreadNumber) {
        self.queue.push(number).expect("there are as many places as requests");
    }

    /// The oldest change, if it is ready to be offered.
    pub fn ready(&self, threads: &Threads) -> Option<ThreadNumber> {
        let number = *self.queue.front()?;
        (threads.get(number).step == Step::Outside).then_some(number)
    }

    pub fn taken(&mut self, number: ThreadNumber) {
        assert_eq!(self.queue.pop(), Some(number), "changes of zones are taken in order");
    }

    /// Blocks written from a zone's start once what waits here is taken. `first` and `blocks` say where the zone lies,
    /// `written` what the inner target knows. Cost: a look at all that waits.
    pub fn written(&self, threads: &Threads, first: u64, blocks: u64, written: u64) -> u64 {
        self.queue.iter().map(|&number| threads.get(number).request).fold(written, |written, request| {
            let is_here = (first..first + blocks).contains(&request.block);
            match request.op {
                BlockOp::ResetZone if is_here => 0,
                BlockOp::Write { .. } | BlockOp::WriteZeroes
                    if is_here && request.block == first + written =>
                {
                    written + u64::from(request.count)
                }
                _ => written,
            }
        })
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }
}
