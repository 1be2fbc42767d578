//! Virtual host CPUs around targets whose own behaviour is trivial, under the real loop: who waits for whom, and how long.
//!
//! The inner target answers reads after a fixed time and writes once they are in a ring of its own, which commands to a
//! drive with a fixed latency empty; the ring never holds more than it has places. One test runs pblk on a virtual drive.

mod full_ring;
mod interfaces;
mod sockets;
mod threads;

use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Caller, Clock, Host, RunEnd, VirtualClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Zones};
use ocssd_lightnvm::{
    Addresses, Admission, Buffers, ChunkDescriptor, ChunkId, Command, Completion, Device, Geometry, Op, Out,
    Payload, PayloadFormat, PlaneMode, Ppa, PuId, Rejected, Status, Tag, Target,
};
use ocssd_targets::pblk::{Mode, Options, Pblk};
use ocssd_workload::host_cpu::{HostCpu, HostCpuConfig, HostCpuStats, Waiting};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use threads::Threads;

const WRITE: BlockOp = BlockOp::Write { fua: false };
/// Blocks of a command that empties the ring.
const UNIT: u32 = 16;

/// What the inner target was offered: the block, and whether it took the request.
type Offers = Rc<RefCell<Vec<(BlockOp, u64, bool)>>>;

/// The inner target.
#[derive(Default)]
struct Buffered {
    read_ns: Nanos,
    ring: u32,
    requests_max: usize,
    chunks: u32,
    zoned: bool,
    used: u32,
    filled: u32,
    taken: usize,
    commands: u32,
    writes: VecDeque<(Tag, u32)>,
    reads: VecDeque<(Nanos, Tag)>,
    replies: VecDeque<Tag>,
    written: u64,
    offers: Offers,
}

impl Buffered {
    fn new() -> Self {
        Self { read_ns: Nanos(50_000), ring: 256, requests_max: 1024, chunks: 64, ..Self::default() }
    }

    fn admit(&mut self) {
        while let Some((tag, count)) =
            self.writes.pop_front_if(|&mut (_, count)| self.used + count <= self.ring)
        {
            self.used += count;
            self.filled += count;
            self.replies.push_back(tag);
        }
    }
}

impl Target for Buffered {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, now: Nanos, request: &BlockRequest, _out: &mut Out<BlockReply>) -> Admission {
        let taken = self.taken < self.requests_max;
        self.offers.borrow_mut().push((request.op, request.block, taken));
        if !taken {
            return Admission::Full;
        }
        self.taken += 1;
        match request.op {
            BlockOp::Read if self.read_ns > Nanos::ZERO => {
                self.reads.push_back((now + self.read_ns, request.tag));
            }
            BlockOp::Write { .. } => {
                assert!(!self.zoned || request.block == self.written, "zones are written in order");
                self.written += u64::from(request.count);
                self.writes.push_back((request.tag, request.count));
            }
            _ => self.replies.push_back(request.tag),
        }
        self.admit();
        Admission::Taken
    }

    fn on_completion(&mut self, _now: Nanos, _completion: Completion, out: &mut Out<BlockReply>) {
        self.used -= UNIT;
        self.admit();
        self.give_replies(out);
    }

    fn on_deadline(&mut self, now: Nanos, _out: &mut Out<BlockReply>) {
        while let Some((_, tag)) = self.reads.pop_front_if(|&mut (at, _)| at <= now) {
            self.replies.push_back(tag);
        }
    }

    fn deadline(&self) -> Option<Nanos> {
        self.reads.front().map(|&(at, _)| at)
    }

    fn advance(&mut self, _now: Nanos, out: &mut Out<BlockReply>) {
        while out.has_room()
            && let Some(command) = self.next_command()
        {
            out.command(command);
        }
        self.give_replies(out);
    }

    fn check(&self) {
        assert!(self.used <= self.ring);
    }
}

impl Buffered {
    fn next_command(&mut self) -> Option<Command> {
        self.filled = self.filled.checked_sub(UNIT)?;
        self.commands += 1;
        let first = Ppa::new(ChunkId(self.commands % self.chunks), self.commands);
        let addresses = Addresses::Run { first, count: UNIT };
        let op = Op::Write { fua: false };
        Some(Command {
            tag: Tag(0),
            op,
            addresses,
            buffer: None,
            buffer_first: 0,
            oob: false,
            plane_mode: PlaneMode::Single,
        })
    }

