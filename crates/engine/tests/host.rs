//! The loop on a drive of its own: what comes first at equal times, bounds, and how a run ends.

use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Host, RunEnd, VirtualClock, WallClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Zones};
use ocssd_lightnvm::wrap::{Check, Trace};
use ocssd_lightnvm::{
    Admission, BufId, Buffers, ChunkId, Completion, Device, Out, PuId, Source, Status, Tag, Target, TargetId,
};
use ocssd_targets::registry::Parts;
use ocssd_targets::{Layout, Linear, PlaneReads};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// What a logging target was told, in order.
type Log = Rc<RefCell<Vec<(Nanos, String)>>>;

/// A linear target that writes down each call of the loop.
struct Logged {
    name: &'static str,
    inner: Linear,
    log: Log,
    timer: Option<Nanos>,
    /// It says of blocks whether they are mapped.
    has_map: bool,
}

impl Logged {
    fn note(&self, now: Nanos, what: &str) {
        self.log.borrow_mut().push((now, format!("{} {what}", self.name)));
    }
}

impl Target for Logged {
    type Request = BlockRequest;
    type Reply = BlockReply;

    /// Gives no command at once: each waits for `advance`.
    fn submit(&mut self, now: Nanos, request: &BlockRequest, out: &mut Out<BlockReply>) -> Admission {
        self.note(now, &format!("arrival {}", request.tag.0));
        let room = out.set_room(0);
        let admission = self.inner.submit(now, request, out);
        out.set_room(room);
        admission
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<BlockReply>) {
        self.note(now, "completion");
        self.inner.on_completion(now, completion, out);
    }

    fn on_deadline(&mut self, now: Nanos, _out: &mut Out<BlockReply>) {
        self.note(now, "timer");
        self.timer = None;
    }

    fn deadline(&self) -> Option<Nanos> {
        self.timer
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        self.inner.advance(now, out);
        out.commands().iter().for_each(|_| self.note(now, "command"));
    }

    fn prefetch(&self, blocks: &[u64]) {
        self.note(Nanos::ZERO, &format!("prefetches {blocks:?}"));
    }

    fn prefetches(&self) -> bool {
        self.has_map
    }

    fn check(&self) {
        self.inner.check();
    }
}

impl BlockTarget for Logged {
    fn block_bytes(&self) -> u32 {
        self.inner.block_bytes()
    }

    fn block_count(&self) -> u64 {
        self.inner.block_count()
    }

    fn zones(&self) -> Option<Zones> {
        self.inner.zones()
    }

    fn write_unit(&self) -> u32 {
        self.inner.write_unit()
    }

    fn unreadable_tail(&self) -> u64 {
        self.inner.unreadable_tail()
    }

    fn is_mapped(&self, _block: u64) -> Option<bool> {
        self.has_map.then_some(true)
    }

    fn zone_written(&self, zone: u64) -> u64 {
        self.inner.zone_written(zone)
    }
}

/// Requests with times of their own, in order.
#[derive(Default)]
struct Timed {
    arrivals: VecDeque<(Nanos, TargetId, BlockRequest)>,
    refused: u32,
    open: u32,
    replies: Vec<(Nanos, Tag, Status)>,
    /// Never finished, whatever comes.
    endless: bool,
}

impl Source for Timed {
    fn next_arrival(&self) -> Option<Nanos> {
        self.arrivals.front().map(|&(at, ..)| at)
    }

    fn poll_request(&mut self, now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        let (_, target, request) = self.arrivals.pop_front_if(|&mut (at, ..)| at <= now)?;
        self.open += 1;
        Some((target, request))
    }

    fn expected(&self, blocks: &mut [u64]) -> Option<(TargetId, usize)> {
        let &(_, target, _) = self.arrivals.front()?;
        let next = self.arrivals.iter().take_while(|&&(_, id, _)| id == target);
        let told = blocks.iter_mut().zip(next).map(|(block, &(_, _, request))| *block = request.block);
        Some((target, told.count()))
    }

