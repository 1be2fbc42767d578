//! The loop: one device, the targets on it, one clock, one source of requests.
//!
//! A turn is: completions and the replies they bring, arrivals, target timers, commands, replies that needed no device;
//! then wait for the nearest deadline. Equal times: completions before arrivals, targets in the order they were added,
//! everything else first in, first out. A turn that left something to do is followed by another at the same time.
//!
//! Most requests are one command, and most ends of a command one reply. The target of a host that has no other may hand
//! both over at once (`submit_direct`, `complete_direct`) and is then *quiet*: it is asked for nothing until it is told
//! something again. With several targets every turn asks each, so that their order stays as above.
//!
//! Deliberately not here: threads. Several hosts on several threads share nothing.

use crate::clock::Clock;
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockRequest, BlockTarget};
use ocssd_lightnvm::{Buffers, Command, Completion, Device, Source, Tag, Taken, TargetId};

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

/// Commands of one target keep their tags below this; above it is the target's number.
const TAG_BITS: u32 = 24;
/// Most targets of a host: what is left of a tag.
const TARGETS_MAX: usize = 1 << (32 - TAG_BITS);
/// Most pieces of one kind of work in a turn, so that no kind starves the others.
const TURN_MAX: u32 = 4096;
/// Requests announced to a target at once: about as many misses as a processor has outstanding (10 to 16), and few enough
/// to stay in its cache until they are asked (chosen).
const ANNOUNCED_MAX: usize = 16;

/// True of a target that can say of a block whether it is mapped.
fn has_map(target: &dyn BlockTarget) -> bool {
    target.block_count() > 0 && target.is_mapped(0).is_some()
}

struct Lane {
    target: Box<dyn BlockTarget>,
    /// A command the device had no room for.
    stalled: Option<Command>,
    /// The source waits for room in the target.
    full: bool,
    /// The target may have deadlines.
    timed: bool,
}

/// A device with its targets, and the loop that drives them.
pub struct Host<D, C> {
    device: D,
    clock: C,
    buffers: Buffers,
    lanes: Vec<Lane>,
    /// Some target may have deadlines.
    timed: bool,
    /// Some target may be full.
    full: bool,
    /// Some target has a map, in which it may prepare for requests.
    maps: bool,
    /// Requests until more are announced.
    announced: usize,
    /// The only target said that it has nothing to give, was told nothing since, and no command of it waits.
    quiet: bool,
    /// A command has ended since targets were last asked for replies.
    completed: bool,
    turns: u64,
}

impl<D: Device, C: Clock> Host<D, C> {
    /// A host without targets.
    #[must_use]
    pub const fn new(device: D, clock: C, buffers: Buffers) -> Self {
        Self {
            device,
            clock,
            buffers,
            lanes: Vec::new(),
            timed: false,
            full: false,
            maps: false,
            announced: 0,
            quiet: false,
            completed: false,
            turns: 0,
        }
    }

    /// Adds a target.
    ///
    /// # Panics
    /// If there are 256 already.
    pub fn add(&mut self, target: Box<dyn BlockTarget>) -> TargetId {
        assert!(self.lanes.len() < TARGETS_MAX, "a host has at most {TARGETS_MAX} targets");
        let timed = target.has_deadlines();
        self.lanes.push(Lane { target, stalled: None, full: false, timed });
        self.timed |= timed;
        self.maps |= self.lanes.last().is_some_and(|lane| has_map(lane.target.as_ref()));
        self.quiet = false;
        TargetId(u32::try_from(self.lanes.len() - 1).expect("fewer than 256 targets"))
    }

    /// Puts another target in the place of one, which comes back: it is left, or others are to come. Commands the old one
    /// has given must have ended, and what it was asked must have been answered.
    ///
    /// # Panics
    /// If it is not of this host, or a command of it waits for room in the device.
    pub fn replace(&mut self, id: TargetId, target: Box<dyn BlockTarget>) -> Box<dyn BlockTarget> {
        let lane = &mut self.lanes[id.index()];
        assert!(
            lane.stalled.is_none(),
            "target {} is left with a command that the device did not take",
            id.0
        );
        lane.timed = target.has_deadlines();
        lane.full = false;
        let left = std::mem::replace(&mut lane.target, target);
        self.timed = self.lanes.iter().any(|lane| lane.timed);
        self.maps = self.lanes.iter().any(|lane| has_map(lane.target.as_ref()));
        self.quiet = false;
        left
    }

