//! Media that fail while an instance is made: what failed is known to have, and the instance is as good as any.

use super::basic::options;
use super::mix::Mix;
use super::power::CutAfter;
use super::world::{World, config};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::{FaultKind, ScheduledFault};
use ocssd_lightnvm::block::BlockOp;
use ocssd_lightnvm::{
    Addresses, ChunkId, ChunkState, Command, Device, Geometry, Op, PlaneMode, Ppa, PuId, Tag,
};
use ocssd_targets::pblk::{Mode, Options};

const CHUNKS: u32 = 40;
const SECTORS: u32 = 32;

fn geometry(units: u32) -> Geometry {
    Geometry { mw_cunits: 8, ..Geometry::example(1, units, CHUNKS, SECTORS, 4) }
}

fn small() -> Options {
    Options { over_provisioning_percent: 60, ..options(Mode::Improved) }
}

fn schedule(world: &mut World, kind: FaultKind, chunks: impl IntoIterator<Item = u32>) {
    for chunk in chunks {
        let fault = ScheduledFault { kind, chunk: ChunkId(chunk), sector: None, times: 1 };
        world.host.device_mut().inner_mut().schedule_fault(fault);
    }
}

/// Writes every chunk full of what is no instance's.
fn litter(world: &mut World) {
    let geometry = world.host.device().geometry().clone();
    let unit = geometry.ws_opt;
    let buffer = world.host.buffers_mut().take(unit);
    world.host.buffers_mut().data_mut(buffer, 0, unit).fill(7);
    let mut commands = Vec::new();
    for chunk in (0..geometry.chunk_count()).map(ChunkId) {
        for first in (0..SECTORS).step_by(4) {
            let addresses = Addresses::Run { first: Ppa::new(chunk, first), count: unit };
            let op = Op::Write { fua: false };
            commands.push(Command {
                tag: Tag(0),
                op,
                addresses,
                buffer: Some(buffer),
                buffer_first: 0,
                oob: false,
                plane_mode: PlaneMode::Single,
            });
        }
    }
    world.raw(&commands);
}

/// Works for some rounds, across power cuts: no command meets a chunk that is not what the instance takes it for.
fn assert_works(mut world: World, blocks: u64) {
    let mut prng = Prng::new(7);
    let mix = Mix {
        requests: 200,
        depth: 4,
        span: u64::MAX,
        longest: 12,
        reads: 20,
        flushes: 4,
        discards: 0,
        fua: 5,
    };
    for round in 0..4 {
        assert!(world.run(&mix, &mut prng), "{}", world.label);
        world.flush();
        let stats = world.pblk().stats();
        assert_eq!((stats.write_failed, stats.reset_failed), (0, 0), "{}, round {round}", world.label);
        world.read_all(false);
        world.check();
        world.cut(&mut prng);
        world.mount();
        assert_eq!(world.blocks(), blocks, "{}, round {round}", world.label);
        world.read_all(true);
    }
    assert!(world.failures.is_empty(), "{}: {:?}", world.label, world.failures);
}

#[test]
fn a_head_that_fails_leaves_its_chunk_to_be_reset_and_goes_elsewhere() {
    for kind in [FaultKind::WriteNextUnit, FaultKind::EarlyClose] {
        for units in [1, 2] {
            // The first places the head is tried at, as many as there are, or all.
            for failing in [1, 3, CHUNKS * units] {
                let label = format!("{kind:?} of {failing} on {units} units");
                let lines = CHUNKS * units;
                let mut world = World::bare(config(geometry(units)), small(), &label);
                schedule(&mut world, kind, (0..failing).map(|n| n % units * CHUNKS + n / units));
                world.make();
                let used = (0..lines)
                    .filter(|&chunk| world.host.device().chunk(ChunkId(chunk)).state != ChunkState::Free);
                let expected = (failing + 2).min(lines);
                assert_eq!(used.count(), index(expected), "{label}: one chunk for each try, and two heads");
                let blocks = world.blocks();
                assert_works(world, blocks);
            }
        }
    }
}

