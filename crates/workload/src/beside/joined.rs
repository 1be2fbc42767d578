//! Jobs on blocks and askers of other interfaces as one source.
//!
//! All take turns: who has asked comes behind the others. One whose target is full stands aside until all others have had
//! nothing more to ask; so nobody waits for another's target, and a turn of the loop in which nothing happened changes nothing:
//! where a caller stops the loop for a look has no effect on what is asked. When the jobs are done the askers are stopped.
//! Deliberately not here: what is asked (`run`, `generator`).

use super::asker::Asker;
use crate::run::{LayOut, Runner};
use ocssd_base::Nanos;
use ocssd_lightnvm::interface::{AnyReply, AnyRequest, AnyTarget};
use ocssd_lightnvm::{Buffers, Source, TargetId};

/// What became of the last request of one who asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Offer {
    /// Its target took it.
    #[default]
    Taken,
    /// Its target was full, and others have not yet asked all they have.
    Aside,
    /// Its target was full, and it may be offered again.
    Refused,
}

/// Whose turn it is. The jobs have the first place, each asker one behind.
#[derive(Debug)]
struct Turns {
    next: usize,
    /// Who was next before the last request was given.
    before: usize,
    offers: Vec<Offer>,
}

/// All askers beside jobs, and whose turn it is: what lasts from one run of the loop to the next.
pub struct Askers {
    all: Vec<Box<dyn Asker>>,
    turns: Turns,
}

impl Askers {
    /// These, in the order of their targets.
    #[must_use]
    pub fn new(all: Vec<Box<dyn Asker>>) -> Self {
        let turns = Turns { next: 0, before: 0, offers: vec![Offer::Taken; all.len() + 1] };
        Self { all, turns }
    }

    /// Nobody.
    #[must_use]
    pub fn none() -> Self {
        Self::new(Vec::new())
    }

    /// Each of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &dyn Asker> {
        self.all.iter().map(Box::as_ref)
    }

    /// How far the slowest is, in thousandths, and how many requests were answered.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let each = self.all.iter().map(|asker| asker.progress());
        each.reduce(|(least, all), (one, answered)| (least.min(one), all + answered)).unwrap_or((1_000, 0))
    }

    /// Makes them load and no more, or ask all they have.
    pub fn load_only(&mut self, loads_only: bool) {
        self.all.iter_mut().for_each(|asker| asker.load_only(loads_only));
    }

    /// Makes no more requests.
    pub fn stop(&mut self) {
        self.all.iter_mut().filter(|asker| !asker.is_finished()).for_each(|asker| asker.stop());
    }
}

/// Jobs on blocks.
pub trait Jobs: Source {
    /// True if they are over. A source may say that it is finished before, so that a caller can look.
    fn are_over(&self) -> bool {
        self.is_finished()
    }
}

impl Jobs for Runner {
    fn are_over(&self) -> bool {
        self.is_done()
    }
}

impl Jobs for LayOut {}

/// The source.
pub struct Joined<'a, B> {
    jobs: Option<&'a mut B>,
    askers: &'a mut Askers,
}

impl<'a> Joined<'a, Runner> {
    /// Askers alone, until they are finished: those who load before jobs, or were stopped after them.
    #[must_use]
    pub const fn alone(askers: &'a mut Askers) -> Self {
        Self { jobs: None, askers }
    }
}

impl<'a, B: Jobs> Joined<'a, B> {
    /// Jobs with askers beside them, until the jobs are done. Then the askers are stopped; what they have asked is answered while
    /// they are alone.
    #[must_use]
    pub const fn new(jobs: &'a mut B, askers: &'a mut Askers) -> Self {
        Self { jobs: Some(jobs), askers }
    }

    fn stop_after_jobs(&mut self) {
        if self.jobs.as_ref().is_some_and(|jobs| jobs.are_over()) {
            self.askers.stop();
        }
    }