    /// A target.
    ///
    /// # Panics
    /// If it is not of this host.
    #[inline]
    #[must_use]
    pub fn target(&self, id: TargetId) -> &dyn BlockTarget {
        self.lanes[id.index()].target.as_ref()
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

    /// The buffers, for sources that take theirs before a run.
    pub fn buffers_mut(&mut self) -> &mut Buffers {
        &mut self.buffers
    }

    /// The buffers, while something else of the host is looked at. Give them back before the next run.
    #[must_use]
    pub fn take_buffers(&mut self) -> Buffers {
        let empty = Buffers::new(self.buffers.format());
        std::mem::replace(&mut self.buffers, empty)
    }

    /// Gives the buffers back.
    pub fn return_buffers(&mut self, buffers: Buffers) {
        self.buffers = buffers;
    }

    /// The same host under another clock, which must not be earlier.
    #[must_use]
    pub fn with_clock<C2: Clock>(self, clock: C2) -> Host<D, C2> {
        assert!(clock.now() >= self.clock.now(), "time would fall");
        let Self { device, buffers, lanes, timed, full, maps, announced, quiet, completed, turns, .. } = self;
        Host { device, clock, buffers, lanes, timed, full, maps, announced, quiet, completed, turns }
    }

    /// Lets device and targets finish what goes on behind their replies: a cache that drains, a buffer that is written.
    ///
    /// # Panics
    /// If a target still owes a reply.
    pub fn settle(&mut self) {
        loop {
            let now = self.clock.now();
            while let Some(completion) = self.device.poll_completion(now, &mut self.buffers) {
                self.tell(now, completion);
            }
            self.commands(now);
            for lane in &mut self.lanes {
                assert!(lane.target.poll_reply().is_none(), "a settled host owes no reply");
            }
            let Some(at) = self.device.deadline() else { break };
            self.clock.wait_until(at);
        }
        self.completed = false;
    }

    /// Turns of the loop so far.
    pub const fn turns(&self) -> u64 {
        self.turns
    }

    /// Runs `source` until it is finished, or until `stop_at`.
    ///
    /// Generic over the source: in the hot loop of a simulation its calls are inlined.
    pub fn run<S: Source>(&mut self, source: &mut S, stop_at: Nanos) -> RunEnd {
        loop {
            let now = self.clock.now();
            if now >= stop_at {
                return RunEnd::Stopped;
            }
            self.turns += 1;
            let busy = self.turn(now, source);
            if busy {
                continue;
            }
            if source.is_finished() {
                return RunEnd::Finished;
            }
            if !self.wait(source, stop_at) {
                return RunEnd::Stuck;
            }
        }
    }

    /// One turn at the clock's time, for a caller that waits by itself: for sockets, say. True if another is needed at once;
    /// else nothing happens before [`Self::next_deadline`], unless the source has something new.
    pub fn step<S: Source>(&mut self, source: &mut S) -> bool {
        self.turns += 1;
        let now = self.clock.now();
        self.turn(now, source)
    }

    /// When device or targets next have something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        let timer = if self.timed { self.timer() } else { None };
        timer.into_iter().chain(self.device.deadline()).min()
    }

    /// One turn at `now`; true if another is needed at the same time.
    fn turn<S: Source>(&mut self, now: Nanos, source: &mut S) -> bool {
        for _ in 0..TURN_MAX {
            // Asked only under a clock that can be late: virtual time takes everything when it is due.
            let due = if C::IS_VIRTUAL { None } else { self.device.deadline() };
            let Some(completion) = self.device.poll_completion(now, &mut self.buffers) else { break };
            self.clock.note_late(now.saturating_since(due.unwrap_or(now)));
            self.complete(now, completion, source);
        }
        let completed = std::mem::take(&mut self.completed);
        if completed {
            self.replies(now, source);
        }
        let (taken, more) = self.arrivals(now, source);
        let timed = self.timed && self.timers(now);
        if self.quiet {
            return more;
        }
        self.commands(now);
        // Answered without the device, or as room was found for commands: the next request may come at once.
        let answered = (taken || timed || completed) && self.replies(now, source);
        answered | more | timed
    }

    fn timers(&mut self, now: Nanos) -> bool {
        let mut any = false;
        for lane in &mut self.lanes {
            if lane.timed && lane.target.deadline().is_some_and(|at| at <= now) {
                lane.target.on_deadline(now);
                self.quiet = false;
                any = true;
            }
        }
        any
    }

    /// Passes an end to its target, and the reply it brings to the source.
    #[inline]
    fn complete<S: Source>(&mut self, now: Nanos, completion: Completion, source: &mut S) {
        let [lane] = self.lanes.as_mut_slice() else { return self.tell(now, completion) };
        assert!(completion.tag.0 >> TAG_BITS == 0, "a command of a target that is not there ended");
        let reply = lane.target.complete_direct(now, completion, &mut self.buffers);
        self.quiet = reply.is_some() && lane.stalled.is_none();
        let Some(reply) = reply else {
            self.completed = true;
            return;
        };
        lane.full = false;
        source.on_reply(now, TargetId(0), reply, &mut self.buffers);
    }

    /// Passes an end to its target.
    #[inline(never)]
    fn tell(&mut self, now: Nanos, mut completion: Completion) {
        let lane = &mut self.lanes[TargetId(completion.tag.0 >> TAG_BITS).index()];
        completion.tag = Tag(completion.tag.0 & ((1 << TAG_BITS) - 1));
        lane.target.on_completion(now, completion, &mut self.buffers);
        self.quiet = false;
        self.completed = true;
    }

