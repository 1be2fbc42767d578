//! Copies of garbage collection: whatever happens to a block between the reading of its original and the reset of its line,
//! the block holds what its user made of it last.

use super::basic::{geometry, options};
use super::media::{Found, on_media};
use super::world::{World, config};
use ocssd_base::Prng;
use ocssd_flash::config::CacheConfig;
use ocssd_flash::{Config, FaultKind, ScheduledFault};
use ocssd_ftl::{Classification, Head, Kind, Stream};
use ocssd_lightnvm::block::BlockOp;
use ocssd_lightnvm::{ChunkId, ChunkState, Geometry, LbaFormat, Ppa};
use ocssd_targets::pblk::{Mode, Options, PblkStats};
use std::collections::BTreeMap;

const WRITE: BlockOp = BlockOp::Write { fua: false };
const FUA: BlockOp = BlockOp::Write { fua: true };
/// Sectors of data in a line: 4 units, chunks of 64 without head and tail.
pub const LINE: u32 = 4 * (64 - 8);
/// Lines of the drive, and so the first chunk of its second unit.
pub const LINES: u32 = 24;
/// How often pblk tries to read a sector (`read_again`).
const READ_TRIES: u32 = 3;
/// The line the first copies go to.
const NEXT_LINE: u32 = 6;
/// What stays of the second line, which is collected first: too little for a unit, so it waits in a buffer unit for company.
pub const PAIR: [u64; 2] = [LINE as u64 + 40, LINE as u64 + 41];
/// What stays of the first line: a unit of neighbours, and two more.
const STAY: [u64; 6] = [8, 9, 10, 11, 21, 150];
/// What stays of the third line, which is collected last: two units, so that nothing of the others waits any more.
const REST: [u64; 8] = [500, 501, 502, 505, 506, 510, 600, 601];

/// No checkpoints but those asked for.
pub fn spec() -> Options {
    Options { checkpoint_interval_bytes: Some(0), ..options(Mode::Improved) }
}

/// A drive whose first three lines hold nothing any more but some blocks, all on media.
fn sparse(label: &str) -> World {
    sparse_on(config(geometry()), label)
}

pub fn sparse_on(drive: Config, label: &str) -> World {
    let mut world = World::new(drive, spec(), label);
    rewrite(&mut world, |_| true);
    rewrite(&mut world, |block| !stays(block));
    world.flush();
    assert!(world.settle(), "{label}");
    world
}

fn stays(block: u64) -> bool {
    STAY.contains(&block) || PAIR.contains(&block) || REST.contains(&block)
}

/// Writes the blocks of the first three lines that are meant, in order, to units in order: no unit is busy then.
pub fn rewrite(world: &mut World, is_meant: impl Fn(u64) -> bool) {
    let meant: Vec<u64> = (0..3 * u64::from(LINE)).filter(|&block| is_meant(block)).collect();
    for run in meant.chunk_by(|a, b| a + 1 == *b).flat_map(|run| run.chunks(64)) {
        world.write(run[0], u32::try_from(run.len()).expect("at most 64"));
        assert!(world.settle(), "{}", world.label);
    }
}

/// Collects a line, as far as that goes by itself.
pub fn collect(world: &mut World) {
    world.pblk_mut().force_gc();
    assert!(world.settle(), "{}", world.label);
}

/// Collects the lines one after the other, up to a moment of it; false if all are collected before.
fn collect_until(world: &mut World, moment: u64) -> bool {
    let mut left = moment;
    for _ in 0..3 {
        world.pblk_mut().force_gc();
        loop {
            if left == 0 {
                return true;
            }
            left -= 1;
            if !world.step() {
                break;
            }
        }
    }
    false
}

/// What was counted since `before`: copied, superseded before it was sent, lines reset.
fn since(world: &World, before: &PblkStats) -> [u64; 3] {
    let now = world.pblk().stats();
    [
        now.gc_written - before.gc_written,
        now.superseded - before.superseded,
        now.lines_reset - before.lines_reset,
    ]
}

/// True if every chunk of a line is reset.
pub fn is_reset(world: &World, line: u32) -> bool {
    (0..4)
        .all(|unit| world.host.device().inner().chunk(ChunkId(unit * LINES + line)).state == ChunkState::Free)
}

