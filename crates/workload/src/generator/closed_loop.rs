//! A generator as the source of a host's only target: so many requests outstanding, each answer measured. A generator whose
//! requests arrive at times of their own is waited for; what arrives while all places are taken waits, and that counts.
//!
//! Latencies are kept by the phase a request was made in and by what it asked, as their tool's users call both. The time of a
//! request begins when it was made, so what a full target makes it wait counts. Deliberately not here: whether content is
//! right (`sim` has models for that), and how results are shown (`cli`).

use super::{Generator, Outcome};
use crate::results::LatencyStats;
use ocssd_base::Nanos;
use ocssd_lightnvm::{Buffers, Source, Tag, Target, TargetId};

/// What one kind of request came to in one phase.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What was asked.
    pub name: &'static str,
    /// From when it was made to its answer.
    pub latency: LatencyStats,
    /// Bytes that were carried.
    pub bytes: u64,
    /// They went to the target.
    pub is_stored: bool,
    /// Those that found nothing under the name they asked for.
    pub absent: u64,
}

/// A phase of a run.
#[derive(Clone, Debug)]
pub struct Phase {
    /// As the tool calls it.
    pub name: &'static str,
    /// When its first request was made.
    pub began: Nanos,
    /// When its last answer came.
    pub ended: Nanos,
    /// Operations of the tool's own counting.
    pub operations: u64,
    /// What was asked in it, in the order of first use.
    pub measured: Vec<Measured>,
}

impl Phase {
    /// How long it took.
    #[must_use]
    pub fn took(&self) -> Nanos {
        self.ended.saturating_since(self.began)
    }

    fn of(&mut self, name: &'static str) -> &mut Measured {
        let place = self.measured.iter().position(|one| one.name == name).unwrap_or_else(|| {
            let latency = LatencyStats::default();
            self.measured.push(Measured { name, latency, bytes: 0, is_stored: false, absent: 0 });
            self.measured.len() - 1
        });
        &mut self.measured[place]
    }
}

#[derive(Debug)]
struct Outstanding<R> {
    request: R,
    made: Nanos,
    phase: usize,
}

/// The source.
#[derive(Debug)]
pub struct ClosedLoop<G: Generator> {
    generator: G,
    /// By tag; as many places as requests may be outstanding.
    places: Vec<Option<Outstanding<G::Request>>>,
    /// Places without a request.
    free: Vec<usize>,
    /// The target had no room for the request of this place, and has replied to nothing since.
    waiting: Option<usize>,
    is_full: bool,
    is_stopped: bool,
    /// It makes no requests but those that load.
    loads_only: bool,
    /// When the source was asked first, and last.
    began: Option<Nanos>,
    asked: Nanos,
    phases: Vec<Phase>,
    /// Operations the generator had begun when the last phase began.
    before: u64,
    failure: Option<String>,
}

impl<G: Generator> ClosedLoop<G> {
    /// At most `depth` requests of `generator` are outstanding.
    ///
    /// # Panics
    /// If the depth is 0.
    #[must_use]
    pub fn new(generator: G, depth: usize) -> Self {
        assert!(depth > 0, "a depth of 0 asks for nothing");
        Self {
            generator,
            places: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            waiting: None,
            is_full: false,
            is_stopped: false,
            loads_only: false,
            began: None,
            asked: Nanos::ZERO,
            phases: Vec::new(),
            before: 0,
            failure: None,
        }
    }

    /// Makes no more requests; those outstanding are waited for.
    pub const fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// True once it was stopped.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Makes only the requests that load, and is finished when they are answered; or makes the others, too. Time that requests
    /// arrive by begins with the latter.
    pub const fn load_only(&mut self, loads_only: bool) {
        self.loads_only = loads_only;
    }

    /// What loads was asked, and the rest is to wait.
    fn is_held(&self) -> bool {
        self.loads_only && !self.generator.is_loading()
    }

    /// The first failure in words; the run made no more requests after it.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Who makes the requests.
    #[must_use]
    pub const fn generator(&self) -> &G {
        &self.generator
    }

