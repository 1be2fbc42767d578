//! What a read costs beside its commands: of `ox-block`, its map in memory, and of `eleos` no page of the log, no other program,
//! and no allocation.
//!
//! Host and drive are counted too, so that nothing of a read is left out. Deliberately not here: what reads return.

#![expect(unsafe_code, reason = "a global allocator that counts cannot be written without it")]

use ocssd_base::{Nanos, Prng, usize_of};
use ocssd_engine::{Caller, Host, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::counter::CounterValue;
use ocssd_lightnvm::interface::log_structured::{
    LogOp, LogReply, LogRequest, LogTarget, PageEntry, PageId, SessionId, Wsn,
};
use ocssd_lightnvm::interface::{Content, Durability, List, Piece};
use ocssd_lightnvm::{Buffers, Geometry, PuId, Source, Status, Tag, Target, TargetId};
use ocssd_targets::ox_block::OxBlock;
use ocssd_targets::{eleos, ox_block};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Allocations of this thread so far; tests run in threads of their own.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; counting touches only a thread-local cell that needs no
// allocation and no destructor. What is zeroed or made longer comes through `alloc`, as the trait does it by itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, shape: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(shape) }
    }

    unsafe fn dealloc(&self, place: *mut u8, shape: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(place, shape) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests outstanding.
const DEPTH: u32 = 32;
/// Requests outstanding while it warms up: no queue is longer after that.
const DEPTH_WARM: u32 = 64;

/// Makes the request of this tag.
type Draw<T> = Box<dyn FnMut(u32) -> <T as Target>::Request>;

/// So many requests, some outstanding, that must all succeed. It allocates nothing itself.
struct Load<T: Target + ?Sized> {
    left: u64,
    tags: u32,
    free: Vec<u32>,
    draw: Draw<T>,
    /// The tag and the status of a reply.
    end: fn(&T::Reply) -> (Tag, Status),
}

impl<T: Target + ?Sized> Load<T> {
    fn new(draw: Draw<T>, end: fn(&T::Reply) -> (Tag, Status)) -> Self {
        Self { left: 0, tags: DEPTH_WARM, free: (0..DEPTH_WARM).collect(), draw, end }
    }
}

impl<T: Target + ?Sized> Source<T> for Load<T> {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, T::Request)> {
        if self.left == 0 {
            return None;
        }
        let tag = self.free.pop()?;
        self.left -= 1;
        Some((TargetId(0), (self.draw)(tag)))
    }

    fn on_refused(&mut self, _now: Nanos, _target: TargetId, _request: T::Request) {
        panic!("the target has room for more than {DEPTH_WARM} requests");
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: T::Reply, _buffers: &mut Buffers) {
        let (tag, status) = (self.end)(&reply);
        assert!(status.is_success(), "request {}: {status}", tag.0);
        self.free.push(tag.0);
    }

    fn is_finished(&self) -> bool {
        self.left == 0 && self.free.len() == usize_of(self.tags)
    }
}

/// What a read must leave as it is.
const WRITTEN: [&str; 7] = [
    "programmed_sectors",
    "log_written_sectors",
    "checkpoint_written_sectors",
    "gc_written_sectors",
    "gc_read_sectors",
    "resets",
    "transactions",
];

fn written<T: Target + ?Sized>(target: &T) -> [u64; WRITTEN.len()] {
    let counters = target.counters();
    WRITTEN.map(|name| {
        match counters.iter().find(|counter| counter.name == name).map(|counter| &counter.value) {
            Some(&CounterValue::Count(count)) => count,
            other => panic!("{name} is {other:?}"),
        }
    })
}

/// Runs the load once to warm up, and once to see what it costs.
fn check<T: Target + ?Sized>(host: &mut Host<Flash, VirtualClock, T>, load: &mut Load<T>, label: &str) {
    load.left = 20_000;
    assert_eq!(host.run(load, Nanos::MAX), RunEnd::Finished, "{label}");
    let before = written(host.target(TargetId(0)));
    (load.left, load.tags) = (20_000, DEPTH);
    load.free.truncate(usize_of(DEPTH));
    let allocated = COUNT.get();
    assert_eq!(host.run(load, Nanos::MAX), RunEnd::Finished, "{label}");
    let allocated = COUNT.get() - allocated;
    assert_eq!(written(host.target(TargetId(0))), before, "{label}: reads changed one of {WRITTEN:?}");
    assert_eq!(allocated, 0, "{label}: allocations in 20 000 reads");
    host.target(TargetId(0)).check();
}