/// How a user changes a block, and where the media fail meanwhile.
const CHANGES: [(BlockOp, Option<FaultKind>); 10] = [
    (WRITE, None),
    (FUA, None),
    (BlockOp::Discard, None),
    (BlockOp::WriteZeroes, None),
    (FUA, Some(FaultKind::WriteNextUnit)),
    (BlockOp::Discard, Some(FaultKind::WriteNextUnit)),
    (FUA, Some(FaultKind::EarlyClose)),
    (BlockOp::Discard, Some(FaultKind::EarlyClose)),
    (FUA, Some(FaultKind::UnrecoveredRead)),
    (BlockOp::Discard, Some(FaultKind::UnrecoveredRead)),
];

/// What a collection was doing when something else happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Reading,
    Writing,
    Waiting,
    Reset,
}

fn phase(world: &World, before: &PblkStats) -> Phase {
    let stats = world.pblk().stats();
    match () {
        () if stats.gc_written == before.gc_written => Phase::Reading,
        () if stats.units_written > stats.units_programmed + stats.write_failed => Phase::Writing,
        () if stats.lines_reset == before.lines_reset => Phase::Waiting,
        () => Phase::Reset,
    }
}

/// Reads that fail do so as often as they are tried.
fn schedule(world: &mut World, kind: FaultKind, places: &[Ppa]) {
    let times = if kind == FaultKind::UnrecoveredRead { READ_TRIES } else { 1 };
    for place in places {
        let fault = ScheduledFault { kind, chunk: place.chunk, sector: Some(place.sector), times };
        world.host.device_mut().inner_mut().schedule_fault(fault);
    }
}

/// Where the next copies go, at a sector of their chunks.
fn next_places(sector: u32) -> Vec<Ppa> {
    (0..4).map(|unit| Ppa::new(ChunkId(unit * LINES + NEXT_LINE), sector)).collect()
}

/// Where blocks lie in a line.
fn places_of(world: &World, line: u32, blocks: &[u64]) -> Vec<Ppa> {
    let found = on_media(&mut world.branch("media"));
    let is_meant = |found: &&Found| blocks.contains(&found.tag.block) && found.ppa.chunk.0 % LINES == line;
    let places: Vec<Ppa> = found.iter().filter(is_meant).map(|found| found.ppa).collect();
    assert_eq!(places.len(), blocks.len(), "{places:?}");
    places
}

/// Asserts that nothing is left to do of the first two lines, and that blocks are what they must be: now, after a power cut, and
/// after a shutdown.
fn assert_whole(mut world: World, seed: u64) {
    let label = world.label.clone();
    world.flush();
    assert!(world.settle(), "{label}");
    assert!(is_reset(&world, 0) && is_reset(&world, 1), "{label}: {}", world.pblk().summary());
    let lost = world.read_all(false);
    assert!(lost.is_empty() && world.failures.is_empty(), "{label}: {lost:?}, {:?}", world.failures);
    world.check();
    let mut prng = Prng::new(seed);
    world.branch(&format!("{label}, seed {seed}, cut")).survive_cut(&mut prng);
    world.shut_down(&mut prng);
    assert!(world.mount().clean, "{label}");
    world.read_all(true);
    world.check();
}

/// How many versions of a block could be found after a power cut.
fn media_versions(world: &World, block: u64) -> u64 {
    let mut world = world.branch("media");
    world.cut(&mut Prng::new(1));
    // A mount writes on what is too young to be read.
    world.mount();
    let is_version = |found: &&Found| found.tag.kind == Kind::Data && found.tag.block == block;
    u64::try_from(on_media(&mut world).iter().filter(is_version).count()).expect("few")
}