    fn on_refused(&mut self, now: Nanos, target: TargetId, request: BlockRequest) {
        self.open -= 1;
        self.refused += 1;
        self.arrivals.push_front((now, target, request));
    }

    fn on_reply(&mut self, now: Nanos, _target: TargetId, reply: BlockReply, _buffers: &mut Buffers) {
        self.open -= 1;
        self.replies.push((now, reply.tag, reply.status));
    }

    fn is_finished(&self) -> bool {
        !self.endless && self.open == 0 && self.arrivals.is_empty()
    }
}

fn flash(change: impl FnOnce(&mut Config)) -> Flash {
    let mut config = presets::find("tiny").expect("a preset").config();
    config.geometry.mw_cunits = 0;
    change(&mut config);
    Flash::format(config).expect("settings that can be used")
}

fn linear(flash: &Flash, units: &[u32]) -> Linear {
    let units: Vec<PuId> = units.iter().copied().map(PuId).collect();
    let report = |chunk| flash.chunk(chunk);
    let parts = Parts {
        geometry: flash.geometry(),
        units: &units,
        report: &report,
        layout: Layout::Chunk,
        plane_reads: PlaneReads::Aligned,
    };
    Linear::new(&parts).expect("usable")
}

fn request(tag: u32, op: BlockOp, block: u64, count: u32, buffer: Option<BufId>) -> BlockRequest {
    BlockRequest { tag: Tag(tag), op, block, count, buffer }
}

/// An unwritten sector read without a buffer: over the link in 1 028 ns, told 5 us later.
const READ: Nanos = Nanos(6_028);

#[test]
fn at_equal_times_completions_come_first_then_arrivals_timers_and_commands_by_target() {
    let flash = flash(|_| ());
    let log = Log::default();
    let target = |name, units: &[u32], timer| Logged {
        name,
        inner: linear(&flash, units),
        log: log.clone(),
        timer,
        has_map: false,
    };
    let (a, b) = (target("a", &[0, 1], Some(READ)), target("b", &[2, 3], Some(READ)));
    let buffers = Buffers::new(flash.payload_format());
    let mut host: Host<_, _> = Host::new(Check::new(flash), VirtualClock::default(), buffers);
    let (a, b) = (host.add(Box::new(a)), host.add(Box::new(b)));
    let read = |tag| request(tag, BlockOp::Read, 0, 1, None);
    // The first read ends exactly when the others arrive and the timers are due.
    let arrivals = [(Nanos::ZERO, a, read(1)), (READ, b, read(2)), (READ, a, read(3)), (READ, b, read(4))];
    let mut source = Timed { arrivals: arrivals.into(), ..Timed::default() };
    assert_eq!(host.run(&mut source, Nanos::MAX), RunEnd::Finished);
    let at_once: Vec<String> =
        log.borrow().iter().filter(|(at, _)| *at == READ).map(|(_, what)| what.clone()).collect();
    let expected = [
        "a completion",
        "b arrival 2",
        "a arrival 3",
        "b arrival 4",
        "a timer",
        "b timer",
        "a command",
        "b command",
        "b command",
    ];
    assert_eq!(at_once, expected);
    let tags: Vec<u32> = source.replies.iter().map(|(_, tag, _)| tag.0).collect();
    assert_eq!(tags, [1, 3, 2, 4], "the drive serves in the order of the commands");
}

#[test]
fn replies_come_first_in_first_out() {
    let flash = flash(|_| ());
    let target = linear(&flash, &[0, 1, 2, 3]);
    let buffers = Buffers::new(flash.payload_format());
    let mut host: Host<_, _> = Host::new(flash, VirtualClock::default(), buffers);
    let id = host.add(Box::new(target));
    let arrivals = (0..20).map(|tag| (Nanos(u64::from(tag)), id, request(tag, BlockOp::Flush, 0, 0, None)));
    let mut source = Timed { arrivals: arrivals.collect(), ..Timed::default() };
    assert_eq!(host.run(&mut source, Nanos::MAX), RunEnd::Finished);
    assert!(source.replies.is_sorted_by_key(|&(at, tag, _)| (at, tag)));
    assert_eq!(source.replies.len(), 20);
}

