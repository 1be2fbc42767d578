//! A generator with its target among those of a host with targets of any interface.
//!
//! Deliberately not here: who else asks (`joined`).

use crate::generator::Generator;
use crate::generator::closed_loop::{ClosedLoop, Phase};
use crate::lsm::Lsm;
use ocssd_base::Nanos;
use ocssd_lightnvm::interface::{AnyReply, AnyRequest, AnyTarget, OfInterface};
use ocssd_lightnvm::{Buffers, Source, TargetId};
use std::marker::PhantomData;

/// Who asks one target, whatever its interface, and measures what is answered.
pub trait Asker: Source<AnyTarget> {
    /// The target.
    fn target(&self) -> TargetId;

    /// Makes only the requests that load, or the others, too ([`ClosedLoop::load_only`]).
    fn load_only(&mut self, loads_only: bool);

    /// Makes no more requests.
    fn stop(&mut self);

    /// True once it was stopped: it had more to ask.
    fn is_stopped(&self) -> bool;

    /// What was measured so far.
    fn report(&self) -> Report<'_>;

    /// The first failure in words.
    fn failure(&self) -> Option<&str>;

    /// Bytes that went to the target and were answered.
    fn bytes_stored(&self) -> u64;

    /// How far it is, in thousandths, and how many requests were answered.
    fn progress(&self) -> (u64, u64);
}

/// What was measured of one who asks.
#[derive(Clone, Copy, Debug)]
pub enum Report<'a> {
    /// Phases of a generator.
    Phases(&'a [Phase]),
    /// A database, which measures in words of its own.
    Database(&'a Lsm),
}

impl Report<'_> {
    /// When the last phase ended, if one began.
    #[must_use]
    pub fn ended(&self) -> Option<Nanos> {
        match self {
            Self::Phases(phases) => phases.last().map(|phase| phase.ended),
            Self::Database(lsm) => lsm.phases().last().map(|phase| phase.ended),
        }
    }
}

/// A closed loop of a generator on a target of this interface.
pub struct OnTarget<G: Generator, T: ?Sized> {
    source: ClosedLoop<G>,
    target: TargetId,
    interface: PhantomData<fn(&T)>,
}

impl<G: Generator, T: ?Sized> OnTarget<G, T> {
    /// This loop asks this target.
    #[must_use]
    pub const fn new(source: ClosedLoop<G>, target: TargetId) -> Self {
        Self { source, target, interface: PhantomData }
    }
}

impl<G, T> Source<AnyTarget> for OnTarget<G, T>
where
    G: Generator<Request = T::Request, Reply = T::Reply>,
    T: OfInterface<Reply: Copy> + ?Sized,
{
    fn next_arrival(&self) -> Option<Nanos> {
        Source::<T>::next_arrival(&self.source)
    }

    fn poll_request(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, AnyRequest)> {
        let (_, request) = Source::<T>::poll_request(&mut self.source, now, buffers)?;
        Some((self.target, T::ask(request)))
    }

    fn on_refused(&mut self, now: Nanos, target: TargetId, request: AnyRequest) {
        let request = T::request(&request).expect("what it asked is of its target's interface");
        Source::<T>::on_refused(&mut self.source, now, target, *request);
    }

    fn on_reply(&mut self, now: Nanos, target: TargetId, reply: AnyReply, buffers: &mut Buffers) {
        let reply = T::reply(&reply).expect("its target answers in its own interface");
        Source::<T>::on_reply(&mut self.source, now, target, *reply, buffers);
    }

    fn is_finished(&self) -> bool {
        Source::<T>::is_finished(&self.source)
    }
}

impl<G, T> Asker for OnTarget<G, T>
where
    G: Generator<Request = T::Request, Reply = T::Reply>,
    T: OfInterface<Reply: Copy> + ?Sized,
{
    fn target(&self) -> TargetId {
        self.target
    }

    fn load_only(&mut self, loads_only: bool) {
        self.source.load_only(loads_only);
    }

    fn stop(&mut self) {
        self.source.stop();
    }

    fn is_stopped(&self) -> bool {
        self.source.is_stopped()
    }

    fn report(&self) -> Report<'_> {
        Report::Phases(self.source.phases())
    }

    fn failure(&self) -> Option<&str> {
        self.source.failure()
    }

    fn bytes_stored(&self) -> u64 {
        self.source.bytes_stored()
    }

    fn progress(&self) -> (u64, u64) {
        (self.source.thousandths(), self.source.answered())
    }
}
