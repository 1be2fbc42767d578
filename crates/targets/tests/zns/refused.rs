//! Each command that the state of a zone, its write pointer, its borders or a limit forbid: its status, and that nothing changed.

use crate::rig::Rig;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::zoned::{ZoneAction, ZoneState, ZonedOp};

const WRITE: ZonedOp = ZonedOp::Write { durability: Durability::AtFlush };
const APPEND: ZonedOp = ZonedOp::Append { durability: Durability::AtFlush };

/// A zone in each state a host can bring it to, in this order, beside an empty one.
const STATES: [ZoneState; 5] = [
    ZoneState::Empty,
    ZoneState::ImplicitlyOpened,
    ZoneState::ExplicitlyOpened,
    ZoneState::Closed,
    ZoneState::Full,
];
/// Blocks in the zones that have some.
const HELD: u32 = 5;

fn zones_in_every_state() -> Rig {
    let mut rig = Rig::new(&[("width", "1"), ("zone_chunks", "2")]);
    let start = |zone| rig.geometry().start_of(zone);
    let starts = [1, 2, 3, 4].map(start);
    for (&block, state) in starts.iter().zip(&STATES[1..]) {
        assert_eq!(rig.write(block, HELD, 7), Status::SUCCESS, "{state:?}");
    }
    for (action, zone) in [(ZoneAction::Open, 1), (ZoneAction::Close, 2), (ZoneAction::Finish, 3)] {
        assert_eq!(rig.manage(action, starts[zone]), Status::SUCCESS, "{action:?}");
    }
    let found: Vec<ZoneState> = (0..5).map(|zone| rig.state(zone)).collect();
    assert_eq!(found, STATES);
    rig
}

/// Asks for it, and looks whether anything is another afterwards.
fn assert_refused(rig: &mut Rig, (op, block, count): (ZonedOp, u64, u32), expected: Status, why: &str) {
    let count_of = |rig: &Rig, name: &str| {
        let counters = rig.target().counters();
        counters.into_iter().find(|counter| counter.name == name).expect("a counter").value
    };
    let names =
        ["user_written_sectors", "programmed_sectors", "zone_resets", "zones_finished", "log_entries"];
    let before = (rig.zones(), names.map(|name| count_of(rig, name)));
    let has_data = !matches!(op, ZonedOp::Manage { .. });
    let (reply, _) = rig.ask(op, block, count, has_data.then_some(9));
    assert_eq!(reply.status, expected, "{op:?} of {count} at {block}: {why}");
    assert_eq!((rig.zones(), names.map(|name| count_of(rig, name))), before, "{op:?} at {block}: {why}");
    let start = rig.geometry().start_of(1);
    let is_there = rig.read(start, HELD).1.iter().all(|&byte| byte == 7);
    assert!(is_there, "{op:?} at {block} changed what was written: {why}");
}

fn one(action: ZoneAction) -> ZonedOp {
    ZonedOp::Manage { action, scope: ocssd_lightnvm::interface::zoned::ZoneScope::One }
}

#[test]
fn transitions_that_a_state_forbids_change_nothing() {
    use ZoneAction::{Close, Offline, Open};
    let mut rig = zones_in_every_state();
    let geometry = rig.geometry();
    // The rest are allowed, and some of them change nothing either: finish of a full zone, reset of an empty one.
    let forbidden = [
        (Open, 4),
        (Close, 0),
        (Close, 4),
        (Offline, 0),
        (Offline, 1),
        (Offline, 2),
        (Offline, 3),
        (Offline, 4),
    ];
    for (action, zone) in forbidden {
        let start = geometry.start_of(zone);
        let state = STATES[usize::try_from(zone).expect("few")];
        assert_refused(
            &mut rig,
            (one(action), start, 0),
            Status::INVALID_ZONE_TRANSITION,
            &format!("{state:?}"),
        );
        assert_refused(&mut rig, (one(action), start + 1, 0), Status::INVALID_FIELD, "no zone starts there");
    }
    for action in [Open, Close, ZoneAction::Finish, ZoneAction::Reset, Offline] {
        assert_refused(
            &mut rig,
            (one(action), geometry.block_count(), 0),
            Status::LBA_OUT_OF_RANGE,
            "no zone",
        );
    }
    for (action, zone) in [(ZoneAction::Finish, 4), (ZoneAction::Reset, 0), (Open, 2), (Close, 3)] {
        let before = rig.zones();
        assert_eq!(rig.manage(action, geometry.start_of(zone)), Status::SUCCESS, "{action:?}");
        assert_eq!(rig.zones(), before, "{action:?} of a zone that is so already");
    }
}