#[test]
fn a_run_without_anything_to_wait_for_is_stuck_and_says_so() {
    let flash = flash(|_| ());
    let target = linear(&flash, &[0]);
    let buffers = Buffers::new(flash.payload_format());
    let mut host: Host<_, _> = Host::new(flash, VirtualClock::default(), buffers);
    let id = host.add(Box::new(target));
    let arrivals = [(Nanos(5), id, request(1, BlockOp::Flush, 0, 0, None))].into();
    let mut source = Timed { arrivals, endless: true, ..Timed::default() };
    assert_eq!(host.run(&mut source, Nanos::MAX), RunEnd::Stuck);
    assert_eq!(source.replies.len(), 1, "what could be done was done");
}

#[test]
fn a_target_that_was_left_makes_place_for_another() {
    let flash = flash(|_| ());
    let (left, next) = (linear(&flash, &[0]), linear(&flash, &[1, 2]));
    let buffers = Buffers::new(flash.payload_format());
    let mut host: Host<_, _> = Host::new(flash, VirtualClock::default(), buffers);
    let id = host.add(Box::new(left));
    let blocks = host.target(id).block_count();
    let back = host.replace(id, Box::new(next));
    assert_eq!((back.block_count(), host.target(id).block_count()), (blocks, 2 * blocks));
    host.clock_mut().wait_until(Nanos(9));
    let arrivals = [(Nanos(10), id, request(1, BlockOp::Flush, 0, 0, None))].into();
    let mut source = Timed { arrivals, ..Timed::default() };
    assert_eq!(host.run(&mut source, Nanos::MAX), RunEnd::Finished);
    assert_eq!(source.replies.len(), 1, "the new one answers");
}

#[test]
fn a_run_stops_at_its_time_and_goes_on_from_there() {
    let flash = flash(|_| ());
    let target = linear(&flash, &[0, 1]);
    let mut buffers = Buffers::new(flash.payload_format());
    let buffer = buffers.take(8);
    let mut host: Host<_, _> = Host::new(Check::new(flash), VirtualClock::default(), buffers);
    let id = host.add(Box::new(target));
    let write = request(1, BlockOp::Write { fua: false }, 0, 8, Some(buffer));
    let late = request(2, BlockOp::Read, 0, 1, Some(buffer));
    let arrivals = [(Nanos::ZERO, id, write), (Nanos::from_millis(2), id, late)].into();
    let mut source = Timed { arrivals, ..Timed::default() };
    let stop = Nanos::from_micros(100);
    assert_eq!(host.run(&mut source, stop), RunEnd::Stopped);
    assert_eq!((host.clock().now(), source.replies.len(), host.device().in_flight()), (stop, 0, 1));
    assert_eq!(host.run(&mut source, stop), RunEnd::Stopped, "no turn is made at the end");
    assert_eq!(host.run(&mut source, Nanos::from_millis(1)), RunEnd::Stopped);
    assert_eq!(source.replies, [(Nanos(396_464), Tag(1), Status::SUCCESS)]);
    assert_eq!(host.run(&mut source, Nanos::MAX), RunEnd::Finished);
    assert_eq!(source.replies[1].0, Nanos(2_000_000 + 57_308));
}