    /// The phases so far, in order.
    #[must_use]
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// How far it is, in thousandths.
    #[must_use]
    pub fn thousandths(&self) -> u64 {
        let all = self.generator.operation_count_max().max(1);
        (u128::from(self.generator.operations_begun()) * 1000 / u128::from(all))
            .min(1000)
            .try_into()
            .expect("at most a thousand")
    }

    /// Requests that were answered.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.phases.iter().flat_map(|phase| &phase.measured).map(|measured| measured.latency.count()).sum()
    }

    /// Bytes that went to the target and were answered.
    #[must_use]
    pub fn bytes_stored(&self) -> u64 {
        let all = self.phases.iter().flat_map(|phase| &phase.measured);
        all.filter(|measured| measured.is_stored).map(|measured| measured.bytes).sum()
    }

    /// Requests without an answer.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The phase that is on; a new one if the generator says so.
    fn phase(&mut self, now: Nanos) -> usize {
        let name = self.generator.phase();
        if self.phases.last().is_none_or(|phase| phase.name != name) {
            self.before = self.phases.iter().map(|phase| phase.operations).sum();
            self.phases.push(Phase { name, began: now, ended: now, operations: 0, measured: Vec::new() });
        }
        let last = self.phases.len() - 1;
        self.phases[last].operations = self.generator.operations_begun() - self.before;
        last
    }

    /// When the next request of the generator arrives, if that has a time.
    fn arrival(&self) -> Option<Nanos> {
        let at = self.generator.arrival()?;
        Some(Nanos(self.began.unwrap_or(self.asked).0.saturating_add(at.0)))
    }

    fn make(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<usize> {
        if self.is_stopped || self.failure.is_some() {
            return None;
        }
        let arrived = self.arrival();
        if self.generator.is_finished() || arrived.is_some_and(|at| at > now) {
            return None;
        }
        let place = self.free.pop()?;
        let tag = Tag(u32::try_from(place).expect("a depth of 32 bits"));
        let Some(request) = self.generator.next(tag, buffers) else {
            self.free.push(place);
            return None;
        };
        let phase = self.phase(now);
        self.places[place] = Some(Outstanding { request, made: arrived.unwrap_or(now), phase });
        Some(place)
    }
}

impl<G: Generator, T> Source<T> for ClosedLoop<G>
where
    T: Target<Request = G::Request, Reply = G::Reply> + ?Sized,
{
    fn next_arrival(&self) -> Option<Nanos> {
        let may = !self.is_held()
            && !self.is_full
            && !self.is_stopped
            && self.failure.is_none()
            && !self.free.is_empty();
        // What has arrived already depends on replies only.
        self.arrival().filter(|&at| may && at > self.asked && !self.generator.is_finished())
    }

    fn poll_request(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, G::Request)> {
        if self.is_held() && self.waiting.is_none() {
            return None;
        }
        self.began.get_or_insert(now);
        self.asked = now;
        if self.is_full {
            return None;
        }
        let place = self.waiting.take().or_else(|| self.make(now, buffers))?;
        let outstanding = self.places[place].as_ref().expect("a request was made for this place");
        Some((TargetId(0), outstanding.request))
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, request: G::Request) {
        self.waiting = Some(place_of(G::tag(&request)));
        self.is_full = true;
    }

    fn on_reply(&mut self, now: Nanos, _target: TargetId, reply: G::Reply, buffers: &mut Buffers) {
        self.is_full = false;
        let place = place_of(G::reply_tag(&reply));
        let done = self.places[place].take().expect("a reply answers an outstanding request");
        self.free.push(place);
        self.generator.on_reply(&done.request, &reply, buffers);
        let answered = self.generator.answered(&done.request, &reply);
        let phase = &mut self.phases[done.phase];
        phase.ended = now;
        let measured = phase.of(answered.name);
        measured.latency.record(now.saturating_since(done.made));
        measured.bytes += answered.bytes;
        measured.is_stored |= answered.is_stored;
        match answered.outcome {
            Outcome::Done => {}
            Outcome::Absent => measured.absent += 1,
            Outcome::Failed(sentence) => {
                self.failure.get_or_insert(format!("{}: {sentence}", answered.name));
            }
        }
    }

    fn is_finished(&self) -> bool {
        let is_over =
            self.is_held() || self.is_stopped || self.failure.is_some() || self.generator.is_finished();
        is_over && self.outstanding() == 0
    }
}

