//! The linear target on a real drive: where blocks lie, how requests are split, what is refused, zones and their resets.

use ocssd_base::Nanos;
use ocssd_engine::{Host, RunEnd, VirtualClock};
use ocssd_flash::{Config, FaultKind, Flash, ScheduledFault, presets};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Zones};
use ocssd_lightnvm::wrap::{Check, Stats};
use ocssd_lightnvm::{
    Addresses, BufId, Buffers, ChunkId, ChunkState, Command, Completion, Device, Op, Out, Ppa, PuId, Rule,
    Source, Status, Tag, Target, TargetId,
};
use ocssd_targets::registry::{self, Parts};
use ocssd_targets::{Layout, Linear, PlaneReads};
use std::collections::VecDeque;

/// Requests given one after the other, each when the one before was replied to.
#[derive(Default)]
struct Script {
    requests: VecDeque<(TargetId, BlockRequest)>,
    waiting: u32,
    replies: Vec<(TargetId, BlockReply)>,
}

impl Source for Script {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        if self.waiting > 0 {
            return None;
        }
        let next = self.requests.pop_front()?;
        self.waiting += 1;
        Some(next)
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, request: BlockRequest) {
        self.requests.push_front((target, request));
        self.waiting -= 1;
    }

    fn on_reply(&mut self, _now: Nanos, target: TargetId, reply: BlockReply, _buffers: &mut Buffers) {
        self.waiting -= 1;
        self.replies.push((target, reply));
    }

    fn is_finished(&self) -> bool {
        self.requests.is_empty() && self.waiting == 0
    }
}

type Window = Host<Stats<Flash>, VirtualClock>;

fn config(name: &str) -> Config {
    let mut config = presets::find(name).expect("a preset").config();
    config.geometry.mw_cunits = 0;
    if name == "tiny" {
        // Tests count its zones.
        config.geometry.chunks_per_pu = 8;
        config.geometry.lba_format.chunk_bits = 3;
    }
    config
}

fn linear(flash: &Flash, units: &[PuId], layout: Layout) -> Result<Linear, String> {
    Linear::new(&Parts {
        geometry: flash.geometry(),
        units,
        report: &|chunk| flash.chunk(chunk),
        layout,
        plane_reads: PlaneReads::Aligned,
    })
}

fn units(range: std::ops::Range<u32>) -> Vec<PuId> {
    range.map(PuId).collect()
}

/// A host with one target on all units.
fn host(flash: Flash, layout: Layout) -> (Window, BufId) {
    let all = units(0..flash.geometry().pu_count());
    let target = linear(&flash, &all, layout).expect("a usable window");
    let mut buffers = Buffers::new(flash.payload_format());
    let buffer = buffers.take(512);
    let mut host: Host<_, _> = Host::new(Stats::new(flash), VirtualClock::default(), buffers);
    host.add(Box::new(target));
    (host, buffer)
}

fn request(op: BlockOp, block: u64, count: u32, buffer: BufId) -> BlockRequest {
    let buffer = matches!(op, BlockOp::Read | BlockOp::Write { .. }).then_some(buffer);
    BlockRequest { tag: Tag(7), op, block, count, buffer }
}

const WRITE: BlockOp = BlockOp::Write { fua: false };

fn ask(host: &mut Window, target: u32, request: BlockRequest) -> BlockReply {
    let mut script = Script { requests: [(TargetId(target), request)].into(), ..Script::default() };
    assert_eq!(host.run(&mut script, Nanos::MAX), RunEnd::Finished);
    host.target(TargetId(target)).check();
    script.replies[0].1
}

fn fill(host: &mut Window, buffer: BufId, count: u32, id: u64) {
    for sector in 0..count {
        host.buffers_mut().data_mut(buffer, sector, 1)[..8]
            .copy_from_slice(&(id + u64::from(sector)).to_le_bytes());
    }
}

fn ids(host: &mut Window, buffer: BufId, count: u32) -> Vec<u64> {
    let id = |sector| host.buffers_mut().data(buffer, sector, 1)[..8].try_into().map(u64::from_le_bytes);
    (0..count).map(id).collect::<Result<_, _>>().expect("eight bytes")
}

fn state(host: &Window, chunk: u32) -> (ChunkState, Option<u32>) {
    let chunk = host.device().inner().chunk(ChunkId(chunk));
    (chunk.state, chunk.write_pointer)
}