    /// Whether any request was taken, and whether more wait than a turn takes.
    fn arrivals<S: Source>(&mut self, now: Nanos, source: &mut S) -> (bool, bool) {
        for count in 0..TURN_MAX {
            // Looked at where it is: a copy of what was just written in parts makes the processor wait.
            let polled = source.poll_request(now, &mut self.buffers);
            let Some((id, request)) = &polled else { return (count > 0, false) };
            if !self.submit(now, *id, request) {
                (self.lanes[id.index()].full, self.full) = (true, true);
                source.on_refused(now, *id, *request);
                return (count > 0, false);
            }
            if self.maps {
                self.announce(source);
            }
        }
        (true, true)
    }

    /// Tells a target what it will be asked, once what was announced last may have been asked.
    #[inline(always)]
    fn announce<S: Source>(&mut self, source: &S) {
        self.announced = self.announced.wrapping_sub(1);
        if self.announced >= ANNOUNCED_MAX {
            self.announce_next(source);
        }
    }

    #[inline(never)]
    fn announce_next<S: Source>(&mut self, source: &S) {
        let mut blocks = [0; ANNOUNCED_MAX];
        self.announced = ANNOUNCED_MAX - 1;
        if let Some((id, count)) = source.expected(&mut blocks) {
            self.lanes[id.index()].target.expect(&blocks[..count]);
        }
    }

    /// Gives a request to its target; false if that has no room.
    #[inline(always)]
    fn submit(&mut self, now: Nanos, id: TargetId, request: &BlockRequest) -> bool {
        let alone = self.lanes.len() == 1;
        let lane = &mut self.lanes[id.index()];
        // Behind a command that waits for room nothing goes to the device.
        if !alone || lane.stalled.is_some() {
            self.quiet = false;
            return lane.target.submit(now, *request).is_ok();
        }
        match lane.target.submit_direct(now, request, &mut self.buffers) {
            Taken::Command(command) => {
                assert!(command.tag.0 >> TAG_BITS == 0, "a target's tags have 24 bits");
                self.quiet = self.offer(now, 0, command);
                true
            }
            other => {
                self.quiet = false;
                matches!(other, Taken::Queued)
            }
        }
    }

    #[inline(never)]
    fn commands(&mut self, now: Nanos) {
        for (index, number) in (0..self.lanes.len()).zip(0u32..) {
            for _ in 0..TURN_MAX {
                let lane = &mut self.lanes[index];
                let command = if let Some(command) = lane.stalled.take() {
                    command
                } else {
                    let Some(command) = lane.target.poll_command(now, &mut self.buffers) else { break };
                    assert!(command.tag.0 >> TAG_BITS == 0, "a target's tags have 24 bits");
                    Command { tag: Tag(command.tag.0 | (number << TAG_BITS)), ..command }
                };
                if !self.offer(now, index, command) {
                    break;
                }
            }
        }
    }

    /// Gives a command to the device; false if it has no room, and the command waits.
    #[inline(never)]
    fn offer(&mut self, now: Nanos, index: usize, command: Command) -> bool {
        let taken = self.device.submit(now, command, &mut self.buffers).is_ok();
        if !taken {
            self.lanes[index].stalled = Some(command);
        }
        taken
    }

    fn replies<S: Source>(&mut self, now: Nanos, source: &mut S) -> bool {
        let mut busy = false;
        for (index, lane) in (0u32..).zip(&mut self.lanes) {
            while let Some(reply) = lane.target.poll_reply() {
                lane.full = false;
                source.on_reply(now, TargetId(index), reply, &mut self.buffers);
                busy = true;
            }
        }
        busy
    }

    /// Waits for the nearest deadline; false if there is none. While only the device has work that ends no command, it
    /// goes on from step to step without a turn.
    fn wait<S: Source>(&mut self, source: &mut S, stop_at: Nanos) -> bool {
        self.full = self.full && self.lanes.iter().any(|lane| lane.full);
        let arrival = if self.full { None } else { source.next_arrival() };
        let others = if self.timed { arrival.into_iter().chain(self.timer()).min() } else { arrival };
        let limit = others.unwrap_or(Nanos::MAX).min(stop_at);
        while let Some(at) = self.next_step(limit) {
            self.clock.wait_until(at);
            let now = self.clock.now();
            if let Some(completion) = self.device.poll_completion(now, &mut self.buffers) {
                self.clock.note_late(now.saturating_since(at));
                self.complete(now, completion, source);
                return true;
            }
        }
        let found = others.is_some() || self.device.deadline().is_some();
        if found {
            self.clock.wait_until(limit);
        }
        found
    }

    /// The nearest deadline of a target.
    fn timer(&self) -> Option<Nanos> {
        self.lanes.iter().filter(|lane| lane.timed).filter_map(|lane| lane.target.deadline()).min()
    }

    /// When the device next has something to do before `limit`.
    fn next_step(&mut self, limit: Nanos) -> Option<Nanos> {
        if C::IS_VIRTUAL {
            self.device.work_ahead(limit)
        } else {
            self.device.deadline().filter(|&at| at < limit)
        }
    }

    /// Gives the device back, with what it holds.
    pub fn into_device(self) -> D {
        self.device
    }
}