fn place_of(tag: Tag) -> usize {
    usize::try_from(tag.0).expect("32 bits fit an index")
}

#[cfg(test)]
mod tests {
    use super::super::mooncake::trace::{Trace, TraceRequest};
    use super::super::mooncake::{Mooncake, MooncakeOptions};
    use super::super::ycsb::{Ycsb, YcsbOptions};
    use super::*;
    use ocssd_base::Prng;
    use ocssd_lightnvm::interface::StageLimits;
    use ocssd_lightnvm::interface::key_value::{
        KvAnswer, KvLimits, KvRefusal, KvReply, KvRequest, KvTarget, ListOrder,
    };
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};

    type Loop = ClosedLoop<Ycsb>;

    /// Generators of keys and values.
    trait Asks: Generator<Request = KvRequest, Reply = KvReply> {}
    impl<G: Generator<Request = KvRequest, Reply = KvReply>> Asks for G {}

    fn start(text: &str, depth: usize) -> (Loop, Buffers) {
        let options = YcsbOptions::parse(text).expect("the options can be used");
        let format = PayloadFormat::new(Payload::Bytes, &Geometry::example(1, 1, 4, 24, 24));
        (ClosedLoop::new(Ycsb::new(options, &Prng::new(1)), depth), Buffers::new(format))
    }

    fn next<G: Asks>(source: &mut ClosedLoop<G>, now: u64, buffers: &mut Buffers) -> Option<KvRequest> {
        let polled = Source::<dyn KvTarget>::poll_request(source, Nanos(now), buffers);
        polled.map(|(_, request)| request)
    }

    fn reply<G: Asks>(source: &mut ClosedLoop<G>, now: u64, reply: KvReply, buffers: &mut Buffers) {
        Source::<dyn KvTarget>::on_reply(source, Nanos(now), TargetId(0), reply, buffers);
    }

    fn is_finished(source: &Loop) -> bool {
        Source::<dyn KvTarget>::is_finished(source)
    }

    #[test]
    fn latencies_are_kept_by_phase_and_request_from_when_it_was_made() {
        let (mut source, mut buffers) = start("workload=c,recordcount=2,operationcount=3", 2);
        let first = next(&mut source, 0, &mut buffers).expect("a store");
        let second = next(&mut source, 0, &mut buffers).expect("another");
        assert!(next(&mut source, 0, &mut buffers).is_none(), "two are outstanding");
        Source::<dyn KvTarget>::on_refused(&mut source, Nanos(0), TargetId(0), second);
        assert!(next(&mut source, 5, &mut buffers).is_none(), "the target is full");
        reply(&mut source, 10, KvReply::success(first.tag, KvAnswer::Done), &mut buffers);
        assert_eq!(next(&mut source, 10, &mut buffers).map(|again| again.tag), Some(second.tag));
        reply(&mut source, 30, KvReply::success(second.tag, KvAnswer::Done), &mut buffers);
        let mut absent = KvReply::refused(first.tag, KvRefusal::NoSuchKey, None);
        for now in [40, 50, 60] {
            let read = next(&mut source, now, &mut buffers).expect("a retrieve");
            absent.tag = read.tag;
            reply(&mut source, now + 7, absent, &mut buffers);
        }
        assert!(is_finished(&source) && next(&mut source, 70, &mut buffers).is_none());
        let [load, run] = source.phases() else { panic!("{:?}", source.phases()) };
        assert_eq!((load.name, load.operations, load.took()), ("load", 2, Nanos(30)));
        let latency = &load.measured[0].latency;
        assert_eq!((latency.count(), latency.min(), latency.max()), (2, Some(Nanos(10)), Some(Nanos(30))));
        assert_eq!((run.name, run.operations, run.measured[0].absent), ("run", 3, 3));
        assert_eq!((source.bytes_stored(), source.answered(), source.thousandths()), (2_000, 5, 1_000));
        assert_eq!(buffers.in_use(), 0);
    }

    #[test]
    fn a_request_with_a_time_is_waited_for_and_timed_from_its_arrival() {
        let line =
            |at_ms, block| TraceRequest { at_ms, input_tokens: 512, output_tokens: 1, blocks: vec![block] };
        let stages = StageLimits { stages_max: 1, bytes_max: 1 };
        let limits = KvLimits {
            key_bytes_max: 16,
            value_bytes_max: 1 << 20,
            batch_entries_max: 1,
            capacity_bytes: 1 << 20,
            list_order: ListOrder::Bytewise,
            stages,
        };
        let options = MooncakeOptions::parse("bytespertoken=8", &limits).expect("sound");
        let trace = Trace { requests: vec![line(0, 0), line(2, 1), line(3, 2)] };
        let mut source = ClosedLoop::new(Mooncake::new(options, trace), 1);
        let format = PayloadFormat::new(Payload::Bytes, &Geometry::example(1, 1, 4, 24, 24));
        let mut buffers = Buffers::new(format);
        let arrival = |source: &ClosedLoop<Mooncake>| Source::<dyn KvTarget>::next_arrival(source);
        // The first comes when the target is asked for, at 100 ns.
        let first = next(&mut source, 100, &mut buffers).expect("a store");
        assert_eq!(arrival(&source), None, "there is no place for another");
        reply(&mut source, 300, KvReply::success(first.tag, KvAnswer::Done), &mut buffers);
        assert_eq!(arrival(&source), Some(Nanos(2_000_100)));
        assert!(next(&mut source, 2_000_099, &mut buffers).is_none(), "it is too early");
        let second = next(&mut source, 2_000_100, &mut buffers).expect("a store");
        reply(&mut source, 3_000_600, KvReply::success(second.tag, KvAnswer::Done), &mut buffers);
        // The third arrived while the second had the only place.
        let third = next(&mut source, 3_000_600, &mut buffers).expect("a store");
        reply(&mut source, 3_000_700, KvReply::success(third.tag, KvAnswer::Done), &mut buffers);
        let latency = &source.phases()[0].measured[0].latency;
        assert_eq!(
            (latency.count(), latency.min(), latency.max()),
            (3, Some(Nanos(200)), Some(Nanos(1_000_500)))
        );
        assert!((latency.mean_ns() - 333_766.7).abs() < 1.0, "600 ns for the third: {}", latency.mean_ns());
    }

    #[test]
    fn what_loads_only_is_finished_with_the_load_and_goes_on_later() {
        let (mut source, mut buffers) = start("workload=c,recordcount=2,operationcount=1", 4);
        source.load_only(true);
        let loads: Vec<KvRequest> = (0..2).filter_map(|_| next(&mut source, 0, &mut buffers)).collect();
        assert!(loads.len() == 2 && next(&mut source, 0, &mut buffers).is_none(), "the rest waits");
        assert!(!is_finished(&source), "two are outstanding");
        Source::<dyn KvTarget>::on_refused(&mut source, Nanos(0), TargetId(0), loads[1]);
        reply(&mut source, 5, KvReply::success(loads[0].tag, KvAnswer::Done), &mut buffers);
        assert_eq!(next(&mut source, 5, &mut buffers).map(|again| again.tag), Some(loads[1].tag));
        reply(&mut source, 9, KvReply::success(loads[1].tag, KvAnswer::Done), &mut buffers);
        assert!(is_finished(&source) && next(&mut source, 9, &mut buffers).is_none());
        source.load_only(false);
        assert!(!is_finished(&source) && next(&mut source, 20, &mut buffers).is_some());
        let began: Vec<(&str, Nanos)> =
            source.phases().iter().map(|phase| (phase.name, phase.began)).collect();
        assert_eq!(began, [("load", Nanos(0)), ("run", Nanos(20))]);
    }

    #[test]
    fn a_refusal_ends_the_run_with_its_sentence() {
        let (mut source, mut buffers) = start("workload=a,recordcount=9,operationcount=9", 1);
        let first = next(&mut source, 0, &mut buffers).expect("a store");
        reply(&mut source, 1, KvReply::refused(first.tag, KvRefusal::NoRoom, None), &mut buffers);
        assert!(is_finished(&source) && next(&mut source, 2, &mut buffers).is_none());
        let failure = source.failure().expect("the store was refused");
        assert!(failure.starts_with("store: ") && failure.contains("no room"), "{failure}");
    }
}