#[test]
fn a_striped_zone_is_a_chunk_of_every_unit_next_group_first() {
    let (mut host, buffer) = host(Flash::format(config("tiny")).expect("sound"), Layout::Striped);
    let zones = host.target(TargetId(0)).zones();
    assert_eq!(zones, Some(Zones { blocks: 128, count: 8 }));
    assert_eq!((host.target(TargetId(0)).block_count(), host.target(TargetId(0)).write_unit()), (1024, 4));
    // Units 0 and 1 are of group 0, units 2 and 3 of group 1; a unit has 8 chunks. Zone 1 is chunk 1 of each.
    for (blocks, chunk) in [(0, 1), (8, 17), (16, 9), (24, 25)] {
        assert_eq!(state(&host, chunk).0, ChunkState::Free);
        assert_eq!(ask(&mut host, 0, request(WRITE, 128 + blocks, 8, buffer)).status, Status::SUCCESS);
        assert_eq!(state(&host, chunk), (ChunkState::Open, Some(8)), "block {blocks}");
    }
    assert_eq!(host.target(TargetId(0)).zone_written(1), 32);
}

#[test]
fn a_chunk_zone_is_one_chunk() {
    let (mut host, buffer) = host(Flash::format(config("tiny")).expect("sound"), Layout::Chunk);
    assert_eq!(host.target(TargetId(0)).zones(), Some(Zones { blocks: 32, count: 32 }));
    // Zones go over the units first, in stripe order.
    for (zone, chunk) in [(0, 0), (1, 16), (2, 8), (3, 24), (4, 1)] {
        assert_eq!(ask(&mut host, 0, request(WRITE, zone * 32, 32, buffer)).status, Status::SUCCESS);
        assert_eq!(state(&host, chunk).0, ChunkState::Closed, "zone {zone}");
    }
}

#[test]
fn large_requests_are_split_and_their_content_comes_back() {
    for (name, layout) in
        [("tiny", Layout::Striped), ("tiny", Layout::Chunk), ("odd", Layout::Striped), ("odd", Layout::Chunk)]
    {
        let (mut host, buffer) = host(Flash::format(config(name)).expect("sound"), layout);
        let zone = u32::try_from(host.target(TargetId(0)).zones().expect("zoned").blocks).expect("small");
        let count = zone.min(480);
        fill(&mut host, buffer, count, 1000);
        assert_eq!(
            ask(&mut host, 0, request(WRITE, 0, count, buffer)).status,
            Status::SUCCESS,
            "{name} {layout:?}"
        );
        assert_eq!(host.target(TargetId(0)).zone_written(0), u64::from(count));
        fill(&mut host, buffer, count, 0);
        assert_eq!(
            ask(&mut host, 0, request(BlockOp::Read, 1, count - 1, buffer)).status,
            Status::SUCCESS,
            "{name}"
        );
        assert_eq!(ids(&mut host, buffer, count - 1), (1001..1000 + u64::from(count)).collect::<Vec<_>>());
        let unbuffered = BlockRequest { buffer: None, ..request(BlockOp::Read, 0, count, buffer) };
        assert_eq!(ask(&mut host, 0, unbuffered).status, Status::SUCCESS);
    }
}

/// Of a request of two commands the first met a weak sector, the second a lost one.
#[test]
fn a_weak_sector_hides_no_lost_one_of_the_same_request() {
    for (weak, lost, expected) in [
        (1, Some(17), Status::UNRECOVERED_READ),
        (17, Some(1), Status::UNRECOVERED_READ),
        (1, Some(2), Status::UNRECOVERED_READ),
        (17, None, Status::HIGH_ECC),
    ] {
        let (mut host, buffer) = host(Flash::format(config("tiny")).expect("sound"), Layout::Striped);
        fill(&mut host, buffer, 128, 500);
        assert_eq!(ask(&mut host, 0, request(WRITE, 0, 128, buffer)).status, Status::SUCCESS);
        for (kind, sector) in [(FaultKind::HighEcc, Some(weak)), (FaultKind::UnrecoveredRead, lost)] {
            if sector.is_some() {
                let fault = ScheduledFault { kind, chunk: ChunkId(0), sector, times: 1 };
                host.device_mut().inner_mut().schedule_fault(fault);
            }
        }
        let reply = ask(&mut host, 0, request(BlockOp::Read, 0, 128, buffer));
        assert_eq!(reply.status, expected, "sector {weak} is weak, {lost:?} lost");
        let lost = ids(&mut host, buffer, 128).iter().zip(500..).filter(|&(found, id)| *found != id).count();
        assert_eq!(lost, usize::from(!expected.has_data()));
    }
}

