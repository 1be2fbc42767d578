//! The blocking facade: batches, their order, and power cuts in the middle of them.

use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Caller, Clock, VirtualClock, WallClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::{
    Addresses, BlockingDevice, BufId, Buffers, ChunkId, Command, Device, Op, PlaneMode, PowerCut, Ppa,
    Status, Tag,
};

fn drive(cache: u32) -> (Flash, Buffers, BufId) {
    let mut config = presets::find("tiny").expect("a preset").config();
    config.geometry.mw_cunits = 0;
    config.cache.sectors = cache;
    let flash = Flash::format(config).expect("settings that can be used");
    let mut buffers = Buffers::new(flash.payload_format());
    let buffer = buffers.take(64);
    (flash, buffers, buffer)
}

fn command(tag: u32, op: Op, chunk: u32, sector: u32, count: u32, buffer: BufId) -> Command {
    let addresses = Addresses::Run { first: Ppa::new(ChunkId(chunk), sector), count };
    Command {
        tag: Tag(tag),
        op,
        addresses,
        buffer: Some(buffer),
        buffer_first: 0,
        oob: true,
        plane_mode: PlaneMode::Single,
    }
}

const WRITE: Op = Op::Write { fua: false };

#[test]
fn completions_come_in_the_order_of_the_commands_though_they_end_in_another() {
    let (mut flash, mut buffers, buffer) = drive(0);
    let mut clock = VirtualClock::default();
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    // The second unit of a chunk takes 900 us, the first of another 300 us; a refused one 5 us.
    let batch = [
        command(5, WRITE, 0, 0, 16, buffer),
        command(3, WRITE, 8, 0, 8, buffer),
        command(9, WRITE, 9, 4, 8, buffer),
    ];
    let ends = caller.call(&batch).expect("nobody cuts the power");
    let found: Vec<(Tag, Status)> = ends.iter().map(|end| (end.tag, end.status)).collect();
    assert_eq!(found, [(Tag(5), Status::SUCCESS), (Tag(3), Status::SUCCESS), (Tag(9), Status::OUT_OF_ORDER)]);
    assert!(caller.call(&[]).expect("nobody cuts the power").is_empty());
}

#[test]
fn a_batch_ends_with_its_last_completion_and_not_with_what_the_drive_does_later() {
    let (mut flash, mut buffers, buffer) = drive(64);
    let mut clock = VirtualClock::default();
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    caller.call(&[command(1, WRITE, 0, 0, 8, buffer)]).expect("nobody cuts the power");
    assert_eq!(clock.now(), Nanos(8 * 1_028 + 5_000), "the program goes on behind the cache");
}

#[test]
fn a_batch_larger_than_the_queue_is_fed_as_room_comes() {
    let (mut flash, mut buffers, buffer) = drive(0);
    let depth = flash.config().queue_depth;
    let mut clock = VirtualClock::default();
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let batch: Vec<Command> = (0..3 * depth).map(|tag| command(tag, Op::Read, 0, 0, 1, buffer)).collect();
    let ends = caller.call(&batch).expect("nobody cuts the power");
    assert!(ends.iter().zip(0..).all(|(end, tag)| end.tag == Tag(tag) && end.status == Status::UNWRITTEN));
}

#[test]
fn a_cut_stops_the_batch_at_its_time_and_the_device_can_be_cut_there() {
    let whole = Nanos(8 * 1_028 + 83_240 + 300_000 + 5_000);
    for (cut, survives) in [(Nanos(1), false), (Nanos(200_000), true), (whole, true)] {
        let (mut flash, mut buffers, buffer) = drive(0);
        let mut clock = VirtualClock::default();
        let mut caller =
            Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: Some(cut) };
        let cut_short =
            caller.call(&[command(1, WRITE, 0, 0, 8, buffer), command(2, Op::Read, 1, 0, 1, buffer)]);
        assert_eq!(cut_short, Err(PowerCut { at: cut }));
        assert_eq!(clock.now(), cut);
        flash.power_cut(cut, &mut Prng::new(1)).expect("memory does not fail");
        let pointer = flash.chunk(ChunkId(0)).write_pointer;
        assert_eq!(pointer, Some(if survives { 8 } else { 0 }), "cut at {cut}");
        assert_eq!(flash.deadline(), None);
    }
    assert_eq!(PowerCut { at: Nanos(1_500) }.to_string(), "the power was cut at 1.5 us");
}

#[test]
fn a_cut_that_comes_after_the_batch_does_not_happen_in_it() {
    let (mut flash, mut buffers, buffer) = drive(0);
    let mut clock = VirtualClock::default();
    let mut caller = Caller {
        device: &mut flash,
        clock: &mut clock,
        buffers: &mut buffers,
        cut_at: Some(Nanos::from_millis(1)),
    };
    assert!(caller.call(&[command(1, WRITE, 0, 0, 8, buffer)]).is_ok());
    assert!(caller.call(&[command(2, WRITE, 0, 8, 8, buffer)]).is_err(), "900 us more do not fit");
}

#[test]
fn wall_time_gives_the_same_completions() {
    let run = |wall: bool| {
        let (mut flash, mut buffers, buffer) = drive(0);
        let batch: Vec<Command> = (0..4).map(|tag| command(tag, WRITE, tag * 8, 0, 8, buffer)).collect();
        let ends = if wall {
            let mut clock = WallClock::default();
            Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None }.call(&batch)
        } else {
            let mut clock = VirtualClock::default();
            Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None }.call(&batch)
        };
        (ends.expect("nobody cuts the power"), flash.chunk(ChunkId(0)))
    };
    assert_eq!(run(true), run(false));
}