#[test]
fn what_users_change_at_any_time_of_a_collection_is_not_undone_by_its_copies() {
    for (op, fault) in CHANGES {
        let mut seen = Vec::new();
        for moment in 0.. {
            let label = format!("{fault:?}, {op:?} at moment {moment}");
            let mut world = sparse(&label);
            if let Some(kind) = fault {
                let is_read = kind == FaultKind::UnrecoveredRead;
                let places = if is_read { places_of(&world, 0, &[9, 150]) } else { next_places(4) };
                schedule(&mut world, kind, &places);
                world.media_fail = is_read;
            }
            let before = world.pblk().stats().clone();
            if !collect_until(&mut world, moment) {
                break;
            }
            seen.push(phase(&world, &before));
            for block in [9, 150] {
                assert!(world.send(op, block, 1), "{label}");
            }
            assert!(world.drain() && world.settle(), "{label}");
            (0..3).for_each(|_| collect(&mut world));
            assert_whole(world, moment);
        }
        for phase in [Phase::Reading, Phase::Writing, Phase::Waiting, Phase::Reset] {
            assert!(seen.contains(&phase), "{fault:?}, {op:?}: {seen:?}");
        }
    }
}

#[test]
fn a_copy_whose_write_fails_goes_out_again_and_is_not_read_again() {
    for kind in [FaultKind::WriteNextUnit, FaultKind::EarlyClose] {
        for sectors in [&[0][..], &[4], &[0, 4], &[4, 8]] {
            let mut world = sparse(&format!("{kind:?} at sectors {sectors:?}"));
            sectors.iter().for_each(|&sector| schedule(&mut world, kind, &next_places(sector)));
            let before = world.pblk().stats().clone();
            (0..3).for_each(|_| collect(&mut world));
            let failed = world.pblk().stats().write_failed;
            assert!(failed > 0, "{}", world.label);
            let [copied, superseded, _] = since(&world, &before);
            assert_eq!((copied, superseded), (16, 0), "{}: {failed} writes failed", world.label);
            assert_whole(world, 1);
        }
    }
}

#[test]
fn what_cannot_be_read_of_a_victim_is_lost_alone_unless_the_buffer_has_it() {
    let mut world = sparse("read of a victim fails");
    let places = places_of(&world, 0, &[9, 150]);
    schedule(&mut world, FaultKind::UnrecoveredRead, &places);
    (0..3).for_each(|_| collect(&mut world));
    assert!(is_reset(&world, 0) && world.pblk().stats().read_failed_gc == 2, "{:?}", world.pblk().stats());
    world.media_fail = true;
    assert_eq!(world.read_all(false), [9, 150], "what was read beside them is there");
    world.check();
    [9, 150].into_iter().for_each(|block| world.write(block, 1));
    world.flush();
    world.media_fail = false;
    assert_whole(world, 2);

    let mut world = cached("read of a victim in the buffer fails");
    let places = places_of(&world, 0, &CACHED);
    schedule(&mut world, FaultKind::UnrecoveredRead, &places);
    collect(&mut world);
    assert_eq!(world.pblk().stats().read_failed_gc, 4, "{:?}", world.pblk().stats());
    assert!(is_reset(&world, 0), "what the buffer has is moved: {}", world.pblk().summary());
    world.read_all(false);
    world.survive_cut(&mut Prng::new(3));
}

/// Blocks that are still in the buffer when their line is collected, which is the first.
const CACHED: [u64; 4] = [201, 210, 211, 222];

/// A drive whose first line was just filled; nothing is left of it but some blocks written last, that the map finds in the
/// buffer.
fn cached(label: &str) -> World {
    let mut world = World::new(config(geometry()), spec(), label);
    (0..LINE).step_by(56).for_each(|block| world.write(u64::from(block), 56));
    world.flush();
    let gone: Vec<u64> = (0..u64::from(LINE)).filter(|block| !CACHED.contains(block)).collect();
    for run in gone.chunk_by(|a, b| a + 1 == *b) {
        assert!(world.send(BlockOp::Discard, run[0], u32::try_from(run.len()).expect("a line")));
        assert!(world.drain(), "{label}");
    }
    world.flush();
    let before = world.pblk().stats().clone();
    world.read_all(false);
    assert_eq!(world.pblk().stats().read_cached - before.read_cached, 4, "{label}");
    world
}