/// Commands a target gives for one request, without a drive.
fn commands_of(layout: Layout, name: &str, request: BlockRequest, buffers: &mut Buffers) -> Vec<Command> {
    let flash = Flash::format(config(name)).expect("sound");
    let mut target = linear(&flash, &units(0..flash.geometry().pu_count()), layout).expect("usable");
    let mut out = Out::new(std::mem::replace(buffers, Buffers::new(flash.payload_format())), usize::MAX);
    assert!(target.submit(Nanos::ZERO, &request, &mut out).is_taken(), "room");
    target.advance(Nanos::ZERO, &mut out);
    target.check();
    let commands = out.commands().to_vec();
    *buffers = out.buffers;
    commands
}

#[test]
fn a_command_has_at_most_64_sectors_and_writes_end_at_whole_units() {
    let flash = Flash::format(config("tiny")).expect("sound");
    let mut buffers = Buffers::new(flash.payload_format());
    let buffer = buffers.take(512);
    let counts =
        |commands: &[Command]| commands.iter().map(|command| command.addresses.count()).collect::<Vec<_>>();
    let write = commands_of(Layout::Striped, "tiny", request(WRITE, 0, 128, buffer), &mut buffers);
    assert_eq!(counts(&write), [64, 64]);
    assert!(write.iter().all(|command| matches!(command.addresses, Addresses::List { .. })));
    let first = buffers.addresses(buffer)[9];
    assert_eq!(
        first,
        Ppa::new(ChunkId(16), 1),
        "the tenth block is the second of the second unit in the stripe"
    );
    // WS_OPT 24: 64 sectors would end inside a unit.
    let write = commands_of(Layout::Striped, "odd", request(WRITE, 0, 120, buffer), &mut buffers);
    assert_eq!(counts(&write), [48, 48, 24]);
    let read = commands_of(Layout::Chunk, "odd", request(BlockOp::Read, 0, 72, buffer), &mut buffers);
    assert_eq!(counts(&read), [64, 8]);
    assert!(read.iter().all(|command| matches!(command.addresses, Addresses::Run { .. })));
}

#[test]
fn what_cannot_be_asked_is_refused_before_the_drive_hears_of_it() {
    let (mut host, buffer) = host(Flash::format(config("tiny")).expect("sound"), Layout::Striped);
    let table = [
        (BlockOp::Read, 1024, 1, Status::LBA_OUT_OF_RANGE),
        (BlockOp::Read, 1023, 2, Status::LBA_OUT_OF_RANGE),
        (BlockOp::Read, u64::MAX, 8, Status::LBA_OUT_OF_RANGE),
        (WRITE, 1024, 8, Status::LBA_OUT_OF_RANGE),
        (BlockOp::Read, 0, 0, Status::INVALID_FIELD),
        (WRITE, 0, 0, Status::INVALID_FIELD),
        (WRITE, 120, 16, Status::WRITE_FAULT),
        (BlockOp::Discard, 0, 8, Status::INVALID_OPCODE),
        (BlockOp::ResetZone, 8, 0, Status::INVALID_FIELD),
        (BlockOp::ResetZone, 1024, 0, Status::INVALID_FIELD),
    ];
    for (op, block, count, status) in table {
        assert_eq!(
            ask(&mut host, 0, request(op, block, count, buffer)).status,
            status,
            "{op:?} {block} {count}"
        );
    }
    assert!(host.device().units().iter().all(|unit| unit.read.commands + unit.write.commands == 0));
}

#[test]
fn what_breaks_a_rule_of_the_drive_says_which_and_moves_no_pointer() {
    let (mut host, buffer) = host(Flash::format(config("tiny")).expect("sound"), Layout::Striped);
    for (block, count, status, rule) in [
        (8, 8, Status::SUCCESS, None),
        (0, 6, Status::INVALID_FIELD, Some(Rule::WriteUnit)),
        (64, 8, Status::OUT_OF_ORDER, Some(Rule::WritePointer)),
    ] {
        // Block 8 is the start of another unit's chunk: the drive takes it, but it is not in the zone's order.
        let reply = ask(&mut host, 0, request(WRITE, block, count, buffer));
        assert_eq!(
            (reply.status, reply.violation.map(|violation| violation.rule)),
            (status, rule),
            "block {block}"
        );
        assert_eq!(host.target(TargetId(0)).zone_written(0), 0, "block {block}");
    }
    let reply = ask(&mut host, 0, request(BlockOp::Read, 0, 1, buffer));
    assert_eq!(
        (reply.status, reply.violation.map(|violation| violation.rule)),
        (Status::UNWRITTEN, Some(Rule::Readable))
    );
}

