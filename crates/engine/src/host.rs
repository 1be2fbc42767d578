//! What the loop runs on: one device, the targets on it, one clock, the buffers they share.
//!
//! A turn (`turn`) is: completions, arrivals, target timers, then every target goes on; then the loop waits for the nearest
//! deadline. Equal times: completions before arrivals, targets in the order they were added, everything else first in, first
//! out. A turn that left something to do is followed by another at the same time. Commands and replies are taken from a
//! target after each call; the commands of a host's only target go to the device at once, those of several in the order of
//! the targets.
//!
//! Deliberately not here: threads. Several hosts on several threads share nothing.

use crate::caller::Caller;
use crate::clock::Clock;
use crate::observer::Unobserved;
use ocssd_base::Nanos;
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::{Buffers, Command, Device, Out, Source, TARGET_TAG_BITS, Target, TargetId};

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The source is finished.
    Finished,
    /// The time given was reached.
    Stopped,
    /// Nobody has a deadline and the source is not finished: requests were lost, a bug.
    Stuck,
}

/// Most targets of a host: what is left of a tag.
const TARGETS_MAX: usize = 1 << (32 - TARGET_TAG_BITS);
/// Commands a target gives in one call (chosen: a vector's worth of chunks, small enough to stay in the nearest cache).
pub(crate) const COMMANDS_MAX: usize = 64;

pub(crate) struct Lane<T: ?Sized> {
    pub(crate) target: Box<T>,
    /// Commands the device had no room for, oldest first; tagged for the device.
    pub(crate) waiting: Vec<Command>,
    /// The source waits for room in the target.
    pub(crate) full: bool,
    /// The target may have deadlines.
    pub(crate) timed: bool,
}

impl<T: Target + ?Sized> Lane<T> {
    fn new(target: Box<T>) -> Self {
        Self { timed: target.has_deadlines(), target, waiting: Vec::new(), full: false }
    }
}

/// A device with its targets of one interface, and the loop that drives them.
pub struct Host<D, C, T: Target + ?Sized = dyn BlockTarget> {
    pub(crate) device: D,
    pub(crate) clock: C,
    /// What targets give, and the buffers.
    pub(crate) out: Out<T::Reply>,
    pub(crate) lanes: Vec<Lane<T>>,
    /// Some target may have deadlines.
    pub(crate) timed: bool,
    /// Some target may be full.
    pub(crate) full: bool,
    /// Some target can prepare for requests.
    pub(crate) prefetches: bool,
    /// Requests until more are announced.
    pub(crate) announced: usize,
    pub(crate) turns: u64,
}

impl<D: Device, C: Clock, T: Target + ?Sized> Host<D, C, T> {
    /// A host without targets.
    #[must_use]
    pub const fn new(device: D, clock: C, buffers: Buffers) -> Self {
        Self {
            device,
            clock,
            out: Out::new(buffers, 0),
            lanes: Vec::new(),
            timed: false,
            full: false,
            prefetches: false,
            announced: 0,
            turns: 0,
        }
    }

    /// Adds a target.
    ///
    /// # Panics
    /// If there are 256 already.
    pub fn add(&mut self, target: Box<T>) -> TargetId {
        assert!(self.lanes.len() < TARGETS_MAX, "a host has at most {TARGETS_MAX} targets");
        self.lanes.push(Lane::new(target));
        self.note_targets();
        TargetId(u32::try_from(self.lanes.len() - 1).expect("fewer than 256 targets"))
    }

    /// Puts another target in the place of one, which comes back: it is left, or others are to come. Commands the old one
    /// has given must have ended, and what it was asked must have been answered.
    ///
    /// # Panics
    /// If it is not of this host, or a command of it waits for room in the device.
    pub fn replace(&mut self, id: TargetId, target: Box<T>) -> Box<T> {
        let lane = &mut self.lanes[id.index()];
        assert!(
            lane.waiting.is_empty(),
            "target {} is left with a command that the device did not take",
            id.0
        );
        let left = std::mem::replace(lane, Lane::new(target)).target;
        self.note_targets();
        left
    }

