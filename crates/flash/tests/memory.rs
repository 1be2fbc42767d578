//! What the drive costs in memory, measured at the allocator: nothing per I/O, little when empty, stamps when full.

#![expect(unsafe_code, reason = "a global allocator that counts cannot be written without it")]

use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Host, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{
    Addresses, BufId, Buffers, ChunkId, Command, Device, Op, PlaneMode, Ppa, PuId, Source, Tag, TargetId,
};
use ocssd_targets::registry::Parts;
use ocssd_targets::{Layout, Linear, PlaneReads};
use std::alloc::{GlobalAlloc, Layout as Shape, System};
use std::cell::Cell;

thread_local! {
    /// Allocations of this thread so far, and bytes it holds; tests run in threads of their own.
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn note(count: u64, bytes: i64) {
    COUNT.with(|cell| cell.set(cell.get() + count));
    BYTES.with(|cell| cell.set(cell.get() + bytes));
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).expect("an allocation fits 63 bits")
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting touches only thread-local cells that
// need no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, shape: Shape) -> *mut u8 {
        note(1, signed(shape.size()));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(shape) }
    }

    unsafe fn dealloc(&self, place: *mut u8, shape: Shape) {
        note(0, -signed(shape.size()));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(place, shape) }
    }

    unsafe fn alloc_zeroed(&self, shape: Shape) -> *mut u8 {
        note(1, signed(shape.size()));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(shape) }
    }

    unsafe fn realloc(&self, place: *mut u8, shape: Shape, size: usize) -> *mut u8 {
        note(1, signed(size) - signed(shape.size()));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(place, shape, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A closed loop that allocates nothing itself: zones written in turn and reset when full, or random reads.
struct Load {
    buffers: Vec<BufId>,
    spare: u64,
    requests: u64,
    open: u64,
    done: u64,
    kind: Kind,
}

enum Kind {
    /// Writes of `count` blocks over zones of `zone` blocks, `zones` of them in turn; each is reset before it is reused.
    Sequential {
        count: u32,
        zone: u64,
        zones: u64,
        block: u64,
        resetting: bool,
    },
    Random {
        prng: Prng,
        blocks: u64,
    },
}

impl Source for Load {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        if self.spare == 0 || self.requests == 0 {
            return None;
        }
        let buffer = Some(self.buffers[usize::try_from(self.spare - 1).expect("few buffers")]);
        let tag = Tag(0);
        let request = match &mut self.kind {
            Kind::Random { prng, blocks } => {
                BlockRequest { tag, op: BlockOp::Read, block: prng.below(*blocks), count: 1, buffer }
            }
            Kind::Sequential { count, zone, zones, block, resetting } => {
                if block.is_multiple_of(*zone) && !*resetting {
                    // Every write before is done: a zone is reset when nothing else is in flight.
                    if self.open > 0 {
                        return None;
                    }
                    *resetting = true;
                    BlockRequest { tag, op: BlockOp::ResetZone, block: *block, count: 0, buffer: None }
                } else {
                    let write = BlockOp::Write { fua: false };
                    let request = BlockRequest { tag, op: write, block: *block, count: *count, buffer };
                    *resetting = false;
                    *block = (*block + u64::from(*count)) % (*zone * *zones);
                    request
                }
            }
        };
        (self.spare, self.requests, self.open) = (self.spare - 1, self.requests - 1, self.open + 1);
        Some((TargetId(0), request))
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, request: BlockRequest) {
        panic!("target {} has room for more than this load gives: {request:?}", target.0);
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: BlockReply, _buffers: &mut Buffers) {
        assert!(reply.status.is_success(), "{reply:?}");
        (self.spare, self.open, self.done) = (self.spare + 1, self.open - 1, self.done + 1);
    }

    fn is_finished(&self) -> bool {
        self.requests == 0 && self.open == 0
    }
}

fn config(name: &str) -> Config {
    presets::find(name).expect("a preset").config()
}

fn host(config: Config, depth: u32, sectors: u32) -> (Host<Flash, VirtualClock>, Vec<BufId>) {
    let flash = Flash::format(config).expect("settings that can be used");
    let units: Vec<PuId> = (0..flash.geometry().pu_count()).map(PuId).collect();
    let report = |chunk| flash.chunk(chunk);
    let parts = Parts {
        geometry: flash.geometry(),
        units: &units,
        report: &report,
        layout: Layout::Striped,
        plane_reads: PlaneReads::Aligned,
    };
    let target = Linear::new(&parts).expect("usable");
    let mut buffers = Buffers::new(flash.payload_format());
    let taken = (0..depth).map(|_| buffers.take(sectors)).collect();
    let mut host: Host<_, _> = Host::new(flash, VirtualClock::default(), buffers);
    host.add(Box::new(target));
    (host, taken)
}

fn load(buffers: &[BufId], requests: u64, kind: Kind) -> Load {
    let spare = u64::try_from(buffers.len()).expect("few buffers");
    Load { buffers: buffers.to_vec(), spare, requests, open: 0, done: 0, kind }
}

/// Allocations while `requests` more requests of a warm load run.
fn allocations(host: &mut Host<Flash, VirtualClock>, load: &mut Load, warm: u64, measured: u64) -> u64 {
    load.requests = warm;
    assert_eq!(host.run(load, Nanos::MAX), RunEnd::Finished);
    load.requests = measured;
    let before = COUNT.get();
    assert_eq!(host.run(load, Nanos::MAX), RunEnd::Finished);
    let after = COUNT.get();
    assert_eq!(load.done, warm + measured);
    after - before
}

#[test]
fn random_reads_and_sequential_writes_with_resets_allocate_nothing_in_steady_state() {
    for (cache, name) in [(0, "no cache"), (4096, "cache")] {
        let mut small = config("cnex-tlc");
        small.geometry.chunks_per_pu = 6;
        small.geometry.sectors_per_chunk = 384;
        small.cache.sectors = cache;
        let (mut host, buffers) = host(small, 32, 48);
        let zone = 32 * 384;
        let writes = Kind::Sequential { count: 48, zone, zones: 4, block: 0, resetting: false };
        let mut writer = load(&buffers, 0, writes);
        // Four zones of 256 writes and a reset each: twice around to warm up, four times measured.
        let found = allocations(&mut host, &mut writer, 2 * 4 * 257, 4 * 4 * 257);
        assert_eq!(found, 0, "{name}: writes and resets");
        assert!(host.device().counters().resets > 3 * 4 * 32, "{name}: the zones were really reset");
        let mut reader = load(&buffers, 0, Kind::Random { prng: Prng::new(8), blocks: 2 * zone });
        let found = allocations(&mut host, &mut reader, 2_000, 20_000);
        assert_eq!(found, 0, "{name}: random reads");
    }
}

#[test]
fn an_empty_two_terabyte_drive_takes_less_than_64_mib() {
    let westlake = config("westlake");
    assert!(westlake.geometry.capacity_bytes() > 2_000_000_000_000);
    let before = BYTES.get();
    let flash = Flash::format(westlake).expect("settings that can be used");
    let held = BYTES.get() - before;
    println!("an empty Westlake takes {held} bytes");
    assert!(held < 64 << 20, "{held} bytes");
    assert_eq!(flash.content_bytes(), Some(0));
}

#[test]
fn written_sectors_take_sixteen_bytes_and_as_much_metadata_as_was_given() {
    let (mut host, buffers) = host(config("westlake"), 32, 64);
    // One chunk of every unit: 524 288 sectors, 2 GiB of user data.
    let zone = 128 * 4096;
    let writes = Kind::Sequential { count: 64, zone, zones: 2, block: 0, resetting: false };
    let mut writer = load(&buffers, zone / 64 + 1, writes);
    let before = BYTES.get();
    assert_eq!(host.run(&mut writer, Nanos::MAX), RunEnd::Finished);
    let held = u64::try_from(BYTES.get() - before).expect("more is held than before");
    let content = host.device().content_bytes().expect("content is in memory");
    println!("{zone} sectors: {content} bytes of content, {held} bytes at the allocator");
    assert_eq!(content, zone * 16, "the linear target gives no metadata");
    let slack = held.saturating_sub(content);
    assert!(held >= content && slack < content / 8, "{held} bytes for {content} of content");
}

#[test]
fn a_sector_written_whole_takes_its_bytes_and_little_beside_them() {
    let mut flash = Flash::format(config("westlake")).expect("settings that can be used");
    let mut buffers = Buffers::new(flash.payload_format());
    let buffer = buffers.take_whole(64);
    // Zeros take no memory.
    buffers.whole_mut(buffer, 0, 64).fill(7);
    let before = BYTES.get();
    let mut now = Nanos::ZERO;
    for chunk in 0..100 {
        let addresses = Addresses::Run { first: Ppa::new(ChunkId(chunk), 0), count: 64 };
        let op = Op::Write { fua: false };
        let command = Command {
            tag: Tag(0),
            op,
            addresses,
            buffer: Some(buffer),
            buffer_first: 0,
            oob: false,
            plane_mode: PlaneMode::Single,
        };
        flash.submit(now, command, &mut buffers).expect("the drive is idle");
        while flash.poll_completion(now, &mut buffers).is_none() {
            now = flash.deadline().expect("a command is in flight");
        }
    }
    let held = u64::try_from(BYTES.get() - before).expect("more is held than before");
    let content = flash.content_bytes().expect("content is in memory");
    let whole = 100 * 64 * 4096;
    assert_eq!(content, 100 * 4096 * 16 + whole, "a chunk's stamps, and the bytes of 64 sectors");
    // A pointer for every chunk of the drive, and a place of 24 bytes a sector.
    let chunks = u64::from(flash.geometry().chunk_count());
    let slack = held - content;
    assert!(slack < 8 * chunks + 100 * 64 * 24 * 2, "{slack} bytes beside {content} of content");
}