#[test]
fn a_zone_is_reset_as_a_whole_or_not_at_all() {
    let (mut host, buffer) = host(Flash::format(config("tiny")).expect("sound"), Layout::Striped);
    let reset = request(BlockOp::ResetZone, 0, 0, buffer);
    assert_eq!(ask(&mut host, 0, reset).status, Status::SUCCESS, "an empty zone is empty already");
    // 120 of 128 blocks: three chunks are CLOSED, one is OPEN and cannot be reset.
    ask(&mut host, 0, request(WRITE, 0, 120, buffer));
    assert_eq!(ask(&mut host, 0, reset).status, Status::INVALID_RESET);
    assert_eq!(host.target(TargetId(0)).zone_written(0), 120);
    assert!(
        [0, 8, 16, 24].iter().all(|&chunk| state(&host, chunk).0 != ChunkState::Free),
        "no chunk was emptied"
    );
    assert_eq!(ask(&mut host, 0, request(WRITE, 120, 8, buffer)).status, Status::SUCCESS);
    assert_eq!(ask(&mut host, 0, reset).status, Status::SUCCESS);
    assert_eq!(host.target(TargetId(0)).zone_written(0), 0);
    assert!([0, 8, 16, 24].iter().all(|&chunk| state(&host, chunk) == (ChunkState::Free, Some(0))));
    assert_eq!(ask(&mut host, 0, request(WRITE, 0, 8, buffer)).status, Status::SUCCESS);
}

#[test]
fn with_early_reset_a_partly_written_zone_resets_only_the_chunks_that_hold_something() {
    let mut early = config("tiny");
    early.geometry.capabilities.early_reset = true;
    let (mut host, buffer) = host(Flash::format(early).expect("sound"), Layout::Striped);
    ask(&mut host, 0, request(WRITE, 0, 16, buffer));
    assert_eq!(ask(&mut host, 0, request(BlockOp::ResetZone, 0, 0, buffer)).status, Status::SUCCESS);
    let resets: Vec<u64> = host.device().units().iter().map(|unit| unit.reset.sectors).collect();
    assert_eq!(resets, [1, 0, 1, 0]);
}

/// Writes chunk 2 of unit 1 full and makes its reset fail.
fn with_offline_chunk() -> Flash {
    let flash = Flash::format(config("tiny")).expect("sound");
    let (mut host, buffer) = host(flash, Layout::Chunk);
    let fault = ScheduledFault { kind: FaultKind::ResetFailure, chunk: ChunkId(10), sector: None, times: 1 };
    host.device_mut().inner_mut().schedule_fault(fault);
    let zone = (0..32).find(|&zone| {
        ask(&mut host, 0, request(WRITE, zone * 32, 32, buffer));
        state(&host, 10).0 == ChunkState::Closed
    });
    let zone = zone.expect("chunk 10 is in some zone");
    assert_eq!(
        ask(&mut host, 0, request(BlockOp::ResetZone, zone * 32, 0, buffer)).status,
        Status::OFFLINE_CHUNK
    );
    host.into_device().inner().fork().expect("content is in memory")
}

#[test]
fn zones_with_offline_chunks_and_zones_of_another_order_are_left_out() {
    let flash = with_offline_chunk();
    let all = units(0..4);
    let by_chunk = linear(&flash, &all, Layout::Chunk).expect("usable");
    assert_eq!(by_chunk.zones().map(|zones| zones.count), Some(31));
    // Chunks 0 and 1 of every unit are full, so zones 0 and 1 are; zone 2 has the offline chunk.
    let striped = linear(&flash, &all, Layout::Striped).expect("usable");
    assert_eq!(striped.zones().map(|zones| zones.count), Some(7));
    assert_eq!([0, 1, 2].map(|zone| striped.zone_written(zone)), [128, 128, 0]);
    // On units 2 and 3 alone, zone 2 is usable if both chunks are written alike.
    let right = linear(&flash, &units(2..4), Layout::Striped).expect("usable");
    assert!(right.zones().map(|zones| zones.count) >= Some(7));
}

#[test]
fn a_window_without_a_usable_zone_says_so() {
    let mut bad = config("tiny");
    bad.faults.factory_bad = 1_000_000_000;
    let flash = Flash::format(bad).expect("sound");
    let error = linear(&flash, &units(0..4), Layout::Striped).expect_err("every chunk is offline");
    assert!(error.contains("no zone of the window is usable"), "{error}");
    assert!(registry::find("nothing").is_err_and(|error| error.contains("linear")));
}