    fn give_replies(&mut self, out: &mut Out<BlockReply>) {
        for tag in self.replies.drain(..) {
            self.taken -= 1;
            out.reply(BlockReply { tag, status: Status::SUCCESS, violation: None });
        }
    }
}

impl BlockTarget for Buffered {
    fn block_bytes(&self) -> u32 {
        4096
    }

    fn block_count(&self) -> u64 {
        1 << 30
    }

    fn zones(&self) -> Option<Zones> {
        self.zoned.then_some(Zones { blocks: 1 << 20, count: 1 << 10 })
    }

    fn write_unit(&self) -> u32 {
        1
    }

    fn unreadable_tail(&self) -> u64 {
        0
    }

    fn zone_written(&self, zone: u64) -> u64 {
        if zone == 0 { self.written } else { 0 }
    }
}

/// A drive that ends every command after a fixed time, and knows in which order each chunk was written.
struct Fixed {
    geometry: Geometry,
    latency: Nanos,
    flying: VecDeque<(Nanos, Tag)>,
    last: Vec<u32>,
}

impl Fixed {
    fn new(latency: Nanos) -> Self {
        let geometry = Geometry::example(1, 64, 1, 4096, UNIT);
        Self { geometry, latency, flying: VecDeque::new(), last: vec![0; 64] }
    }
}

impl Device for Fixed {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        unreachable!("nobody asks for chunk {}", chunk.0)
    }

    fn submit(&mut self, now: Nanos, command: Command, _buffers: &mut Buffers) -> Result<(), Rejected> {
        if let Addresses::Run { first, .. } = command.addresses {
            let last = std::mem::replace(&mut self.last[first.chunk.index()], first.sector);
            assert!(first.sector > last, "chunk {} is written out of order", first.chunk.0);
        }
        self.flying.push_back((now + self.latency, command.tag));
        Ok(())
    }

    fn deadline(&self) -> Option<Nanos> {
        self.flying.front().map(|&(at, _)| at)
    }

    fn poll_completion(&mut self, now: Nanos, _buffers: &mut Buffers) -> Option<Completion> {
        let (_, tag) = self.flying.pop_front_if(|&mut (at, _)| at <= now)?;
        Some(Completion::success(tag))
    }
}

fn buffers(device: &Fixed) -> Buffers {
    Buffers::new(PayloadFormat::new(Payload::Stamp, &device.geometry))
}

/// A run of `millis`: every reply, and what the model counted.
fn run(inner: Buffered, config: HostCpuConfig, mut threads: Threads, millis: u64) -> (Threads, HostCpuStats) {
    let device = Fixed::new(Nanos(30_000));
    let buffers = buffers(&device);
    let target = HostCpu::new(Box::new(inner), config).expect("sound parameters");
    let stats = target.stats();
    let mut host: Host<_, _> = Host::new(device, VirtualClock::default(), buffers);
    let id = host.add(Box::new(target));
    for step in 1..=10 {
        let stop_at = Nanos(Nanos::from_millis(millis).0 * step / 10);
        assert_eq!(host.run(&mut threads, stop_at), RunEnd::Stopped);
        host.target(id).check();
    }
    (threads, stats.read())
}

fn free(change: impl FnOnce(&mut HostCpuConfig)) -> HostCpuConfig {
    let mut config = HostCpuConfig::free();
    change(&mut config);
    config
}

/// Writers at 20 us a command, busy retry, everything else next to nothing.
fn busy(cores: u32, change: impl FnOnce(&mut HostCpuConfig)) -> HostCpuConfig {
    free(|config| {
        (config.cores, config.cores_per_socket, config.waiting) = (cores, 18, Waiting::BusyRetry);
        config.write_submit_ns = Nanos(103);
        config.yield_ns = Nanos(500);
        config.writer_command_ns = Nanos(20_000);
        change(config);
    })
}