#[test]
fn a_device_with_few_places_is_fed_as_places_come() {
    let flash = flash(|config| config.queue_depth = 2);
    let target = linear(&flash, &[0, 1, 2, 3]);
    let buffers = Buffers::new(flash.payload_format());
    let mut host: Host<_, _> = Host::new(Check::new(flash), VirtualClock::default(), buffers);
    let id = host.add(Box::new(target));
    let arrivals = (0..50).map(|tag| (Nanos::ZERO, id, request(tag, BlockOp::Read, 0, 1, None)));
    let mut source = Timed { arrivals: arrivals.collect(), ..Timed::default() };
    assert_eq!(host.run(&mut source, Nanos::MAX), RunEnd::Finished);
    let tags: Vec<u32> = source.replies.iter().map(|(_, tag, _)| tag.0).collect();
    assert_eq!(tags, (0..50).collect::<Vec<_>>());
}

#[test]
fn a_full_target_refuses_and_is_offered_the_request_again() {
    let flash = flash(|_| ());
    let target = linear(&flash, &[0, 1, 2, 3]);
    let buffers = Buffers::new(flash.payload_format());
    let mut host: Host<_, _> = Host::new(flash, VirtualClock::default(), buffers);
    let id = host.add(Box::new(target));
    let arrivals = (0..5_000).map(|tag| (Nanos::ZERO, id, request(tag, BlockOp::Read, 0, 1, None)));
    let mut source = Timed { arrivals: arrivals.collect(), ..Timed::default() };
    assert_eq!(host.run(&mut source, Nanos::MAX), RunEnd::Finished);
    assert!(source.refused > 0, "the target has 4096 places");
    let tags: Vec<u32> = source.replies.iter().map(|(_, tag, _)| tag.0).collect();
    assert_eq!(tags, (0..5_000).collect::<Vec<_>>(), "none is lost, none overtakes");
}

/// Sixteen writes and as many reads, 2 ms in all: what the drive holds, and the trace.
fn small_run<C: Clock>(clock: C) -> (Vec<u8>, Vec<Option<u32>>, u64) {
    let flash = flash(|_| ());
    let target = linear(&flash, &[0, 1, 2, 3]);
    let mut buffers = Buffers::new(flash.payload_format());
    let all = buffers.take(128);
    let mut arrivals = VecDeque::new();
    for number in 0..4u32 {
        let buffer = buffers.take(8);
        buffers.data_mut(buffer, 0, 8).fill(u8::try_from(number + 1).expect("small"));
        let write = request(number, BlockOp::Write { fua: false }, u64::from(number) * 32, 8, Some(buffer));
        arrivals.push_back((Nanos(u64::from(number) * 1_000), TargetId(0), write));
    }
    for number in 0..4u32 {
        let buffer = if number == 0 { all } else { buffers.take(8) };
        let read = request(10 + number, BlockOp::Read, u64::from(number) * 32, 8, Some(buffer));
        arrivals.push_back((Nanos::from_millis(1), TargetId(0), read));
    }
    let mut host: Host<_, _> = Host::new(Trace::new(flash, 0), clock, buffers);
    host.add(Box::new(target));
    let mut source = Timed { arrivals, ..Timed::default() };
    assert_eq!(host.run(&mut source, Nanos::MAX), RunEnd::Finished);
    assert!(source.replies.iter().all(|(.., status)| status.is_success()), "{:?}", source.replies);
    let content = host.buffers_mut().data(all, 0, 8).to_vec();
    let flash = host.device().inner();
    let pointers = (0..32).map(|chunk| flash.chunk(ChunkId(chunk)).write_pointer).collect();
    let hash = host.device().hash();
    (content, pointers, hash)
}

#[test]
fn virtual_runs_repeat_to_the_nanosecond() {
    assert_eq!(small_run(VirtualClock::default()), small_run(VirtualClock::default()));
}

#[test]
fn a_run_in_wall_time_does_the_same_as_one_in_virtual_time() {
    let (content, pointers, _) = small_run(WallClock::default());
    let (expected, expected_pointers, _) = small_run(VirtualClock::default());
    assert_eq!((content, pointers), (expected, expected_pointers));
}