    /// The next request of one who asks.
    fn ask(&mut self, place: usize, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, AnyRequest)> {
        let Some(asker) = place.checked_sub(1) else {
            let asked = self.jobs.as_mut().and_then(|jobs| jobs.poll_request(now, buffers));
            self.stop_after_jobs();
            return asked.map(|(target, request)| (target, AnyRequest::Block(request)));
        };
        self.askers.all[asker].poll_request(now, buffers)
    }

    /// The place of who asks this target.
    fn place(&self, target: TargetId) -> usize {
        self.askers.all.iter().position(|asker| asker.target() == target).map_or(0, |asker| asker + 1)
    }
}

impl<B: Jobs> Source<AnyTarget> for Joined<'_, B> {
    fn next_arrival(&self) -> Option<Nanos> {
        let offers = &self.askers.turns.offers;
        let jobs = self.jobs.as_ref().filter(|_| offers[0] == Offer::Taken);
        let others = self.askers.all.iter().zip(&offers[1..]);
        let others = others.filter(|(_, offer)| **offer == Offer::Taken);
        let arrivals = others.filter_map(|(asker, _)| asker.next_arrival());
        jobs.and_then(|jobs| jobs.next_arrival()).into_iter().chain(arrivals).min()
    }

    fn poll_request(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, AnyRequest)> {
        let count = self.askers.turns.offers.len();
        let first = self.askers.turns.next;
        for place in (first..count).chain(0..first) {
            if self.askers.turns.offers[place] == Offer::Aside {
                continue;
            }
            if let Some(asked) = self.ask(place, now, buffers) {
                let turns = &mut self.askers.turns;
                turns.offers[place] = Offer::Taken;
                (turns.before, turns.next) = (first, (place + 1) % count);
                return Some(asked);
            }
        }
        let aside = self.askers.turns.offers.iter_mut().filter(|offer| **offer == Offer::Aside);
        aside.for_each(|offer| *offer = Offer::Refused);
        None
    }

    fn expected(&self, blocks: &mut [u64]) -> Option<(TargetId, usize)> {
        self.jobs.as_ref().and_then(|jobs| jobs.expected(blocks))
    }

    fn on_refused(&mut self, now: Nanos, target: TargetId, request: AnyRequest) {
        let place = self.place(target);
        let turns = &mut self.askers.turns;
        // It is its turn still; the others ask meanwhile.
        (turns.next, turns.offers[place]) = (turns.before, Offer::Aside);
        match (place.checked_sub(1), &mut self.jobs, request) {
            (Some(asker), _, request) => self.askers.all[asker].on_refused(now, target, request),
            (None, Some(jobs), AnyRequest::Block(request)) => jobs.on_refused(now, target, request),
            (None, _, request) => unreachable!("target {} refused {request:?}, which nobody asked", target.0),
        }
    }

    fn asks_on(&self) -> bool {
        true
    }

    fn on_reply(&mut self, now: Nanos, target: TargetId, reply: AnyReply, buffers: &mut Buffers) {
        match (self.place(target).checked_sub(1), &mut self.jobs, reply) {
            (Some(asker), _, reply) => self.askers.all[asker].on_reply(now, target, reply, buffers),
            (None, Some(jobs), AnyReply::Block(reply)) => jobs.on_reply(now, target, reply, buffers),
            (None, _, reply) => unreachable!("target {} gave {reply:?}, which nobody asked for", target.0),
        }
        self.stop_after_jobs();
    }

    fn is_finished(&self) -> bool {
        match &self.jobs {
            Some(jobs) => jobs.is_finished(),
            None => self.askers.all.iter().all(|asker| asker.is_finished()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beside::Report;
    use ocssd_lightnvm::block::{BlockReply, BlockRequest};
    use ocssd_lightnvm::interface::Interface;
    use ocssd_lightnvm::interface::key_value::{KvAnswer, KvReply};
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat, Status, Tag};

    /// Asks so many times, as soon as it may, or at a time.
    #[derive(Default)]
    struct Script {
        target: u32,
        left: u32,
        arrival: Option<Nanos>,
        refused: bool,
        outstanding: u32,
        stopped: bool,
    }

    impl Script {
        fn new(target: u32, left: u32) -> Self {
            Self { target, left, ..Self::default() }
        }

        fn poll(&mut self, now: Nanos) -> Option<(TargetId, Tag)> {
            let may = self.left > 0 && self.arrival.is_none_or(|at| at <= now);
            if !std::mem::take(&mut self.refused) {
                if !may {
                    return None;
                }
                self.left -= 1;
                self.outstanding += 1;
            }
            Some((TargetId(self.target), Tag(self.target)))
        }

        fn is_done(&self) -> bool {
            self.left == 0 && self.outstanding == 0
        }
    }

    impl Source for Script {
        fn next_arrival(&self) -> Option<Nanos> {
            self.arrival
        }

        fn poll_request(&mut self, now: Nanos, _: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
            let (target, tag) = self.poll(now)?;
            let AnyRequest::Block(request) = AnyRequest::flush(Interface::Block, tag) else { unreachable!() };
            Some((target, request))
        }

        fn on_refused(&mut self, _: Nanos, _: TargetId, _: BlockRequest) {
            self.refused = true;
        }

        fn on_reply(&mut self, _: Nanos, _: TargetId, _: BlockReply, _: &mut Buffers) {
            self.outstanding -= 1;
        }

        fn is_finished(&self) -> bool {
            self.is_done()
        }
    }

    impl Jobs for Script {}

    impl Source<AnyTarget> for Script {
        fn next_arrival(&self) -> Option<Nanos> {
            self.arrival
        }

        fn poll_request(&mut self, now: Nanos, _: &mut Buffers) -> Option<(TargetId, AnyRequest)> {
            self.poll(now).map(|(target, tag)| (target, AnyRequest::flush(Interface::KeyValue, tag)))
        }

        fn on_refused(&mut self, _: Nanos, _: TargetId, _: AnyRequest) {
            self.refused = true;
        }

        fn on_reply(&mut self, _: Nanos, _: TargetId, _: AnyReply, _: &mut Buffers) {
            self.outstanding -= 1;
        }

        fn is_finished(&self) -> bool {
            self.is_done()
        }
    }

    impl Asker for Script {
        fn target(&self) -> TargetId {
            TargetId(self.target)
        }

        fn load_only(&mut self, _: bool) {}

        fn stop(&mut self) {
            (self.left, self.stopped) = (0, true);
        }

        fn is_stopped(&self) -> bool {
            self.stopped
        }

        fn report(&self) -> Report<'_> {
            Report::Phases(&[])
        }

        fn failure(&self) -> Option<&str> {
            None
        }

        fn bytes_stored(&self) -> u64 {
            0
        }

        fn progress(&self) -> (u64, u64) {
            (if self.is_done() { 1_000 } else { 0 }, 0)
        }
    }

    fn askers(scripts: impl IntoIterator<Item = Script>) -> Askers {
        Askers::new(scripts.into_iter().map(|script| Box::new(script) as Box<dyn Asker>).collect())
    }

    fn pool() -> Buffers {
        Buffers::new(PayloadFormat::new(Payload::Stamp, &Geometry::example(1, 1, 4, 24, 24)))
    }

    /// One turn of a loop whose targets in `full` have no room: whose requests were taken, and who was refused.
    fn turn(source: &mut Joined<'_, Script>, now: u64, full: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let (mut taken, mut refused, mut buffers) = (Vec::new(), Vec::new(), pool());
        while let Some((target, request)) = source.poll_request(Nanos(now), &mut buffers) {
            if full.contains(&target.0) {
                refused.push(target.0);
                source.on_refused(Nanos(now), target, request);
                assert!(source.asks_on());
            } else {
                taken.push(target.0);
            }
        }
        (taken, refused)
    }

    fn reply(source: &mut Joined<'_, Script>, target: u32) {
        let reply = match target {
            0 => AnyReply::Block(BlockReply { tag: Tag(0), status: Status::SUCCESS, violation: None }),
            tag => AnyReply::KeyValue(KvReply::success(Tag(tag), KvAnswer::Done)),
        };
        source.on_reply(Nanos(0), TargetId(target), reply, &mut pool());
    }

    #[test]
    fn all_take_turns() {
        let (mut jobs, mut others) = (Script::new(0, 3), askers([Script::new(1, 3), Script::new(2, 1)]));
        let (taken, _) = turn(&mut Joined::new(&mut jobs, &mut others), 0, &[]);
        assert_eq!(taken, [0, 1, 2, 0, 1, 0, 1]);
    }

    #[test]
    fn nobody_waits_for_the_target_of_another_and_idle_turns_change_nothing() {
        for idle in [0, 1, 7] {
            let (mut jobs, mut others) = (Script::new(0, 3), askers([Script::new(1, 3), Script::new(2, 2)]));
            let mut source = Joined::new(&mut jobs, &mut others);
            assert_eq!(turn(&mut source, 0, &[0]), (vec![1, 2, 1, 2, 1], vec![0]));
            (0..idle).for_each(|_| assert_eq!(turn(&mut source, 0, &[0]), (vec![], vec![0])));
            assert_eq!(turn(&mut source, 0, &[]), (vec![0, 0, 0], vec![]), "after {idle} idle turns");
            let (mut jobs, mut others) = (Script::new(0, 2), askers([Script::new(1, 2)]));
            let mut source = Joined::new(&mut jobs, &mut others);
            (0..=idle).for_each(|_| assert_eq!(turn(&mut source, 0, &[0, 1]), (vec![], vec![0, 1])));
            assert_eq!(turn(&mut source, 0, &[]).0, [0, 1, 0, 1], "after {idle} idle turns");
        }
    }

    #[test]
    fn arrivals_are_of_those_whose_targets_have_room() {
        let mut jobs = Script { arrival: Some(Nanos(30)), ..Script::new(0, 2) };
        let mut others = askers([Script { arrival: Some(Nanos(50)), ..Script::new(1, 2) }]);
        let mut source = Joined::new(&mut jobs, &mut others);
        assert_eq!((turn(&mut source, 0, &[]).0, source.next_arrival()), (vec![], Some(Nanos(30))));
        assert_eq!(
            (turn(&mut source, 30, &[0]), source.next_arrival()),
            ((vec![], vec![0]), Some(Nanos(50)))
        );
        assert_eq!(turn(&mut source, 50, &[0, 1]), (vec![], vec![0, 1]));
        assert_eq!(source.next_arrival(), None, "both wait for room");
    }

    #[test]
    fn askers_are_stopped_with_the_last_reply_to_jobs_and_drained_alone() {
        let (mut jobs, mut others) = (Script::new(0, 1), askers([Script::new(1, 9), Script::new(2, 1)]));
        let mut source = Joined::new(&mut jobs, &mut others);
        assert_eq!(turn(&mut source, 0, &[1]), (vec![0, 2], vec![1]));
        reply(&mut source, 2);
        assert!(!source.is_finished(), "the jobs wait for a reply");
        reply(&mut source, 0);
        assert!(source.is_finished());
        assert_eq!(others.iter().map(Asker::is_stopped).collect::<Vec<_>>(), [true, false], "2 had no more");
        let mut alone = Joined::<Script> { jobs: None, askers: &mut others };
        assert_eq!((turn(&mut alone, 0, &[]), alone.is_finished()), ((vec![1], vec![]), false));
        reply(&mut alone, 1);
        assert!(alone.is_finished());
        assert_eq!(others.progress().0, 1_000);
    }
}
