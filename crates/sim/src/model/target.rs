//! A model as a target: answers what the interface promises, in virtual time, and keeps everything in memory.
//!
//! It changes things when it takes a request and answers later, in any order; what it thinks is over may be durable before
//! the host hears of it. At a power cut it keeps what is durable and drops the rest. Deliberately not here: a device; it
//! gives no commands.

use super::{Expected, Model};
use crate::kv::KvModel;
use crate::log::LogModel;
use crate::table::TableModel;
use crate::zoned::ZonedModel;
use ocssd_base::{Nanos, Prng};
use ocssd_lightnvm::interface::key_value::{KvLimits, KvTarget};
use ocssd_lightnvm::interface::log_structured::{LogLimits, LogTarget};
use ocssd_lightnvm::interface::table::{TableLimits, TableTarget};
use ocssd_lightnvm::interface::zoned::{ZoneDescriptor, ZoneGeometry, ZonedTarget};
use ocssd_lightnvm::{Admission, Completion, Out, Tag, Target};

/// Most requests it has at once (chosen: more than a trial has outstanding, so that a full target is seen now and then by one
/// with more).
pub const REQUESTS_MAX: usize = 16;
/// Longest time to an answer, in nanoseconds (chosen: a program of a page, so that a power cut finds some of every age).
const ANSWER_NS_MAX: u64 = 1_000_000;
/// One request in so many makes everything durable that is over (chosen: often enough that a cut finds both).
const PERSIST_ONE_IN: u64 = 16;
/// The tag of its own flushes: no host uses it.
const OWN_TAG: Tag = Tag(u32::MAX);

#[derive(Debug)]
struct Taken<M: Model> {
    due: Nanos,
    answer: Expected<M::Reply>,
}

/// The target.
#[derive(Debug)]
pub struct ReferenceTarget<M: Model> {
    model: M,
    prng: Prng,
    taken: Vec<Taken<M>>,
}

impl<M: Model> ReferenceTarget<M> {
    /// A target that holds what the model does, with randomness of `prng`.
    #[must_use]
    pub fn new(model: M, prng: &Prng) -> Self {
        Self { model, prng: prng.split("reference target"), taken: Vec::new() }
    }

    /// What it holds.
    pub const fn model(&self) -> &M {
        &self.model
    }

    /// The power goes and comes back: what is not durable is lost, and what it was asked stays unanswered. A bug may be planted
    /// before.
    pub fn power_cut(&mut self, bug: Option<fn(&mut M)>) {
        if let Some(bug) = bug {
            bug(&mut self.model);
        }
        self.taken.clear();
        self.model.cut();
    }

    /// Answers what is due.
    fn answer(&mut self, now: Nanos, out: &mut Out<M::Reply>) {
        while let Some(nth) = self.taken.iter().position(|taken| taken.due <= now) {
            let Taken { answer, .. } = self.taken.swap_remove(nth);
            answer.deliver(&mut out.buffers);
            self.model.answered(&answer.reply);
            out.reply(answer.reply);
        }
    }
}

impl<M: Model> Target for ReferenceTarget<M> {
    type Request = M::Request;
    type Reply = M::Reply;

    fn submit(&mut self, now: Nanos, request: &M::Request, out: &mut Out<M::Reply>) -> Admission {
        if self.taken.len() == REQUESTS_MAX {
            return Admission::Full;
        }
        if self.prng.below(PERSIST_ONE_IN) == 0 {
            let flushed = self.model.apply(&M::flush(OWN_TAG), &out.buffers).reply;
            self.model.answered(&flushed);
        }
        let answer = self.model.apply(request, &out.buffers);
        // What is over inside, and not yet answered, may survive.
        if self.prng.below(2) == 0 {
            self.model.answered(&answer.reply);
        }
        let due = Nanos(now.0 + 1 + self.prng.below(ANSWER_NS_MAX));
        self.taken.push(Taken { due, answer });
        Admission::Taken
    }

    fn on_completion(&mut self, _now: Nanos, completion: Completion, _out: &mut Out<M::Reply>) {
        unreachable!("a target without commands got completion {}", completion.tag.0);
    }

    fn on_deadline(&mut self, now: Nanos, out: &mut Out<M::Reply>) {
        self.answer(now, out);
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<M::Reply>) {
        self.answer(now, out);
    }

    fn deadline(&self) -> Option<Nanos> {
        self.taken.iter().map(|taken| taken.due).min()
    }

    fn check(&self) {
        assert!(self.taken.len() <= REQUESTS_MAX, "more requests than places");
    }
}

impl ZonedTarget for ReferenceTarget<ZonedModel> {
    fn zone_geometry(&self) -> ZoneGeometry {
        *self.model.geometry()
    }

    fn zone(&self, zone: u32) -> ZoneDescriptor {
        self.model.descriptor(zone)
    }
}

impl LogTarget for ReferenceTarget<LogModel> {
    fn limits(&self) -> LogLimits {
        *self.model.limits()
    }
}

impl TableTarget for ReferenceTarget<TableModel> {
    fn limits(&self) -> TableLimits {
        *self.model.limits()
    }
}

impl KvTarget for ReferenceTarget<KvModel> {
    fn limits(&self) -> KvLimits {
        *self.model.limits()
    }

    fn used_bytes(&self) -> u64 {
        self.model.used_bytes()
    }
}
