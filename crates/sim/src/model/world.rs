//! A run of generated requests on a target by the engine's loop, with power cuts, held against a model.
//!
//! The judge is told of requests as the target takes them and of replies as they come; at a cut everything the target
//! shows is asked for. Time is virtual. Deliberately not here: media, and faults of it.

use super::target::ReferenceTarget;
use super::trial::{Found, Requests, Tally};
use super::{Expected, Model};
use crate::contract::{Answerer, Broken};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Host, VirtualClock};
use ocssd_lightnvm::{
    Buffers, ChunkDescriptor, ChunkId, Command, Completion, Device, Geometry, Rejected, Source, Tag, Target,
    TargetId,
};

/// Most requests outstanding (chosen: more than the reference target takes, so that it is full now and then).
const OUTSTANDING_MAX: usize = 20;
/// Longest time between two power cuts, in nanoseconds (chosen: some fifty answers of the reference target).
const UPTIME_NS_MAX: u64 = 4_000_000;

/// A device that nobody asks: a reference target has no media.
#[derive(Debug)]
struct NoDevice {
    geometry: Geometry,
}

impl Device for NoDevice {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        unreachable!("chunk {} of no device", chunk.0)
    }

    fn submit(&mut self, _: Nanos, command: Command, _: &mut Buffers) -> Result<(), Rejected> {
        unreachable!("{command:?} for no device")
    }

    fn deadline(&self) -> Option<Nanos> {
        None
    }

    fn poll_completion(&mut self, _: Nanos, _: &mut Buffers) -> Option<Completion> {
        None
    }
}

struct Outstanding<M: Model> {
    request: M::Request,
    expected: Expected<M::Reply>,
}

/// Requests that are judged: the source of the loop.
struct Judged<'a, M: Model> {
    judge: M,
    requests: &'a mut dyn Requests<M>,
    prng: Prng,
    next_tag: u32,
    outstanding: Vec<Outstanding<M>>,
    /// Taken by the judge, and not yet by the target, which was full; whether it may have room again.
    refused: Option<M::Request>,
    is_full: bool,
    tally: Tally,
    broken: Option<Broken>,
}

impl<M: Model> Source<ReferenceTarget<M>> for Judged<'_, M> {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, M::Request)> {
        if self.is_full || self.broken.is_some() {
            return None;
        }
        if let Some(request) = self.refused.take() {
            return Some((TargetId(0), request));
        }
        if self.outstanding.len() >= OUTSTANDING_MAX {
            return None;
        }
        let tag = Tag(self.next_tag);
        let request = self.requests.next(tag, &mut self.prng, &self.judge, buffers)?;
        self.next_tag += 1;
        let expected = self.judge.apply(&request, buffers);
        self.outstanding.push(Outstanding { request, expected });
        Some((TargetId(0), request))
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, request: M::Request) {
        self.refused = Some(request);
        self.is_full = true;
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: M::Reply, buffers: &mut Buffers) {
        self.is_full = false;
        let tag = M::reply_tag(&reply);
        let Some(nth) = self.outstanding.iter().position(|one| M::tag(&one.request) == tag) else {
            let found = format!("{reply:?}");
            self.broken.get_or_insert(Broken::new("the reply", "one to each request", found));
            return;
        };
        let Outstanding { request, expected } = self.outstanding.swap_remove(nth);
        if let Err(broken) = self.judge.agrees(&expected, &reply, buffers) {
            self.broken.get_or_insert(broken);
        }
        let is_refused = M::is_refused(&reply);
        self.tally.refused += u64::from(is_refused);
        self.tally.succeeded += u64::from(!is_refused);
        self.judge.answered(&reply);
        self.requests.answered(&request, &reply, buffers);
    }

    fn is_finished(&self) -> bool {
        self.broken.is_some() || (self.outstanding.is_empty() && self.refused.is_none())
    }
}

type ReferenceHost<M> = Host<NoDevice, VirtualClock, ReferenceTarget<M>>;

impl<M: Model> Answerer<M::Request, M::Reply> for ReferenceHost<M> {
    fn buffers(&mut self) -> &mut Buffers {
        self.buffers_mut()
    }

    fn ask(&mut self, request: M::Request) -> Result<M::Reply, Broken> {
        Ok(Self::ask(self, request))
    }
}

impl<M: Model> Judged<'_, M> {
    /// The power goes, and everything the target shows is held against what is promised.
    fn power_cut(&mut self, host: &mut ReferenceHost<M>, bug: Option<fn(&mut M)>) -> Result<(), Broken> {
        host.target_mut(TargetId(0)).power_cut(bug);
        host.buffers_mut().reclaim();
        self.outstanding.clear();
        (self.refused, self.is_full) = (None, false);
        let observation = self.judge.observe(host)?;
        self.judge.may_hold(&observation)?;
        self.judge.settle(&observation);
        self.tally.cuts += 1;
        self.requests.power_cut(&self.judge, host.buffers_mut());
        Ok(())
    }
}

/// Runs requests on a reference target that is as `model`, through `cuts` power cuts at any time; `bug` is planted before each.
///
/// # Errors
/// The first promise that was broken.
pub fn run<M: Model>(
    seed: u64,
    model: M,
    buffers: Buffers,
    requests: &mut dyn Requests<M>,
    cuts: u32,
    bug: Option<fn(&mut M)>,
) -> Result<Tally, Box<Found>> {
    let prng = Prng::new(seed);
    let device = NoDevice { geometry: Geometry::example(1, 1, 4, 24, 24) };
    let mut host = Host::new(device, VirtualClock::default(), buffers);
    host.add(Box::new(ReferenceTarget::new(model.clone(), &prng)));
    let mut uptimes = prng.split("uptime");
    let mut judged = Judged {
        judge: model,
        requests,
        prng: prng.split("requests"),
        next_tag: 0,
        outstanding: Vec::new(),
        refused: None,
        is_full: false,
        tally: Tally::default(),
        broken: None,
    };
    for step in 0..cuts {
        let stop_at = Nanos(host.clock().now().0 + uptimes.below(UPTIME_NS_MAX));
        host.run(&mut judged, stop_at);
        host.target(TargetId(0)).check();
        let broken = judged.broken.take().map_or_else(|| judged.power_cut(&mut host, bug), Err);
        broken.map_err(|broken| Box::new(Found { seed, step, broken }))?;
    }
    Ok(judged.tally)
}