fn write_commands(stats: &HostCpuStats) -> u64 {
    stats.writers.iter().map(|writer| writer.commands).sum()
}

#[test]
fn without_costs_every_reply_comes_when_it_would_without_the_model() {
    for seed in 1..=3 {
        let mixed = || Threads { mixed: Some(Prng::new(seed)), ..Threads::new(24, WRITE, 1) };
        let device = Fixed::new(Nanos(30_000));
        let buffers = buffers(&device);
        let mut bare = mixed();
        let mut host: Host<_, _> = Host::new(device, VirtualClock::default(), buffers);
        host.add(Box::new(Buffered { ring: 40, ..Buffered::new() }));
        assert_eq!(host.run(&mut bare, Nanos::from_millis(5)), RunEnd::Stopped);
        for waiting in [Waiting::Fair, Waiting::BusyRetry] {
            let inner = Buffered { ring: 40, ..Buffered::new() };
            let (wrapped, stats) = run(inner, free(|config| config.waiting = waiting), mixed(), 5);
            assert!(wrapped.replies.len() > 1000, "seed {seed}: {}", wrapped.replies.len());
            assert_eq!(wrapped.replies, bare.replies, "seed {seed}, {waiting:?}");
            assert_eq!(stats.cpu_ns + stats.core_wait_ns + stats.lock_wait_ns, Nanos::ZERO, "seed {seed}");
        }
    }
}

#[test]
fn one_core_serves_its_threads_one_after_the_other() {
    // 10 us of CPU before and 2 us after 48 us of media, and 1 us from one to the other: 61 us alone.
    let config = |cores| {
        free(|config| {
            (config.cores, config.read_submit_ns, config.completion_ns) =
                (cores, Nanos(10_000), Nanos(2_000));
            config.wake_up_ns = Nanos(1_000);
        })
    };
    let rate = |cores| {
        let inner = Buffered { read_ns: Nanos(48_000), ..Buffered::new() };
        run(inner, config(cores), Threads::new(8, BlockOp::Read, 1), 10)
    };
    let (many, stats) = rate(8);
    assert_eq!(many.replies.iter().filter(|&&(at, _)| at == Nanos(61_000)).count(), 8);
    assert_eq!((many.replies.len(), stats.core_wait_ns), (8 * (10_000 / 61), Nanos::ZERO));
    let (one, stats) = rate(1);
    // The core is never idle: 12 us of CPU each, all after the first.
    assert!((823..=833).contains(&one.replies.len()), "{}", one.replies.len());
    assert!(stats.core_wait_ns > Nanos::from_millis(10), "{}", stats.core_wait_ns);
}

#[test]
fn reads_from_memory_are_copied_and_others_are_woken() {
    let config = || {
        free(|config| {
            (config.copy_page_ns, config.wake_up_ns) = (Nanos(400), Nanos(7_000));
            (config.completion_ns, config.read_submit_ns) = (Nanos(100), Nanos(1_000));
        })
    };
    for (read_ns, first, slept) in [(Nanos::ZERO, 1_000 + 4 * 400, false), (Nanos(9_000), 17_100, true)] {
        let inner = Buffered { read_ns, ..Buffered::new() };
        let (threads, stats) = run(inner, config(), Threads::new(1, BlockOp::Read, 4), 1);
        assert_eq!((threads.replies[0].0, stats.slept > 0), (Nanos(first), slept));
    }
}

#[test]
fn reads_take_the_lock_of_the_map_one_after_the_other_and_pay_for_sockets() {
    let config = |lock, socket| {
        free(|config| {
            (config.cores, config.cores_per_socket) = (4, 2);
            (config.map_lock_page_ns, config.read_socket_ns) = (Nanos(lock), Nanos(socket));
        })
    };
    let first_replies = |lock, socket| {
        let inner = Buffered { read_ns: Nanos(1_000), ..Buffered::new() };
        let (threads, stats) = run(inner, config(lock, socket), Threads::new(4, BlockOp::Read, 2), 1);
        (threads.replies[..4].iter().map(|&(at, _)| at.0).collect::<Vec<u64>>(), stats.lock_wait_ns)
    };
    let (replies, wait) = first_replies(100, 0);
    assert_eq!(replies, [1_200, 1_400, 1_600, 1_800]);
    assert!(wait >= Nanos(200 + 400 + 600), "{wait}");
    // The first two come while one socket reads.
    assert_eq!(first_replies(0, 5_000), (vec![1_000, 1_000, 6_000, 6_000], Nanos::ZERO));
}

