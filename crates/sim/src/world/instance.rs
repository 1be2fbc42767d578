//! One target of a world, and what it promises: its units, its contract, what waits for it and what it answered.
//!
//! A world has one as a rule, now and then two on units of their own, which know nothing of each other. Deliberately not here:
//! what they share, the drive and its power (`world`).

use crate::contract::Contract;
use ocssd_base::Nanos;
use ocssd_engine::Requests;
use ocssd_lightnvm::{Buffers, ChunkId, Geometry, PuId, Source, Target, TargetId};

/// A target and its contract.
pub(super) struct Instance<C: Contract> {
    pub contract: C,
    /// The units the target is on.
    pub units: Vec<PuId>,
    /// Its place among the host's targets is the instance's among the world's.
    pub target: Option<TargetId>,
    /// What waits for the target, and what it answered.
    pub requests: Requests<C::Target>,
    /// Good chunks at the first mount.
    pub chunks_at_first: Option<u32>,
    /// Good chunks at the last mount.
    pub chunks_at_last: Option<u32>,
}

impl<C: Contract> Instance<C> {
    pub(super) fn new(contract: C, units: Vec<PuId>) -> Self {
        Self {
            contract,
            units,
            target: None,
            requests: Requests::default(),
            chunks_at_first: None,
            chunks_at_last: None,
        }
    }

    /// The same promises, nothing mounted.
    pub(super) fn unmounted(&self) -> Self
    where
        C: Clone,
    {
        let mut other = Self::new(self.contract.clone(), self.units.clone());
        (other.chunks_at_first, other.chunks_at_last) = (self.chunks_at_first, self.chunks_at_last);
        other
    }

    /// True if a chunk is on its units.
    pub(super) fn has(&self, chunk: ChunkId, geometry: &Geometry) -> bool {
        self.units.contains(&PuId(chunk.0 / geometry.chunks_per_pu))
    }
}

/// What is asked of one target of several.
pub(super) struct OfTarget<'a, T: Target + ?Sized> {
    pub requests: &'a mut Requests<T>,
    pub target: TargetId,
}

impl<T: Target + ?Sized> Source<T> for OfTarget<'_, T> {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, T::Request)> {
        let (_, request) = self.requests.poll_request(now, buffers)?;
        Some((self.target, request))
    }

    fn on_refused(&mut self, now: Nanos, target: TargetId, request: T::Request) {
        assert_eq!(target, self.target, "a request is refused that another was asked");
        self.requests.on_refused(now, target, request);
    }

    fn on_reply(&mut self, now: Nanos, target: TargetId, reply: T::Reply, buffers: &mut Buffers) {
        assert_eq!(target, self.target, "a reply is another target's");
        self.requests.on_reply(now, target, reply, buffers);
    }

    fn is_finished(&self) -> bool {
        self.requests.is_finished()
    }
}

/// What is asked of all targets of a world.
pub(super) struct Asked<'a, C: Contract>(pub &'a mut [Instance<C>]);

impl<C: Contract> Asked<'_, C> {
    fn of(&mut self, target: TargetId) -> OfTarget<'_, C::Target> {
        OfTarget { requests: &mut self.0[target.index()].requests, target }
    }
}

impl<C: Contract> Source<C::Target> for Asked<'_, C> {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(
        &mut self,
        now: Nanos,
        buffers: &mut Buffers,
    ) -> Option<(TargetId, <C::Target as Target>::Request)> {
        self.0.iter_mut().find_map(|instance| {
            let target = instance.target.expect("all targets are mounted");
            OfTarget { requests: &mut instance.requests, target }.poll_request(now, buffers)
        })
    }

    fn on_refused(&mut self, now: Nanos, target: TargetId, request: <C::Target as Target>::Request) {
        self.of(target).on_refused(now, target, request);
    }

    fn on_reply(
        &mut self,
        now: Nanos,
        target: TargetId,
        reply: <C::Target as Target>::Reply,
        buffers: &mut Buffers,
    ) {
        self.of(target).on_reply(now, target, reply, buffers);
    }

    fn is_finished(&self) -> bool {
        self.0.iter().all(|instance| instance.requests.is_finished())
    }
}
