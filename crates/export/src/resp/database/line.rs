//! Requests to the store, in the order in which it is to carry them out.
//!
//! Commands of many steps (a look at hundreds of keys, a walk over all) have lines of their own, of which one step at a time comes
//! between the requests of others, in turn; so they are in nobody's way for long. What comes later may overtake them: keys they
//! look at are locked, and a walk sees what is there when it comes by. They overtake nothing that came before. Changes that take
//! a while to copy have a line, too, and for the same reason anything may overtake them. Deliberately not here: which commands
//! those are.

use super::super::store::{StoreRequest, Token};
use ocssd_base::Nanos;
use std::collections::VecDeque;

/// Steps of long commands that the store has at once, at most (chosen: as many as the largest preset has units; with 32 a look at
/// 5000 keys on media took up to twice as long as with 512).
const STEPS_MAX: usize = 128;
/// The same at least, however long they take (chosen: a few units of slow media are busy with these).
const STEPS_MIN: usize = 8;
/// Half of the steps should be carried out within this time: what comes behind them waits as long, where all lie on one unit, as
/// keys do that were stored one after the other (chosen: a few reads of one unit of the presets).
const STEP_TIME: Nanos = Nanos::from_micros(250);

/// A request, and how many came before it.
type Numbered = (u64, StoreRequest);

/// Requests that the store has not taken.
#[derive(Debug, Default)]
pub(super) struct RequestLine {
    plain: VecDeque<Numbered>,
    /// Of each long command its steps; the one whose turn it is first. None is empty.
    long: VecDeque<VecDeque<Numbered>>,
    /// Changes of keys that are locked.
    copied: VecDeque<StoreRequest>,
    /// Steps that the store has, and since when.
    out: Vec<(Token, Nanos)>,
    /// So many steps fewer than at most may be out, because those before took long.
    held: usize,
    /// The time of the server's clock.
    now: Nanos,
    came: u64,
    /// The last to go was a plain one.
    was_plain: bool,
}

impl RequestLine {
    /// A request that nobody overtakes.
    pub(super) fn push(&mut self, request: StoreRequest) {
        self.plain.push_back((self.came, request));
        self.came += 1;
    }

    /// A step of a long command.
    pub(super) fn push_step(&mut self, request: StoreRequest) {
        let task = request.token.task;
        let numbered = (self.came, request);
        self.came += 1;
        let own = self
            .long
            .iter_mut()
            .rev()
            .find(|line| line.front().is_some_and(|(_, one)| one.token.task == task));
        match own {
            Some(own) => own.push_back(numbered),
            None => self.long.push_back(VecDeque::from([numbered])),
        }
    }

    /// A change that takes a while to copy; nobody else looks at its keys, or changes them, before it is carried out.
    pub(super) fn push_long_change(&mut self, request: StoreRequest) {
        self.copied.push_back(request);
    }

    /// The next of those.
    pub(super) fn poll_long_change(&mut self) -> Option<StoreRequest> {
        self.copied.pop_front()
    }

    /// There is one.
    pub(super) fn has_long_change(&self) -> bool {
        !self.copied.is_empty()
    }

    /// The next request, and whether it is a step; no step if none is wanted now.
    pub(super) fn poll(&mut self, wants_steps: bool) -> Option<(StoreRequest, bool)> {
        let step_goes = wants_steps
            && self.step_may_go()
            && self.plain.front().is_none_or(|(plain, _)| {
                let step = self.long.front().and_then(|line| line.front());
                self.was_plain && step.is_some_and(|(step, _)| step < plain)
            });
        self.was_plain = !step_goes;
        if !step_goes {
            return self.plain.pop_front().map(|(_, request)| (request, false));
        }
        let mut own = self.long.pop_front()?;
        let (_, request) = own.pop_front()?;
        if !own.is_empty() {
            self.long.push_back(own);
        }
        self.out.push((request.token, self.now));
        assert!(self.out.len() <= STEPS_MAX, "long commands have {} steps at the store", self.out.len());
        Some((request, true))
    }

    /// It is this late.
    pub(super) const fn pass(&mut self, now: Nanos) {
        self.now = now;
    }