#[test]
fn targets_on_disjoint_units_of_one_drive_do_not_touch_each_other() {
    let flash = Flash::format(config("tiny")).expect("sound");
    let make = |range| {
        let units = units(range);
        let parts = Parts {
            geometry: flash.geometry(),
            units: &units,
            report: &|chunk| flash.chunk(chunk),
            layout: Layout::Striped,
            plane_reads: PlaneReads::Aligned,
        };
        Linear::new(&parts).expect("usable")
    };
    let (left, right) = (make(0..2), make(2..4));
    let mut buffers = Buffers::new(flash.payload_format());
    let (a, b) = (buffers.take(64), buffers.take(64));
    let mut host: Host<_, _> = Host::new(Stats::new(flash), VirtualClock::default(), buffers);
    assert_eq!((host.add(Box::new(left)), host.add(Box::new(right))), (TargetId(0), TargetId(1)));
    fill(&mut host, a, 64, 100);
    fill(&mut host, b, 64, 200);
    for (target, buffer) in [(0, a), (1, b)] {
        assert_eq!(ask(&mut host, target, request(WRITE, 0, 64, buffer)).status, Status::SUCCESS);
    }
    for (target, first) in [(0, 100), (1, 200)] {
        assert_eq!(ask(&mut host, target, request(BlockOp::Read, 0, 64, a)).status, Status::SUCCESS);
        assert_eq!(ids(&mut host, a, 64), (first..first + 64).collect::<Vec<u64>>());
    }
    assert!(host.device().units().iter().all(|unit| unit.write.sectors == 32));
}

#[test]
fn a_full_target_hands_the_request_back_and_a_flush_reaches_the_drive() {
    let flash = Flash::format(config("tiny")).expect("sound");
    let mut target = linear(&flash, &units(0..4), Layout::Striped).expect("usable");
    let mut buffers = Buffers::new(flash.payload_format());
    let buffer = buffers.take(8);
    let mut out = Out::new(buffers, usize::MAX);
    let mut taken = 0;
    while target.submit(Nanos::ZERO, &request(BlockOp::Read, 0, 1, buffer), &mut out).is_taken() {
        taken += 1;
    }
    assert_eq!(taken, 4096);
    let first = out.commands()[0];
    target.on_completion(Nanos::ZERO, Completion::success(first.tag), &mut out);
    assert_eq!(out.reply_count(), 1);
    let flush = request(BlockOp::Flush, 0, 0, buffer);
    assert!(target.submit(Nanos::ZERO, &flush, &mut out).is_taken(), "there is room again");
    target.advance(Nanos::ZERO, &mut out);
    target.check();
    assert_eq!(out.commands().last().map(|command| command.op), Some(Op::Flush));
}

#[test]
fn the_target_keeps_the_device_contract_at_full_depth() {
    let flash = Flash::format(config("odd")).expect("sound");
    let target = linear(&flash, &units(0..15), Layout::Striped).expect("usable");
    let mut buffers = Buffers::new(flash.payload_format());
    let requests: VecDeque<(TargetId, BlockRequest)> = (0..40)
        .map(|number| (TargetId(0), request(WRITE, number * 24, 24, buffers.take(24))))
        .chain((0..40).map(|_| (TargetId(0), request(BlockOp::Flush, 0, 0, BufId(0)))))
        .collect();
    let mut host: Host<_, _> = Host::new(Check::new(flash), VirtualClock::default(), buffers);
    host.add(Box::new(target));
    let mut all = AllAtOnce { requests, replies: 0, wanted: 80 };
    assert_eq!(host.run(&mut all, Nanos::MAX), RunEnd::Finished);
    host.target(TargetId(0)).check();
    assert_eq!(host.device().in_flight(), 0);
    assert_eq!(host.target(TargetId(0)).zone_written(0), 960);
}

/// Everything at time zero.
struct AllAtOnce {
    requests: VecDeque<(TargetId, BlockRequest)>,
    replies: u32,
    wanted: u32,
}

impl Source for AllAtOnce {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        self.requests.pop_front()
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, request: BlockRequest) {
        self.requests.push_front((target, request));
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: BlockReply, _buffers: &mut Buffers) {
        assert!(reply.status.is_success(), "{reply:?}");
        self.replies += 1;
    }

    fn is_finished(&self) -> bool {
        self.replies == self.wanted
    }
}