/// Random reads, writes and what is refused, on one target or on a wrapper that gives no command with the request: every reply
/// with its time, and the trace.
fn random_run(seed: u64, depth: u32, wrapped: bool) -> (Vec<(Nanos, Tag, Status)>, u64) {
    let flash = flash(|config| config.queue_depth = depth);
    let target = linear(&flash, &[0, 1, 2, 3]);
    let mut buffers = Buffers::new(flash.payload_format());
    let mut prng = Prng::new(seed);
    let (mut arrivals, mut at, mut written) = (VecDeque::new(), Nanos::ZERO, 0);
    for tag in 0..300 {
        // Several at once, some while others are under way, some after all have ended.
        at += Nanos([0, 0, 3_000, 40_000, 2_000_000][usize::try_from(prng.below(5)).expect("small")]);
        let count = u32::try_from(prng.below(100)).expect("small");
        let buffer = Some(buffers.take(count.max(8)));
        let request = match prng.below(4) {
            0 => {
                written += 8;
                request(tag, BlockOp::Write { fua: false }, written - 8, 8, buffer)
            }
            1 => request(tag, BlockOp::Read, prng.below(written + 1), count, buffer),
            2 => request(tag, BlockOp::Read, prng.below(written + 1), 1, buffer),
            _ => request(tag, BlockOp::Flush, 0, 0, None),
        };
        arrivals.push_back((at, TargetId(0), request));
    }
    let mut host: Host<_, _> = Host::new(Trace::new(Check::new(flash), 0), VirtualClock::default(), buffers);
    if wrapped {
        host.add(Box::new(Logged {
            name: "a",
            inner: target,
            log: Log::default(),
            timer: None,
            has_map: false,
        }));
    } else {
        host.add(Box::new(target));
    }
    let mut source = Timed { arrivals, ..Timed::default() };
    assert_eq!(host.run(&mut source, Nanos::MAX), RunEnd::Finished, "seed {seed}");
    (source.replies, host.device().hash())
}

#[test]
fn a_target_that_gives_its_command_with_the_request_does_what_one_does_that_waits() {
    for seed in 0..20 {
        for depth in [2, 64] {
            let (direct, later) = (random_run(seed, depth, false), random_run(seed, depth, true));
            let first = direct.0.iter().zip(&later.0).position(|(a, b)| a != b);
            assert_eq!(first.map(|at| (at, direct.0[at], later.0[at])), None, "seed {seed}, depth {depth}");
            assert_eq!(direct.1, later.1, "seed {seed}, depth {depth}: the traces differ");
            assert_eq!(direct.0.len(), 300, "seed {seed}: every request was answered");
        }
    }
}

#[test]
fn a_target_with_a_map_hears_of_the_requests_that_come_next() {
    for has_map in [false, true] {
        let flash = flash(|_| ());
        let log = Log::default();
        let target =
            Logged { name: "a", inner: linear(&flash, &[0, 1]), log: log.clone(), timer: None, has_map };
        let buffers = Buffers::new(flash.payload_format());
        let mut host: Host<_, _> = Host::new(flash, VirtualClock::default(), buffers);
        let id = host.add(Box::new(target));
        let read =
            |tag: u32| (Nanos(u64::from(tag)), id, request(tag, BlockOp::Read, u64::from(tag), 1, None));
        let mut source = Timed { arrivals: (0..40).map(read).collect(), ..Timed::default() };
        assert_eq!(host.run(&mut source, Nanos::MAX), RunEnd::Finished);
        let told: Vec<String> = log
            .borrow()
            .iter()
            .map(|(_, what)| what.clone())
            .filter(|what| what.contains("prefetches"))
            .collect();
        let blocks = |range: std::ops::Range<u64>| format!("a prefetches {:?}", range.collect::<Vec<_>>());
        let all = [blocks(1..17), blocks(17..33), blocks(33..40)];
        assert_eq!(told, if has_map { all.to_vec() } else { Vec::new() }, "map: {has_map}");
    }
}
