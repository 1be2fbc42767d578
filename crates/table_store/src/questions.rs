//! The source of a host that many threads ask: questions on their way to the target, and answers on their way back.
//!
//! Deliberately not here: the lock, and who waits (`shared_drive`).

use ocssd_base::{Nanos, Slab, SlabKey};
use ocssd_lightnvm::interface::table::{TableOp, TableReply, TableRequest, TableTarget};
use ocssd_lightnvm::{Buffers, Source, Tag, TargetId};
use std::collections::VecDeque;

/// Most questions at once (chosen: more threads than an LSM tree has, each with one).
const QUESTIONS_MAX: u32 = 1_024;

/// Questions and answers.
#[derive(Debug)]
pub struct Questions {
    /// Taken by the target or not, and its answer once there is one.
    asked: Slab<Option<TableReply>>,
    /// Oldest first; none passes another.
    waiting: VecDeque<TableRequest>,
    /// The target had no room for the oldest, and has answered nothing since.
    is_full: bool,
    /// Answers that nobody has fetched.
    unfetched: u32,
}

impl Questions {
    /// None.
    pub fn new() -> Self {
        Self { asked: Slab::new(QUESTIONS_MAX), waiting: VecDeque::new(), is_full: false, unfetched: 0 }
    }

    /// Asks; `None` while too many do.
    pub fn push(&mut self, op: TableOp) -> Option<SlabKey> {
        let key = self.asked.insert(None).ok()?;
        self.waiting.push_back(TableRequest { tag: Tag(key.0), op });
        Some(key)
    }

    /// The answer, if it is there. The question is over then.
    pub fn fetch(&mut self, key: SlabKey) -> Option<TableReply> {
        let reply = (*self.asked.get(key))?;
        self.asked.free(key);
        self.unfetched -= 1;
        Some(reply)
    }

    /// Answers that somebody has to be woken for.
    pub const fn unfetched(&self) -> u32 {
        self.unfetched
    }
}

impl Source<dyn TableTarget> for Questions {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _: Nanos, _: &mut Buffers) -> Option<(TargetId, TableRequest)> {
        let request = if self.is_full { None } else { self.waiting.pop_front() }?;
        Some((TargetId(0), request))
    }

    fn on_refused(&mut self, _: Nanos, _: TargetId, request: TableRequest) {
        self.is_full = true;
        self.waiting.push_front(request);
    }

    fn on_reply(&mut self, _: Nanos, _: TargetId, reply: TableReply, _: &mut Buffers) {
        let answer = self.asked.get_mut(SlabKey(reply.tag.0));
        assert!(answer.is_none(), "question {} was answered twice", reply.tag.0);
        *answer = Some(reply);
        self.unfetched += 1;
        self.is_full = false;
    }

    fn is_finished(&self) -> bool {
        self.unfetched > 0
    }
}