    /// Drops every target where it is, as a power cut does: what the targets had not given to the device is gone.
    pub fn drop_targets(&mut self) {
        self.lanes.clear();
        self.note_targets();
    }

    fn note_targets(&mut self) {
        self.timed = self.lanes.iter().any(|lane| lane.timed);
        self.prefetches = self.lanes.iter().any(|lane| lane.target.prefetches());
    }

    /// A target.
    ///
    /// # Panics
    /// If it is not of this host.
    #[inline]
    #[must_use]
    pub fn target(&self, id: TargetId) -> &T {
        self.lanes[id.index()].target.as_ref()
    }

    /// A target, to change between turns.
    ///
    /// # Panics
    /// If it is not of this host.
    pub fn target_mut(&mut self, id: TargetId) -> &mut T {
        self.lanes[id.index()].target.as_mut()
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device, to change between runs.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// The clock, for a caller that gives the turns itself and waits between them.
    pub fn clock_mut(&mut self) -> &mut C {
        &mut self.clock
    }

    /// The buffers.
    pub const fn buffers(&self) -> &Buffers {
        &self.out.buffers
    }

    /// The buffers, for sources that take theirs before a run.
    pub fn buffers_mut(&mut self) -> &mut Buffers {
        &mut self.out.buffers
    }

    /// The buffers, while something else of the host is looked at. Give them back before the next run.
    #[must_use]
    pub fn take_buffers(&mut self) -> Buffers {
        let empty = Buffers::new(self.out.buffers.format());
        std::mem::replace(&mut self.out.buffers, empty)
    }

    /// Gives the buffers back.
    pub fn return_buffers(&mut self, buffers: Buffers) {
        self.out.buffers = buffers;
    }

    /// The blocking facade over this host's device, clock and buffers: for mounts before a target is added.
    pub fn caller(&mut self) -> Caller<'_, D, C> {
        let (device, clock, buffers) = (&mut self.device, &mut self.clock, &mut self.out.buffers);
        Caller { device, clock, buffers, cut_at: None }
    }

    /// The same host under another clock, which must not be earlier.
    #[must_use]
    pub fn with_clock<C2: Clock>(self, clock: C2) -> Host<D, C2, T> {
        assert!(clock.now() >= self.clock.now(), "time would fall");
        let Self { device, out, lanes, timed, full, prefetches, announced, turns, .. } = self;
        Host { device, clock, out, lanes, timed, full, prefetches, announced, turns }
    }

    /// Lets device and targets finish what goes on behind their replies: a cache that drains, a buffer that is written.
    ///
    /// # Panics
    /// If a target still owes a reply.
    pub fn settle(&mut self) {
        loop {
            while self.step_observed(&mut Nobody, &mut Unobserved) {}
            let Some(at) = self.device.deadline() else { break };
            self.clock.wait_until(at);
        }
    }

    /// Turns of the loop so far.
    pub const fn turns(&self) -> u64 {
        self.turns
    }

    /// When device or targets next have something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        let timer = if self.timed { self.timer() } else { None };
        timer.into_iter().chain(self.device.deadline()).min()
    }

    /// Gives the device back, with what it holds.
    pub fn into_device(self) -> D {
        self.device
    }
}

/// Asks nothing, and is owed nothing.
struct Nobody;

impl<T: Target + ?Sized> Source<T> for Nobody {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, T::Request)> {
        None
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, _request: T::Request) {
        unreachable!("target {} refused a request that nobody made", target.0);
    }

    fn on_reply(&mut self, _now: Nanos, target: TargetId, _reply: T::Reply, _buffers: &mut Buffers) {
        panic!("target {} owes a reply, and its host settles", target.0);
    }

    fn is_finished(&self) -> bool {
        true
    }
}