fn config() -> Config {
    let geometry = Geometry { mw_cunits: 8, ..Geometry::example(1, 2, 120, 32, 4) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.queue_depth = 4096;
    config.geometry = geometry;
    config
}

/// A host of what is mounted on a fresh drive.
fn host<T: Target + ?Sized>(
    mount: impl FnOnce(&mut Caller<'_, Flash, VirtualClock>, &[PuId]) -> Box<T>,
) -> Host<Flash, VirtualClock, T> {
    let mut flash = Flash::format(config()).unwrap_or_else(|problems| panic!("{problems}"));
    let (mut buffers, mut clock) = (Buffers::new(flash.payload_format()), VirtualClock::default());
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let target = mount(&mut caller, &[PuId(0), PuId(1)]);
    let mut host = Host::new(flash, clock, buffers);
    host.add(target);
    host
}

/// Blocks that were written and others, one by one and in runs, also across what lies in different chunks.
#[test]
fn reads_of_ox_block_write_nothing_and_allocate_nothing() {
    let options = ox_block::Options::default();
    let mount = |caller: &mut Caller<'_, Flash, VirtualClock>, units: &[PuId]| -> Box<dyn BlockTarget> {
        Box::new(OxBlock::mount(caller, units, &options).expect("a sound drive").0)
    };
    let mut host = host::<dyn BlockTarget>(mount);
    let blocks = host.target(TargetId(0)).block_count();
    let places: Vec<_> = (0..DEPTH_WARM).map(|_| host.buffers_mut().take(8)).collect();
    let (mut prng, op) = (Prng::new(1), BlockOp::Write { fua: false });
    for tag in 0..2_000 {
        let block = prng.below(blocks * 7 / 8);
        let request = BlockRequest { tag: Tag(tag), op, block, count: 8, buffer: Some(places[0]) };
        assert!(host.ask(request).status.is_success(), "write {tag}");
    }
    for count_max in [1, 8] {
        let mut prng = prng.split("reads");
        let places = places.clone();
        let draw = move |tag: u32| {
            let count = 1 + u32::try_from(prng.below(count_max)).expect("few");
            let block = prng.below(blocks - u64::from(count) + 1);
            let buffer = Some(places[usize_of(tag)]);
            BlockRequest { tag: Tag(tag), op: BlockOp::Read, block, count, buffer }
        };
        let end = |reply: &BlockReply| (reply.tag, reply.status);
        check(&mut host, &mut Load::new(Box::new(draw), end), &format!("seed 1, up to {count_max} blocks"));
    }
}

const PAGES: u64 = 512;
/// Bytes of the longest page: some are in two parts.
const PAGE_BYTES_MAX: u32 = 6 << 10;

#[test]
fn reads_of_eleos_write_nothing_and_allocate_nothing() {
    let options = eleos::Options::default();
    let mount = |caller: &mut Caller<'_, Flash, VirtualClock>, units: &[PuId]| -> Box<dyn LogTarget> {
        Box::new(eleos::Eleos::mount(caller, units, &options).expect("a sound drive").0)
    };
    let mut host = host::<dyn LogTarget>(mount);
    let session = SessionId(1);
    let opened = host.ask(LogRequest { tag: Tag(0), op: LogOp::OpenSession { session } });
    assert!(opened.status.is_success(), "{opened:?}");
    let mut prng = Prng::new(2);
    let mut wsn = Wsn::default();
    let bytes = 64 * PAGE_BYTES_MAX;
    let buffer = host.buffers_mut().take_whole(bytes / 4096);
    host.buffers_mut().whole_mut(buffer, 0, bytes / 4096).fill(0x5A);
    let sectors = List::<PageEntry>::sectors(64, host.buffers_mut());
    let table = host.buffers_mut().take_whole(sectors);
    for flush in 0..3 * PAGES / 64 {
        wsn = wsn.next();
        let mut rows = Vec::new();
        for row in 0..64 {
            let length = 64 * (1 + u32::try_from(prng.below(u64::from(PAGE_BYTES_MAX / 64))).expect("short"));
            let page = PageId((flush * 64 + u64::from(row)) % PAGES);
            rows.push(PageEntry { page, offset: row * PAGE_BYTES_MAX, bytes: length });
        }
        let content = Content::Piece(Piece { buffer, first_byte: 0, bytes });
        let pages = List::write(host.buffers_mut(), table, &rows);
        let op = LogOp::Flush { session, wsn, content, pages, durability: Durability::AtReply };
        let reply = host.ask(LogRequest { tag: Tag(0), op });
        assert!(reply.status.is_success(), "flush {flush}: {reply:?}");
    }
    let places: Vec<_> = (0..DEPTH_WARM).map(|_| host.buffers_mut().take_whole(2)).collect();
    let draw = move |tag: u32| {
        let into = Content::Piece(Piece { buffer: places[usize_of(tag)], first_byte: 0, bytes: 2 * 4096 });
        let (page, offset) = (PageId(prng.below(PAGES)), 0);
        LogRequest { tag: Tag(tag), op: LogOp::Read { page, offset, into } }
    };
    let end = |reply: &LogReply| (reply.tag, reply.status);
    check(&mut host, &mut Load::<dyn LogTarget>::new(Box::new(draw), end), "seed 2");
}
