//! Targets of all interfaces but plain blocks take requests in the order the host made them, however long each was on its core.
//!
//! Of zones as blocks this is so of changes only, and stands for the lock that a kernel takes for each write; of the others it
//! stands for the one queue of a store. Deliberately not here: requests of plain blocks, and shutdowns.

use super::hosted::{Asked, Ordered, Work};
use super::thread::Step;
use super::threads::{ThreadNumber, Threads};
use ocssd_base::Ring;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};

/// What is ordered and the inner target has not taken, in order of arrival.
#[derive(Clone, Debug)]
pub(super) struct HostOrder {
    ordered: Ordered,
    queue: Ring<ThreadNumber>,
}

impl HostOrder {
    /// Nothing yet, and room for so many requests; `None` if nothing is ordered.
    pub fn new(ordered: Ordered, requests: usize) -> Option<Self> {
        (ordered != Ordered::Nothing).then(|| Self { ordered, queue: Ring::new(requests) })
    }

    /// True if such requests are ordered.
    pub fn covers(&self, asked: Asked) -> bool {
        asked.is_change || self.ordered == Ordered::All && asked.work != Work::Shutdown
    }

    pub fn arrive(&mut self, number: ThreadNumber) {
        self.queue.push(number).expect("there are as many places as requests");
    }

    /// The oldest, if it is ready to be offered.
    pub fn ready<Request, Reply>(&self, threads: &Threads<Request, Reply>) -> Option<ThreadNumber> {
        let number = *self.queue.front()?;
        (threads.get(number).step == Step::Outside).then_some(number)
    }

    pub fn taken(&mut self, number: ThreadNumber) {
        assert_eq!(self.queue.pop(), Some(number), "they are taken in order");
    }

    /// Blocks written from a zone's start once what waits here is taken. `first` and `blocks` say where the zone lies,
    /// `written` what the inner target knows. Cost: a look at all that waits.
    pub fn written(
        &self,
        threads: &Threads<BlockRequest, BlockReply>,
        first: u64,
        blocks: u64,
        written: u64,
    ) -> u64 {
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
