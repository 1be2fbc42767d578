//! A target with something around each of its calls: what commands it gave, what time they took.
//!
//! Deliberately not here: what is watched (each experiment).

use ocssd_base::Nanos;
use ocssd_lightnvm::counter::Counter;
use ocssd_lightnvm::interface::key_value::{KvLimits, KvTarget};
use ocssd_lightnvm::interface::log_structured::{LogLimits, LogTarget};
use ocssd_lightnvm::interface::table::{TableLimits, TableTarget};
use ocssd_lightnvm::{Admission, Completion, Out, Target};

/// What is done around a call.
pub trait Around {
    /// Makes the call, to which `out` is given.
    fn around<R, T>(&mut self, out: &mut Out<R>, call: impl FnOnce(&mut Out<R>) -> T) -> T;

    /// Counters beside the target's.
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}

/// The target.
pub struct Wrapped<T: ?Sized, A> {
    inner: Box<T>,
    around: A,
}

impl<T: ?Sized, A> Wrapped<T, A> {
    /// Around a target.
    pub const fn new(inner: Box<T>, around: A) -> Self {
        Self { inner, around }
    }
}

impl<T: Target + ?Sized, A: Around> Target for Wrapped<T, A> {
    type Request = T::Request;
    type Reply = T::Reply;

    fn submit(&mut self, now: Nanos, request: &T::Request, out: &mut Out<T::Reply>) -> Admission {
        self.around.around(out, |out| self.inner.submit(now, request, out))
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<T::Reply>) {
        self.around.around(out, |out| self.inner.on_completion(now, completion, out));
    }

    fn on_deadline(&mut self, now: Nanos, out: &mut Out<T::Reply>) {
        self.around.around(out, |out| self.inner.on_deadline(now, out));
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<T::Reply>) {
        self.around.around(out, |out| self.inner.advance(now, out));
    }

    fn deadline(&self) -> Option<Nanos> {
        self.inner.deadline()
    }

    fn has_deadlines(&self) -> bool {
        self.inner.has_deadlines()
    }

    fn check(&self) {
        self.inner.check();
    }

    fn counters(&self) -> Vec<Counter> {
        self.inner.counters().into_iter().chain(self.around.counters()).collect()
    }

    fn summary(&self) -> String {
        self.inner.summary()
    }
}

impl<A: Around + Send> TableTarget for Wrapped<dyn TableTarget, A> {
    fn limits(&self) -> TableLimits {
        self.inner.limits()
    }
}

impl<A: Around> LogTarget for Wrapped<dyn LogTarget, A> {
    fn limits(&self) -> LogLimits {
        self.inner.limits()
    }
}

impl<A: Around> KvTarget for Wrapped<dyn KvTarget, A> {
    fn limits(&self) -> KvLimits {
        self.inner.limits()
    }

    fn used_bytes(&self) -> u64 {
        self.inner.used_bytes()
    }
}