#[test]
fn throughput_is_what_the_writers_prepare() {
    for (writers, chunks, expected) in [(1, 64, 500), (2, 64, 1000), (4, 64, 2000), (4, 1, 500)] {
        let config = free(|config| {
            (config.cores, config.writers, config.writer_command_ns) = (16, writers, Nanos(4_000));
            config.writer_page_ns = Nanos(1_000);
        });
        let inner = Buffered { chunks, ..Buffered::new() };
        let (threads, stats) = run(inner, config, Threads::new(32, WRITE, 16), 10);
        let commands = write_commands(&stats);
        // 20 us a command; one chunk is written by one writer at a time.
        assert!(commands.abs_diff(expected) <= u64::from(writers), "{writers} writers: {commands}");
        let replies = u64::try_from(threads.replies.len()).expect("few");
        assert!(replies.abs_diff(expected) <= 20, "{writers} writers: {replies} writes of one command each");
        let busy: u64 = stats.writers.iter().map(|writer| writer.busy_ns().0).sum();
        assert_eq!(busy, commands * 20_000, "nothing starved it");
    }
}

#[test]
fn threads_get_equal_shares() {
    for waiting in [Waiting::Fair, Waiting::BusyRetry] {
        let config = busy(12, |config| config.waiting = waiting);
        let (_, stats) = run(Buffered::new(), config, Threads::new(24, WRITE, 4), 20);
        assert_eq!(stats.threads.len(), 24);
        let shares = || stats.threads.iter().map(|thread| thread.requests);
        let (least, most) = (shares().min().expect("some"), shares().max().expect("some"));
        assert!(least > 50 && most - least <= most / 10 + 2, "{waiting:?}: {least} to {most}");
        assert_eq!(shares().sum::<u64>(), stats.requests);
    }
}

#[test]
fn spinners_halve_the_writer_exactly_when_no_core_is_free() {
    type Change = fn(&mut HostCpuConfig);
    let cases: [(u32, Change, u64, &str); 6] = [
        (9, |_| (), 1000, "a core is free"),
        (8, |_| (), 500, "a spinner on every core"),
        (4, |_| (), 333, "two spinners on every core"),
        (8, |config| config.waiting = Waiting::Fair, 1000, "nobody spins"),
        (8, |config| config.spinner_starvation = false, 1000, "spinners are no load"),
        (8, |config| config.writers = 2, 1000, "two writers, each halved"),
    ];
    for (cores, change, expected, why) in cases {
        // 20 us a command and a ring of one command: what is not with the writer or the drive is waited for.
        let inner = Buffered { ring: 64, ..Buffered::new() };
        let (_, stats) = run(inner, busy(cores, change), Threads::new(8, WRITE, 16), 20);
        let commands = write_commands(&stats);
        assert!(commands.abs_diff(expected) * 50 <= expected, "{why}: {commands}, not {expected}");
        let starved: Nanos = stats.writers.iter().fold(Nanos::ZERO, |sum, writer| sum + writer.starved_ns);
        assert_eq!(starved > Nanos::from_millis(1), expected < 1000 || why.contains("each"), "{why}");
        assert_eq!(stats.retries > 0, why != "nobody spins", "{why}");
    }
}