    /// The store has carried a request out. Each step that took long takes one from those that may be out at a time, and each that
    /// did not gives one back: so half of them take long at most, whatever the media are and wherever keys lie.
    pub(super) fn on_outcome(&mut self, token: Token) {
        let Some(place) = self.out.iter().position(|(out, _)| *out == token) else { return };
        let (_, since) = self.out.swap_remove(place);
        let took_long = self.now.saturating_since(since) > STEP_TIME;
        self.held = if took_long { self.held + 1 } else { self.held.saturating_sub(1) };
        self.held = self.held.min(STEPS_MAX - STEPS_MIN);
    }

    /// Steps that the store may have now.
    const fn steps_max(&self) -> usize {
        STEPS_MAX - self.held
    }

    /// There is one that may go.
    pub(super) fn has_next(&self) -> bool {
        !self.plain.is_empty() || self.step_may_go()
    }

    fn step_may_go(&self) -> bool {
        !self.long.is_empty() && self.out.len() < self.steps_max()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::store::StoreOp;
    use super::*;

    fn request(task: u32, place: u32) -> StoreRequest {
        StoreRequest { token: Token { task, place }, op: StoreOp::Flush }
    }

    fn polled(line: &mut RequestLine) -> Vec<u32> {
        std::iter::from_fn(|| line.poll(true)).map(|(request, _)| request.token.task).collect()
    }

    #[test]
    fn steps_overtake_nothing_and_what_comes_later_overtakes_them() {
        let mut line = RequestLine::default();
        line.push(request(1, 0));
        line.push(request(2, 0));
        (0..4).for_each(|place| line.push_step(request(3, place)));
        (4..7).for_each(|task| line.push(request(task, 0)));
        assert_eq!(polled(&mut line), [1, 2, 3, 4, 3, 5, 3, 6, 3]);
        assert!(!line.has_next());
    }

    #[test]
    fn steps_go_only_when_they_are_wanted() {
        let mut line = RequestLine::default();
        line.push_step(request(1, 0));
        assert_eq!(line.poll(false), None);
        line.push(request(2, 0));
        assert_eq!(line.poll(false), Some((request(2, 0), false)));
        assert_eq!(line.poll(true), Some((request(1, 0), true)));
    }

    #[test]
    fn long_commands_take_turns_and_have_no_more_steps_at_the_store_than_may_be() {
        let mut line = RequestLine::default();
        for task in 0..2 {
            (0..100).for_each(|place| line.push_step(request(task, place)));
        }
        let first = polled(&mut line);
        assert_eq!((first.len(), &first[..4]), (STEPS_MAX, &[0, 1, 0, 1][..]));
        assert!(!line.has_next(), "no more may go");
        line.push(request(2, 0));
        assert!(line.has_next());
        assert_eq!(polled(&mut line), [2]);
        line.on_outcome(Token { task: 2, place: 0 });
        assert!(!line.has_next(), "that was none of theirs");
        line.on_outcome(Token { task: 1, place: 0 });
        assert_eq!(polled(&mut line).len(), 1);
    }

    /// Steps given one round after the other, each carried out this much later.
    fn steps_at_once(line: &mut RequestLine, rounds: u32, took: Nanos) -> usize {
        let mut at_once = 0;
        for round in 0..rounds {
            (0..256).for_each(|place| line.push_step(request(round, place)));
            let given: Vec<Token> =
                std::iter::from_fn(|| line.poll(true)).map(|(request, _)| request.token).collect();
            at_once = given.len();
            line.pass(line.now + took);
            given.into_iter().for_each(|token| line.on_outcome(token));
        }
        at_once
    }

    #[test]
    fn steps_that_take_long_are_fewer_at_a_time_and_more_again_when_they_do_not() {
        let mut line = RequestLine::default();
        assert_eq!(steps_at_once(&mut line, 4, STEP_TIME), STEPS_MAX);
        assert_eq!(steps_at_once(&mut line, 4, STEP_TIME + Nanos(1)), STEPS_MIN);
        assert_eq!(steps_at_once(&mut line, 40, STEP_TIME), STEPS_MAX);
    }
}
