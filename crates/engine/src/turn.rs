//! One turn of the loop, and the waits between turns.
//!
//! Deliberately not here: who holds device, clock and targets, and how they are changed between turns (`host`).

use crate::clock::Clock;
use crate::host::{COMMANDS_MAX, Host, RunEnd};
use crate::observer::{Observer, Unobserved};
use crate::requests::Requests;
use ocssd_base::{Nanos, usize_of};
use ocssd_lightnvm::{Command, Completion, Device, Source, TARGET_TAG_BITS, Tag, Target, TargetId};

/// Most pieces of one kind of work in a turn, so that no kind starves the others (chosen).
const TURN_MAX: u32 = 4096;
/// Requests announced to a target at once: about as many misses as a processor has outstanding (10 to 16), and few enough
/// to stay in its cache until they are asked (chosen).
const PREFETCH_MAX: usize = 16;

impl<D: Device, C: Clock, T: Target + ?Sized> Host<D, C, T> {
    /// Runs `source` until it is finished, or until `stop_at`.
    ///
    /// Generic over the source: in the hot loop of a simulation its calls are inlined.
    pub fn run<S: Source<T>>(&mut self, source: &mut S, stop_at: Nanos) -> RunEnd {
        loop {
            let now = self.clock.now();
            if now >= stop_at {
                return RunEnd::Stopped;
            }
            self.turns += 1;
            if self.turn(now, source, &mut Unobserved) {
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

    /// Asks the first target for one thing, and runs until it replies.
    ///
    /// # Panics
    /// If it never does.
    pub fn ask(&mut self, request: T::Request) -> T::Reply {
        let mut requests = Requests::default();
        requests.push(request);
        let ended = self.run(&mut requests, Nanos::MAX);
        let mut replies = requests.take_replies();
        let reply = replies.pop().unwrap_or_else(|| panic!("a request was never answered: {ended:?}"));
        assert!(replies.is_empty(), "one request, several replies");
        reply
    }

    /// One turn at the clock's time, for a caller that waits by itself: for sockets, say. True if another is needed at once;
    /// else nothing happens before [`Self::next_deadline`], unless the source has something new.
    pub fn step<S: Source<T>>(&mut self, source: &mut S) -> bool {
        self.step_observed(source, &mut Unobserved)
    }

    /// As [`Self::step`], under the eyes of an observer that may end the turn between any two events.
    pub fn step_observed<S: Source<T>, O: Observer>(&mut self, source: &mut S, observer: &mut O) -> bool {
        self.turns += 1;
        let now = self.clock.now();
        self.turn(now, source, observer)
    }

    /// One turn at `now`; true if another is needed at the same time.
    fn turn<S: Source<T>, O: Observer>(&mut self, now: Nanos, source: &mut S, observer: &mut O) -> bool {
        for _ in 0..TURN_MAX {
            if observer.events_left() == 0 {
                return false;
            }
            // Asked only under a clock that can be late: virtual time takes everything when it is due.
            let due = if C::IS_VIRTUAL { None } else { self.device.deadline() };
            let Some(completion) = self.device.poll_completion(now, &mut self.out.buffers) else { break };
            self.clock.note_late(now.saturating_since(due.unwrap_or(now)));
            observer.on_completion(now, &completion);
            self.complete(now, completion, source, observer);
        }
        let more = self.arrivals(now, source, observer);
        let timed = self.timed && self.timers(now, source, observer);
        let mut busy = more | timed;
        for index in 0..self.lanes.len() {
            busy |= self.advance(now, index, source, observer);
        }
        busy
    }

    /// Passes a command's end to its target, and the replies it brings to the source.
    #[inline(always)]
    fn complete<S: Source<T>, O: Observer>(
        &mut self,
        now: Nanos,
        mut completion: Completion,
        source: &mut S,
        observer: &mut O,
    ) {
        let index = TargetId(completion.tag.0 >> TARGET_TAG_BITS).index();
        completion.tag = Tag(completion.tag.0 & ((1 << TARGET_TAG_BITS) - 1));
        self.refresh_room(index, observer);
        self.lanes[index].target.on_completion(now, completion, &mut self.out);
        self.offer(now, index, observer);
        self.deliver(now, index, source);
    }

    /// Gives arrived requests to their targets; true if more wait than a turn takes.
    fn arrivals<S: Source<T>, O: Observer>(&mut self, now: Nanos, source: &mut S, observer: &mut O) -> bool {
        for _ in 0..TURN_MAX {
            // Looked at where it is: a copy of what was just written in parts makes the processor wait.
            let polled = source.poll_request(now, &mut self.out.buffers);
            let Some((id, request)) = &polled else { return false };
            let index = id.index();
            self.refresh_room(index, observer);
            let admission = self.lanes[index].target.submit(now, request, &mut self.out);
            if !admission.is_taken() {
                (self.lanes[index].full, self.full) = (true, true);
                source.on_refused(now, *id, *request);
                if source.asks_on() {
                    continue;
                }
                return false;
            }
            self.offer(now, index, observer);
            self.deliver(now, index, source);
            if self.prefetches {
                self.announce(source);
            }
        }
        true
    }

    /// Tells a target what it will be asked, once what was announced last may have been asked.
    #[inline(always)]
    fn announce<S: Source<T>>(&mut self, source: &S) {
        self.announced = self.announced.wrapping_sub(1);
        if self.announced >= PREFETCH_MAX {
            self.announce_next(source);
        }
    }

    #[inline(never)]
    fn announce_next<S: Source<T>>(&mut self, source: &S) {
        let mut blocks = [0; PREFETCH_MAX];
        self.announced = PREFETCH_MAX - 1;
        if let Some((id, count)) = source.expected(&mut blocks) {
            self.lanes[id.index()].target.prefetch(&blocks[..count]);
        }
    }

    fn timers<S: Source<T>, O: Observer>(&mut self, now: Nanos, source: &mut S, observer: &mut O) -> bool {
        let mut any = false;
        for index in 0..self.lanes.len() {
            let lane = &self.lanes[index];
            if lane.timed && lane.target.deadline().is_some_and(|at| at <= now) {
                self.refresh_room(index, observer);
                self.lanes[index].target.on_deadline(now, &mut self.out);
                self.offer(now, index, observer);
                self.deliver(now, index, source);
                any = true;
            }
        }
        any
    }

    /// Lets a target go on; true if it replied, or has more to give than a turn takes.
    #[inline(always)]
    fn advance<S: Source<T>, O: Observer>(
        &mut self,
        now: Nanos,
        index: usize,
        source: &mut S,
        observer: &mut O,
    ) -> bool {
        let mut replied = false;
        for _ in 0..TURN_MAX {
            if !self.lanes[index].waiting.is_empty() {
                self.offer_waiting(now, index);
            }
            if O::STOPS || self.lanes.len() > 1 || !self.out.has_room() {
                self.ask_room(index, true, observer);
            }
            self.lanes[index].target.advance(now, &mut self.out);
            let is_full = !self.out.has_room();
            self.offer(now, index, observer);
            replied |= self.deliver(now, index, source);
            // Full by the device's word or the observer's: there is no use in going on.
            if !is_full || !self.ask_room(index, true, observer) {
                if O::STOPS || self.lanes.len() > 1 {
                    self.out.set_room(0);
                }
                return replied;
            }
        }
        true
    }

    /// Sees to it that a target may give commands outside of [`Target::advance`], if there is room. The room is what was known
    /// last less what was given since, so it is asked for anew only once that is used up.
    #[inline(always)]
    fn refresh_room<O: Observer>(&mut self, index: usize, observer: &O) {
        if O::STOPS || !self.out.has_room() {
            self.ask_room(index, false, observer);
        }
    }

    /// How many commands a target may give: what the device takes and the observer wants to see; none while one waits for the
    /// device. With several targets none outside of [`Target::advance`], so that they go out in the order of the targets. False
    /// if there is no room.
    #[inline(never)]
    fn ask_room<O: Observer>(&mut self, index: usize, in_advance: bool, observer: &O) -> bool {
        let may_give = in_advance || self.lanes.len() == 1;
        let left = usize::try_from(observer.events_left()).unwrap_or(usize::MAX);
        let known = COMMANDS_MAX.min(usize_of(self.device.room())).min(left);
        let room = if may_give && self.lanes[index].waiting.is_empty() { known } else { 0 };
        self.out.set_room(room);
        room > 0
    }

    /// Gives the replies of a target to the source; true if there were any.
    #[inline(always)]
    fn deliver<S: Source<T>>(&mut self, now: Nanos, index: usize, source: &mut S) -> bool {
        let (replies, buffers) = self.out.replies_mut();
        if replies.is_empty() {
            return false;
        }
        self.lanes[index].full = false;
        let id = TargetId(u32::try_from(index).expect("fewer than 256 targets"));
        // Most often it is one, and a drain would cost as much as what it is for.
        if replies.len() > 1 {
            replies.drain(..).for_each(|reply| source.on_reply(now, id, reply, buffers));
        } else if let Some(reply) = replies.pop() {
            source.on_reply(now, id, reply, buffers);
        }
        true
    }

    /// Gives the sink's commands to the device; those it has no room for wait.
    #[inline(always)]
    fn offer<O: Observer>(&mut self, now: Nanos, index: usize, observer: &mut O) {
        if !self.out.commands().is_empty() {
            self.offer_all(now, index, observer);
        }
    }

    #[inline(never)]
    fn offer_all<O: Observer>(&mut self, now: Nanos, index: usize, observer: &mut O) {
        let number = u32::try_from(index).expect("fewer than 256 targets") << TARGET_TAG_BITS;
        let waiting = &mut self.lanes[index].waiting;
        let (commands, buffers) = self.out.commands_mut();
        for &command in &*commands {
            observer.on_command(now, &command, buffers);
            let command = Command { tag: Tag(command.tag.0 | number), ..command };
            if !waiting.is_empty() || self.device.submit(now, command, buffers).is_err() {
                waiting.push(command);
            }
        }
        let given = commands.len();
        commands.clear();
        let is_free = waiting.is_empty();
        self.out.use_room(if is_free { given } else { usize::MAX });
    }

    /// Offers the commands again that the device had no room for.
    #[inline(never)]
    fn offer_waiting(&mut self, now: Nanos, index: usize) {
        let waiting = &mut self.lanes[index].waiting;
        let (device, buffers) = (&mut self.device, &mut self.out.buffers);
        let taken = waiting.iter().take_while(|command| device.submit(now, **command, buffers).is_ok());
        let taken = taken.count();
        waiting.drain(..taken);
    }

    /// Waits for the nearest deadline; false if there is none. While only the device has work that ends no command, it
    /// goes on from step to step without a turn.
    fn wait<S: Source<T>>(&mut self, source: &mut S, stop_at: Nanos) -> bool {
        self.full = self.full && self.lanes.iter().any(|lane| lane.full);
        let waits_for_room = self.full && !source.asks_on();
        let arrival = if waits_for_room { None } else { source.next_arrival() };
        let others = if self.timed { arrival.into_iter().chain(self.timer()).min() } else { arrival };
        let limit = others.unwrap_or(Nanos::MAX).min(stop_at);
        while let Some(at) = self.next_step(limit) {
            self.clock.wait_until(at);
            let now = self.clock.now();
            if let Some(completion) = self.device.poll_completion(now, &mut self.out.buffers) {
                self.clock.note_late(now.saturating_since(at));
                self.complete(now, completion, source, &mut Unobserved);
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
    pub(crate) fn timer(&self) -> Option<Nanos> {
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
}