#[test]
fn the_lock_is_waited_for_longer_with_more_threads_and_sockets() {
    let mean_wait = |threads: u32, change: fn(&mut HostCpuConfig)| {
        let config = busy(threads, |config| {
            (config.lock_test_ns, config.lock_page_ns, config.transfer_ns) =
                (Nanos(50), Nanos(60), Nanos(200));
            change(config);
        });
        let (_, stats) = run(Buffered::new(), config, Threads::new(threads, WRITE, 1), 10);
        stats.lock_wait_ns.0 / stats.lock_holds
    };
    let waits = [2, 8, 18, 36, 72].map(|threads| mean_wait(threads, |_| ()));
    assert!(waits.is_sorted() && waits[2] > waits[0], "{waits:?}");
    // Beyond one socket the line moves as well: more than in proportion to the threads.
    assert!(waits[3] > 3 * waits[2] && waits[4] > 2 * waits[3], "{waits:?}");
    assert!(mean_wait(72, |config| config.cross_socket = false) < waits[4] / 2, "{waits:?}");
    assert_eq!(mean_wait(72, |config| config.lock = false), 0);
    assert!(mean_wait(72, |config| config.waiting = Waiting::Fair) < waits[4] / 2, "{waits:?}");
}

#[test]
fn the_same_run_is_the_same_run() {
    for seed in [1, 2] {
        let once = || {
            let config = HostCpuConfig { cores: 24, ring_bytes: 1 << 20, ..HostCpuConfig::e7_8870v3_x4() };
            let threads = Threads { mixed: Some(Prng::new(seed)), ..Threads::new(40, WRITE, 1) };
            run(Buffered::new(), config, threads, 10)
        };
        let ((first, first_stats), (second, second_stats)) = (once(), once());
        assert!(first.replies == second.replies, "seed {seed}: replies differ");
        assert_eq!(first_stats, second_stats, "seed {seed}");
        assert!(first_stats.spun > 0 && first_stats.slept > 0, "seed {seed}: {first_stats:?}");
    }
}

#[test]
fn what_the_inner_target_refuses_it_is_offered_again_before_anything_else() {
    for waiting in [Waiting::Fair, Waiting::BusyRetry] {
        let offers = Offers::default();
        let inner = Buffered { requests_max: 3, offers: offers.clone(), ..Buffered::new() };
        let config = free(|config| {
            (config.cores, config.waiting, config.requests_max) = (4, waiting, 12);
            (config.write_submit_ns, config.read_submit_ns) = (Nanos(700), Nanos(300));
        });
        let threads = Threads { mixed: Some(Prng::new(5)), ..Threads::new(16, WRITE, 1) };
        let (threads, stats) = run(inner, config, threads, 10);
        let offers = offers.borrow();
        assert!(stats.refused > 100 && threads.replies.len() > 500, "{waiting:?}: {}", stats.refused);
        for pair in offers.windows(2) {
            assert!(pair[0].2 || pair[0].1 == pair[1].1, "{waiting:?}: {pair:?} was overtaken");
        }
        let mut taken: Vec<u64> =
            offers.iter().filter(|o| o.2 && o.0 != BlockOp::Flush).map(|o| o.1).collect();
        let count = taken.len();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), count, "{waiting:?}: a request was taken twice");
    }
}

#[test]
fn zones_are_written_in_order_however_slow_a_core_is() {
    // Threads 0 and 3 share a core, so the fourth write is ready after the fifth.
    let config = || {
        free(|config| {
            (config.cores, config.cores_per_socket, config.write_submit_ns) = (3, 3, Nanos(1_000));
        })
    };
    let (threads, _) =
        run(Buffered { zoned: true, ..Buffered::new() }, config(), Threads::new(7, WRITE, 4), 5);
    assert!(threads.replies.len() > 1000, "the inner target asserts the order: {}", threads.replies.len());
    let inner = Buffered { zoned: true, ..Buffered::new() };
    let mut target = HostCpu::new(Box::new(inner), config()).expect("sound parameters");
    let mut out = Out::below();
    for (tag, op, expected) in [(0, WRITE, 4), (1, WRITE, 8), (2, BlockOp::ResetZone, 0), (3, WRITE, 4)] {
        let block = if op == WRITE { target.zone_written(0) } else { 0 };
        let request = BlockRequest { tag: Tag(tag), op, block, count: 4, buffer: None };
        assert!(target.submit(Nanos::ZERO, &request, &mut out).is_taken(), "there is room");
        assert_eq!(target.zone_written(0), expected, "request {tag} is counted while it waits for its core");
    }
    assert_eq!(target.zone_written(1), 0);
}

