//! Extensions of zones: when one is taken, how long it stays, and the width that it hints at.

use crate::rig::{Rig, UNITS, config};
use ocssd_lightnvm::interface::zoned::{WidthHint, ZoneAction, ZoneExtension, ZoneState};
use ocssd_lightnvm::{PuId, Status};

/// Two units wide, four chunks each.
const OPTIONS: &[(&str, &str)] = &[("width", "all"), ("zone_chunks", "4")];

/// Units of the drive on which a zone has chunks.
fn units(rig: &Rig, zone: u32) -> Vec<PuId> {
    let chunks = rig.target().zone_chunks(zone);
    let mut units: Vec<PuId> = chunks.into_iter().map(|chunk| config().geometry.pu_of(chunk)).collect();
    units.sort_unstable();
    units.dedup();
    units
}

/// Writes the next blocks of a zone and makes them durable.
fn write(rig: &mut Rig, zone: u32, blocks: u32) {
    let pointer = rig.target().zone(zone).write_pointer.expect("it may be written");
    assert_eq!(rig.write(pointer, blocks, 5), Status::SUCCESS);
    assert_eq!(rig.flush(), Status::SUCCESS);
}

#[test]
fn a_zone_is_as_wide_as_its_extension_hints_and_another_as_the_instance() {
    let mut rig = Rig::new(OPTIONS);
    let geometry = rig.geometry();
    let start = |zone| geometry.start_of(zone);
    let hints = [WidthHint::Units(1), WidthHint::Units(9), WidthHint::All, WidthHint::Group];
    for (zone, hint) in (0..).zip(hints) {
        assert_eq!(rig.describe(start(zone), ZoneExtension::with_width(hint)), Status::SUCCESS);
        write(&mut rig, zone, 16);
        let wide = usize::try_from(UNITS).expect("few");
        let expected = if hint == WidthHint::Units(1) { 1 } else { wide };
        assert_eq!(units(&rig, zone).len(), expected, "{hint:?}");
        assert_eq!(rig.manage(ZoneAction::Finish, start(zone)), Status::SUCCESS);
    }
    assert_eq!(rig.describe(start(4), ZoneExtension([3; 64])), Status::SUCCESS);
    for zone in [4, 5] {
        write(&mut rig, zone, 16);
        assert_eq!(units(&rig, zone).len(), 2, "no hint for zone {zone}");
    }
}

#[test]
fn a_narrow_zone_stays_narrow_after_a_cut_until_it_is_reset() {
    let mut rig = Rig::new(OPTIONS);
    let geometry = rig.geometry();
    let narrow = ZoneExtension::with_width(WidthHint::Units(1));
    let start = geometry.start_of(3);
    assert_eq!(rig.describe(start, narrow), Status::SUCCESS);
    let mut rig = rig.cut();
    let zone = rig.target().zone(3);
    assert_eq!((zone.state, zone.has_extension), (ZoneState::Closed, true), "it has no block");
    assert_eq!(rig.target().extension(3), Some(narrow));
    write(&mut rig, 3, 12);
    let mut rig = rig.cut();
    assert_eq!(rig.target().extension(3), Some(narrow));
    write(&mut rig, 3, 12);
    assert_eq!(units(&rig, 3).len(), 1, "24 blocks fit a chunk");
    // To its end, which takes all its chunks, one after the other.
    let left = geometry.capacity_blocks - 24;
    write(&mut rig, 3, u32::try_from(left).expect("small"));
    assert_eq!(rig.state(3), ZoneState::Full);
    let (status, content) = rig.read(start, u32::try_from(geometry.capacity_blocks).expect("small"));
    assert!(status == Status::SUCCESS && content.iter().all(|&byte| byte == 5), "{status}");
    assert_eq!(rig.manage(ZoneAction::Reset, start), Status::SUCCESS);
    assert_eq!((rig.target().extension(3), rig.target().zone(3).has_extension), (None, false));
    write(&mut rig, 3, 16);
    assert_eq!(units(&rig, 3).len(), 2, "as wide as the instance again");
    assert_eq!(rig.cut().target().extension(3), None);
}

#[test]
fn an_extension_is_refused_where_it_may_not_be_and_changes_nothing() {
    let mut rig = Rig::new(&[("width", "all"), ("zone_chunks", "2")]);
    let geometry = rig.geometry();
    let (start, any) = (geometry.start_of(1), ZoneExtension([9; 64]));
    write(&mut rig, 0, 4);
    let before = rig.zones();
    let beyond = geometry.block_count();
    let cases = [
        (0, Status::INVALID_ZONE_TRANSITION),
        (start + 1, Status::INVALID_FIELD),
        (beyond, Status::LBA_OUT_OF_RANGE),
    ];
    for (block, expected) in cases {
        assert_eq!(rig.describe(block, any), expected, "at block {block}");
    }
    assert_eq!(rig.zones(), before);
    for zone in 1..geometry.active_bound() {
        assert_eq!(rig.describe(geometry.start_of(zone), any), Status::SUCCESS, "zone {zone}");
        assert_eq!(rig.describe(geometry.start_of(zone), any), Status::INVALID_ZONE_TRANSITION);
    }
    let next = geometry.start_of(geometry.active_bound());
    assert_eq!(rig.describe(next, any), Status::TOO_MANY_ACTIVE_ZONES);
}