#[test]
fn a_chunk_that_cannot_be_reset_for_the_head_is_bad_and_the_next_one_is_tried() {
    for units in [1, 2] {
        for failing in [1, 3] {
            let label = format!("{failing} resets on {units} units");
            let failed: Vec<u32> = (0..failing).map(|n| n % units * CHUNKS + n / units).collect();
            let mut world = World::bare(config(geometry(units)), small(), &label);
            litter(&mut world);
            schedule(&mut world, FaultKind::ResetFailure, failed.iter().copied());
            world.make();
            for &chunk in &failed {
                assert_eq!(
                    world.host.device().chunk(ChunkId(chunk)).state,
                    ChunkState::Offline,
                    "{label}: chunk {chunk}"
                );
            }
            let blocks = world.blocks();
            assert_works(world, blocks);
        }
    }
}

/// The power goes anywhere in the making of an instance whose first heads fail: whatever comes of it, it is whole.
#[test]
fn an_instance_is_made_whole_after_a_cut_among_failures() {
    for commands in 0.. {
        let label = format!("cut after {commands} commands");
        let mut world = World::bare(config(geometry(2)), small(), &label);
        litter(&mut world);
        schedule(&mut world, FaultKind::ResetFailure, [0]);
        schedule(&mut world, FaultKind::WriteNextUnit, [CHUNKS, 1]);
        let cut = CutAfter { commands: Some(commands), later: Nanos::from_micros(50) };
        let is_cut = world.try_mount(cut).is_err();
        world.cut(&mut Prng::new(commands));
        world.make();
        world.check();
        if commands % 8 == 0 || !is_cut {
            let blocks = world.blocks();
            assert_works(world, blocks);
        }
        if !is_cut {
            assert!(commands > 8, "{commands} commands made an instance");
            break;
        }
    }
}

/// Kills a unit of a copy: the instance is still there, and has the size it was made with, whatever is asked for now.
fn assert_outlives(world: &World, unit: u32, blocks: u64) {
    let mut world = world.branch(&format!("{}, unit {unit} dies", world.label));
    world.kill_unit(PuId(unit));
    world.cut(&mut Prng::new(u64::from(unit)));
    world.options = Options { over_provisioning_percent: 75, ..small() };
    assert!(!world.mount().fresh, "{}", world.label);
    assert_eq!(world.blocks(), blocks, "{}", world.label);
    world.check();
}

#[test]
fn an_instance_outlives_any_unit_from_its_first_mount_on() {
    for units in [2, 3, 4] {
        for failing in [0, 1, 2] {
            let label = format!("{failing} heads fail on {units} units");
            let mut world = World::bare(config(geometry(units)), small(), &label);
            schedule(&mut world, FaultKind::EarlyClose, (0..failing).map(|unit| unit * CHUNKS));
            world.make();
            (0..units).for_each(|unit| assert_outlives(&world, unit, world.blocks()));
        }
    }
}

/// The power goes anywhere in the making of an instance, a mount follows, and a unit dies.
#[test]
fn an_instance_that_was_cut_as_it_was_made_outlives_any_unit() {
    for commands in 0.. {
        let label = format!("cut after {commands} commands");
        let mut world = World::bare(config(geometry(2)), small(), &label);
        let cut = CutAfter { commands: Some(commands), later: Nanos::from_millis(50) };
        let is_cut = world.try_mount(cut).is_err();
        world.cut(&mut Prng::new(commands));
        world.make();
        (0..2).for_each(|unit| assert_outlives(&world, unit, world.blocks()));
        if !is_cut {
            assert!(commands > 4, "{commands} commands made an instance");
            break;
        }
    }
}

/// Torn units take the one before along, as paired pages do: never a head.
#[test]
fn an_instance_is_there_when_the_first_writes_to_it_are_torn() {
    let mut drive = config(Geometry { mw_cunits: 0, ..geometry(2) });
    drive.faults.paired_loss = 1_000_000_000;
    let mut world = World::new(drive, small(), "first writes");
    let (blocks, mut torn) = (world.blocks(), 0);
    (0..8).for_each(|block| assert!(world.send(BlockOp::Write { fua: false }, 4 * block, 4)));
    for turn in 0.. {
        let mut branch = world.branch(&format!("torn in turn {turn}"));
        branch.cut(&mut Prng::new(turn));
        torn += branch.host.device_mut().inner_mut().take_lost_pairs().len();
        assert!(!branch.mount().fresh, "{}", branch.label);
        assert_eq!(branch.blocks(), blocks, "{}", branch.label);
        if !world.step() {
            break;
        }
    }
    assert!(torn > 0, "nothing was lost with what was torn");
}

fn index(count: u32) -> usize {
    usize::try_from(count).expect("small")
}