#[test]
fn a_block_that_is_in_the_buffer_too_is_found_in_its_copy_afterwards() {
    let mut world = cached("cached");
    let before = world.pblk().stats().clone();
    collect(&mut world);
    assert_eq!(since(&world, &before), [4, 0, 1], "{}", world.pblk().summary());
    assert!(is_reset(&world, 0));
    world.check();
    world.read_all(false);
    // Other blocks take the slots, and the line.
    for round in 0..30 {
        (0..4).for_each(|run| world.write(300 + run * 56, 56));
        if round % 10 == 0 {
            world.read_all(false);
            world.check();
        }
    }
    world.survive_cut(&mut Prng::new(4));
}

#[test]
fn a_copy_is_read_from_its_buffer_unit_until_the_media_can_be_read() {
    let mut world = sparse("young copies");
    (0..3).for_each(|_| collect(&mut world));
    assert!(is_reset(&world, 0) && is_reset(&world, 1), "the originals are gone");
    let copies = || STAY.into_iter().chain(PAIR);
    // The first time as they were programmed, then after others took every buffer unit that may be taken.
    for round in 0..8 {
        let (commands, read_cached) = (world.commands, world.pblk().stats().read_cached);
        let now = world.clock_now();
        copies().for_each(|block| assert!(world.read_and_judge(block, 1, false)));
        for block in copies() {
            assert!(
                world.send(BlockOp::Read, block, 1) && world.turn() && world.in_flight() == 0,
                "{block} waits"
            );
        }
        assert_eq!(
            (world.commands, world.clock_now()),
            (commands, now),
            "round {round}: the drive was asked"
        );
        assert_eq!(world.pblk().stats().read_cached, read_cached + 16, "round {round}");
        // With neighbours that lie on media.
        assert!((0..64).all(|first| world.read_and_judge(first, 64, false)), "round {round}");
        (0..4).for_each(|run| world.write(800 + run * 56, 56));
        world.flush();
    }
    assert_eq!(world.pblk().stats().read_parked, 0, "no read needed more to be written");
    world.check();
}

#[test]
fn at_any_time_of_a_collection_a_power_cut_finds_each_block_once() {
    for cache in [0, 64] {
        let mut drive = config(geometry());
        drive.cache = CacheConfig { sectors: cache, power_loss_protection: false };
        let mut world = sparse_on(drive, &format!("cache of {cache}"));
        let (mut cuts, mut resets) = (0, 0);
        for _ in 0..3 {
            world.pblk_mut().force_gc();
            loop {
                world.cut_at = Some(world.commands + 1);
                while world.turn() {}
                let is_command = world.commands == world.cut_at.expect("set above");
                world.cut_at = None;
                // A mount asserts that every valid sector has one owner.
                let label = format!("{}, cut {cuts}", world.label);
                world.branch(&label).survive_cut(&mut Prng::new(cuts));
                cuts += 1;
                if !is_command && !world.pass_time() {
                    break;
                }
            }
            resets = world.pblk().stats().lines_reset;
        }
        assert!(cuts > 50 && resets >= 2, "cache of {cache}: {cuts} cuts, {resets} lines reset");
        assert_whole(world, 5);
    }
}

#[test]
fn a_copy_whose_original_died_before_it_is_sent_is_sent_as_fill() {
    for (op, block) in [FUA, BlockOp::Discard].into_iter().flat_map(|op| PAIR.map(|block| (op, block))) {
        let mut world = sparse(&format!("{op:?} of {block}"));
        collect(&mut world);
        let before = world.pblk().stats().clone();
        assert!(world.send(op, block, 1) && world.drain(), "{}", world.label);
        world.flush();
        assert_eq!(since(&world, &before), [0, 0, 0], "{}: the copies still wait", world.label);
        collect(&mut world);
        assert_eq!(since(&world, &before), [6, 1, 2], "{}", world.label);
        let other = PAIR[0] + PAIR[1] - block;
        let versions = [media_versions(&world, block), media_versions(&world, other)];
        assert_eq!(versions, [u64::from(op == FUA), 1], "{}", world.label);
        collect(&mut world);
        assert_whole(world, block);
    }
}