#[test]
fn writes_and_appends_out_of_place_change_nothing() {
    let mut rig = zones_in_every_state();
    let geometry = rig.geometry();
    let [empty, open, _, closed, full] = [0, 1, 2, 3, 4].map(|zone| geometry.start_of(zone));
    let (held, capacity) = (u64::from(HELD), u32::try_from(geometry.capacity_blocks).expect("small"));
    let longest = geometry.append_blocks_max;
    for (op, block, count, expected, why) in [
        (WRITE, empty + 1, 1, Status::ZONE_INVALID_WRITE, "behind the write pointer"),
        (WRITE, open, 1, Status::ZONE_INVALID_WRITE, "before the write pointer"),
        (WRITE, open + held + 1, 1, Status::ZONE_INVALID_WRITE, "one too far"),
        (WRITE, closed, 2, Status::ZONE_INVALID_WRITE, "a closed zone from its start"),
        (WRITE, full + held, 1, Status::ZONE_IS_FULL, "a full zone"),
        (APPEND, full, 1, Status::ZONE_IS_FULL, "a full zone"),
        (WRITE, open + held, capacity, Status::ZONE_BOUNDARY_ERROR, "across the zone's end"),
        (WRITE, empty, capacity + 1, Status::ZONE_BOUNDARY_ERROR, "one more than it holds"),
        (APPEND, open, capacity - HELD + 1, Status::ZONE_BOUNDARY_ERROR, "one more than is left"),
        (APPEND, open + 1, 1, Status::INVALID_FIELD, "no zone starts there"),
        (APPEND, open, longest + 1, Status::INVALID_FIELD, "longer than an append may be"),
        (WRITE, open + held, 0, Status::INVALID_FIELD, "nothing"),
        (WRITE, geometry.block_count(), 1, Status::LBA_OUT_OF_RANGE, "behind the last zone"),
        (WRITE, u64::MAX, 2, Status::LBA_OUT_OF_RANGE, "beyond all numbers"),
        (ZonedOp::Read, geometry.block_count() - 1, 2, Status::LBA_OUT_OF_RANGE, "behind the last zone"),
        (ZonedOp::Read, open + geometry.zone_blocks - 1, 2, Status::ZONE_BOUNDARY_ERROR, "of two zones"),
    ] {
        // An append of more than is left may be longer than any append.
        let expected = if matches!(op, ZonedOp::Append { .. }) && count > longest {
            Status::INVALID_FIELD
        } else {
            expected
        };
        assert_refused(&mut rig, (op, block, count), expected, why);
    }
    let (status, content) = rig.read(open, HELD + 2);
    assert!(
        status.is_success() && content[4096 * 5..].iter().all(|&byte| byte == 0),
        "zeroes behind the pointer"
    );
}

#[test]
fn zones_beyond_the_limits_are_refused_and_change_nothing() {
    let mut rig = Rig::new(&[("width", "1"), ("zone_chunks", "2"), ("buffer_bytes", "393216")]);
    let geometry = rig.geometry();
    let (open, active) = (geometry.open_bound(), geometry.active_bound());
    assert!(open >= 1 && active > open && active < geometry.zone_count, "{geometry:?}");
    let start = |zone| geometry.start_of(zone);
    for zone in 0..open {
        assert_eq!(rig.manage(ZoneAction::Open, start(zone)), Status::SUCCESS);
    }
    let full = [(WRITE, "a write"), (APPEND, "an append")];
    for (op, why) in full {
        let before = rig.zones();
        assert_eq!(rig.ask(op, start(open), 1, Some(1)).0.status, Status::TOO_MANY_OPEN_ZONES, "{why}");
        assert_eq!(rig.zones(), before, "{why}");
    }
    assert_eq!(rig.manage(ZoneAction::Open, start(open)), Status::TOO_MANY_OPEN_ZONES);
    // Closed zones are active still. An empty one that is closed is empty, so each gets a block first.
    for zone in 0..active {
        if zone >= open {
            assert_eq!(rig.manage(ZoneAction::Open, start(zone)), Status::SUCCESS);
        }
        assert_eq!(rig.write(start(zone), 1, 3), Status::SUCCESS);
        assert_eq!(rig.manage(ZoneAction::Close, start(zone)), Status::SUCCESS);
    }
    let before = rig.zones();
    for action in [ZoneAction::Open, ZoneAction::Finish] {
        let status = rig.manage(action, start(active));
        let expected =
            if action == ZoneAction::Open { Status::TOO_MANY_ACTIVE_ZONES } else { Status::SUCCESS };
        assert_eq!(status, expected, "{action:?} of an empty zone");
        if !status.is_success() {
            assert_eq!(rig.zones(), before, "{action:?}");
        }
    }
    assert_eq!(rig.write(start(active + 1), 1, 1), Status::TOO_MANY_ACTIVE_ZONES);
    assert_eq!(rig.manage(ZoneAction::Reset, start(0)), Status::SUCCESS);
    assert_eq!(rig.write(start(active + 1), 1, 1), Status::SUCCESS, "a reset gives the place back");
}
