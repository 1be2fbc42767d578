//! A target of keys and values, and the processor time its own code takes: what a host, or the drive's controller, would spend.
//!
//! Every call is timed by the clock on the wall; the share of a run's wall time that the calls took, times the processor time of
//! the process, is what the target took. So other programs on the same processors make no difference but noise. Deliberately not
//! here: the drive's model and the workload, which the same thread runs.

use ocssd_base::Nanos;
use ocssd_lightnvm::counter::Counter;
use ocssd_lightnvm::interface::key_value::{KvLimits, KvReply, KvRequest, KvTarget};
use ocssd_lightnvm::{Admission, Completion, Out, Target};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Wall time of all calls so far; clones are the same.
#[derive(Clone, Default)]
pub struct Spent(Rc<Cell<Duration>>);

impl Spent {
    /// Since the target was made.
    pub fn get(&self) -> Duration {
        self.0.get()
    }

    fn during<T>(&self, call: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = call();
        self.0.set(self.0.get() + began.elapsed());
        result
    }
}

/// The target.
pub struct Metered {
    target: Box<dyn KvTarget>,
    spent: Spent,
}

impl Metered {
    /// Around a target.
    pub fn new(target: Box<dyn KvTarget>) -> Self {
        Self { target, spent: Spent::default() }
    }

    /// What it takes from now on.
    pub fn spent(&self) -> Spent {
        self.spent.clone()
    }
}

impl Target for Metered {
    type Request = KvRequest;
    type Reply = KvReply;

    fn submit(&mut self, now: Nanos, request: &KvRequest, out: &mut Out<KvReply>) -> Admission {
        self.spent.during(|| self.target.submit(now, request, out))
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<KvReply>) {
        self.spent.during(|| self.target.on_completion(now, completion, out));
    }

    fn on_deadline(&mut self, now: Nanos, out: &mut Out<KvReply>) {
        self.spent.during(|| self.target.on_deadline(now, out));
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<KvReply>) {
        self.spent.during(|| self.target.advance(now, out));
    }

    fn deadline(&self) -> Option<Nanos> {
        self.target.deadline()
    }

    fn has_deadlines(&self) -> bool {
        self.target.has_deadlines()
    }

    fn check(&self) {
        self.target.check();
    }

    fn counters(&self) -> Vec<Counter> {
        self.target.counters()
    }

    fn summary(&self) -> String {
        self.target.summary()
    }
}

impl KvTarget for Metered {
    fn limits(&self) -> KvLimits {
        self.target.limits()
    }
}