#[test]
fn a_copy_sent_behind_a_checkpoint_takes_no_block_back() {
    for (op, block) in [FUA, BlockOp::Discard].into_iter().flat_map(|op| PAIR.map(|block| (op, block))) {
        let mut world = sparse(&format!("{op:?} of {block}"));
        collect(&mut world);
        assert!(world.send(op, block, 1) && world.drain(), "{}", world.label);
        world.flush();
        world.pblk_mut().force_checkpoint();
        assert!(world.settle());
        assert_eq!(world.pblk().stats().checkpoints, 1, "{}", world.label);
        let programmed = world.pblk().stats().units_programmed;
        collect(&mut world);
        assert!(world.pblk().stats().units_programmed > programmed, "{}: the copies still wait", world.label);
        world.survive_cut(&mut Prng::new(block));
    }
}

/// All lines are written once with the same blocks at the same places, until the victim is written again.
#[test]
fn a_copy_that_waits_while_its_victim_is_reset_and_written_again_is_not_taken_for_what_is_there() {
    let mut world = sparse("written again");
    let places = places_of(&world, 1, &PAIR);
    collect(&mut world);
    let before = world.pblk().stats().clone();
    rewrite(&mut world, stays);
    world.flush();
    assert!(world.settle());
    assert_eq!(since(&world, &before)[1], 2, "both copies are dead");
    assert!(is_reset(&world, 1), "{}", world.pblk().summary());
    let mut rounds = 0;
    while is_reset(&world, 1) {
        assert!(rounds < 20, "{}", world.pblk().summary());
        rewrite(&mut world, |_| true);
        rounds += 1;
    }
    world.flush();
    assert!(world.settle());
    assert_eq!(places_of(&world, 1, &PAIR), places, "the same blocks are not at the same places");
    world.shut_down(&mut Prng::new(6));
    assert!(world.mount().clean);
    world.read_all(true);
}

/// Blocks that are written over and over: half a line.
const HOT: u32 = LINE / 2;

/// Writes the hot blocks twice, which takes a line, and collects it: so lines of short-lived data live for about a line.
fn heat(world: &mut World, rounds: u32) {
    for _ in 0..rounds {
        (0..4).for_each(|half| world.write(u64::from(half % 2 * HOT / 2), HOT / 2));
        collect(world);
    }
}

/// The stream each of some blocks lies in now, as heads on media say.
fn streams_of(world: &mut World, blocks: std::ops::Range<u64>) -> Vec<Stream> {
    let found = on_media(world);
    let heads: BTreeMap<ChunkId, Head> =
        found.iter().filter_map(|found| found.head.map(|head| (found.ppa.chunk, head))).collect();
    let newest = |block: u64| {
        let versions = found.iter().filter(|found| found.tag.kind == Kind::Data && found.tag.block == block);
        let heads = versions.map(|found| heads[&found.ppa.chunk]);
        heads.max_by_key(|head| head.line).expect("the block is on media").stream
    };
    let mut streams: Vec<Stream> = blocks.map(newest).collect();
    streams.dedup();
    streams
}

#[test]
fn sepbit_sends_what_one_read_finds_to_streams_by_its_age() {
    let lba_format = LbaFormat::smallest(2, 2, 48, 64);
    let drive = config(Geometry { chunks_per_pu: 48, lba_format, ..geometry() });
    let class = Some(Classification::SepBit);
    let options = Options { classification: class, over_provisioning_percent: 70, ..spec() };
    let mut world = World::new(drive, options, "sepbit");
    // What was never written goes to one line, and the hot blocks of it die at once. Some units hold sectors of two ages.
    let ages = [(1000, 18, 22), (1100, 20, 8), (1200, LINE - HOT - 18 - 20, 0)];
    (0..2).for_each(|half| world.write(u64::from(half * HOT / 2), HOT / 2));
    for (block, count, rounds) in ages {
        (0..count).step_by(2).for_each(|at| world.write(block + u64::from(at), 2));
        heat(&mut world, rounds);
    }
    world.flush();
    assert!(world.settle());
    // The line of all three ages, which no collection took while another was better.
    collect(&mut world);
    world.read_all(false);
    world.shut_down(&mut Prng::new(7));
    world.mount();
    let streams = ages.map(|(block, count, _)| streams_of(&mut world, block..block + u64::from(count)));
    assert_eq!(streams, [5, 4, 3].map(|stream| vec![Stream(stream)]), "the oldest first");
    world.read_all(true);
    world.check();
}