#[test]
fn a_shutdown_reaches_the_target_last_and_a_full_model_refuses() {
    let offers = Offers::default();
    let inner = Buffered { offers: offers.clone(), ..Buffered::new() };
    let config = free(|config| (config.requests_max, config.read_submit_ns) = (4, Nanos(1_000)));
    let mut target = HostCpu::new(Box::new(inner), config).expect("sound parameters");
    let mut out = Out::below();
    let request = |tag, op| BlockRequest { tag: Tag(tag), op, block: 7, count: 1, buffer: None };
    // One core: the shutdowns are ready while the second read still waits for it.
    let ops = [BlockOp::Read, BlockOp::Shutdown, BlockOp::Shutdown, BlockOp::Read];
    for (tag, op) in (0..).zip(ops) {
        assert!(target.submit(Nanos::ZERO, &request(tag, op), &mut out).is_taken(), "there is room");
    }
    let admission = target.submit(Nanos::ZERO, &request(9, WRITE), &mut out);
    assert_eq!(admission, Admission::Full, "four are in flight");
    let mut replies = 0;
    while let Some(at) = target.deadline() {
        target.on_deadline(at, &mut out);
        target.advance(at, &mut out);
        target.check();
        replies += out.replies_mut().0.drain(..).count();
    }
    assert_eq!(replies, 4);
    let order: Vec<BlockOp> = offers.borrow().iter().map(|offer| offer.0).collect();
    assert_eq!(order, [BlockOp::Read, BlockOp::Read, BlockOp::Shutdown, BlockOp::Shutdown]);
}

/// A drive of four units with a pblk instance on it, and its buffers.
fn pblk(mode: Mode) -> (Flash, Buffers, VirtualClock, Pblk) {
    let mut config = presets::find("tiny").expect("a preset").config();
    config.geometry = Geometry { mw_cunits: 8, ..Geometry::example(2, 2, 24, 64, 4) };
    (config.media.planes, config.media.sectors_per_page) = (1, 4);
    let mut device = Flash::format(config).expect("a sound drive");
    let mut buffers = Buffers::new(device.payload_format());
    let mut clock = VirtualClock::default();
    let units: Vec<PuId> = (0..4).map(PuId).collect();
    let options = Options { mode, over_provisioning_percent: 45, ..Options::default() };
    let mut caller = Caller { device: &mut device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let (pblk, _) = Pblk::mount(&mut caller, &units, &options).expect("it fits");
    (device, buffers, clock, pblk)
}

#[test]
fn pblk_runs_on_the_cpus_of_the_paper_and_its_collector_and_writer_are_seen() {
    for mode in [Mode::Faithful, Mode::Improved] {
        let (device, mut buffers, clock, pblk) = pblk(mode);
        let mut threads = Threads { mixed: Some(Prng::new(9)), ..Threads::new(12, WRITE, 1) };
        threads.span = pblk.block_count();
        threads.buffers = (0..12).map(|_| buffers.take(8)).collect();
        let config = HostCpuConfig { cores: 12, ..HostCpuConfig::e7_8870v3_x4() };
        let target = HostCpu::new(Box::new(pblk), config).expect("sound parameters");
        let stats = target.stats();
        let start = clock.now();
        let mut host: Host<_, _> = Host::new(device, clock, buffers);
        let id = host.add(Box::new(target));
        for step in 1..=20 {
            let stop_at = start + Nanos::from_millis(11 * step);
            assert_eq!(host.run(&mut threads, stop_at), RunEnd::Stopped, "{mode}");
            host.target(id).check();
        }
        let stats = stats.read();
        assert!(stats.requests > 500 && stats.threads.len() == 12, "{mode}: {stats:?}");
        assert!(write_commands(&stats) > 500 && stats.gc.commands > 0, "{mode}: {stats:?}");
        assert!(stats.spun > 0 && stats.slept > 0 && stats.lock_holds > stats.spun, "{mode}: {stats:?}");
    }
}

#[test]
fn wrong_parameters_make_no_target() {
    let said = HostCpu::new(Box::new(Buffered::new()), free(|config| config.writers = 0)).err();
    assert!(
        said.is_some_and(|problems| problems.to_string().contains("writers is 0, but it must be 1 to 64"))
    );
}
