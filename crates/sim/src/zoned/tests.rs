//! Hand-written cases of the specification's words, and random trials.

use super::*;
use crate::model::Model;
use crate::model::trial::{Reference, Trial};
use ocssd_base::Prng;
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::zoned::{
    UnwrittenRead, ZoneAction, ZoneGeometry, ZoneScope, ZoneState, ZonedAnswer, ZonedOp, ZonedReply,
    ZonedRequest,
};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PayloadFormat, Status, Tag};

/// Six zones of eight blocks that hold six.
const ZONES: ZoneGeometry = ZoneGeometry {
    capacity_blocks: 6,
    active_max: Some(4),
    open_max: Some(2),
    append_blocks_max: 3,
    takes_extensions: true,
    ..ZoneGeometry::plain(8, 6)
};

fn pool() -> Buffers {
    Buffers::new(PayloadFormat::new(Payload::Stamp, &Geometry::example(1, 1, 4, 24, 24)))
}

fn target(geometry: ZoneGeometry) -> Reference<ZonedModel> {
    Reference { model: ZonedModel::new(geometry), buffers: pool() }
}

const WRITE: ZonedOp = ZonedOp::Write { durability: Durability::AtFlush };
const FUA: ZonedOp = ZonedOp::Write { durability: Durability::AtReply };
const APPEND: ZonedOp = ZonedOp::Append { durability: Durability::AtFlush };

const fn manage(action: ZoneAction) -> ZonedOp {
    ZonedOp::Manage { action, scope: ZoneScope::One }
}

const OPEN: ZonedOp = manage(ZoneAction::Open);
const CLOSE: ZonedOp = manage(ZoneAction::Close);
const FINISH: ZonedOp = manage(ZoneAction::Finish);
const RESET: ZonedOp = manage(ZoneAction::Reset);

fn ask(target: &mut Reference<ZonedModel>, op: ZonedOp, block: u64, count: u32, byte: u8) -> ZonedReply {
    let buffer = target.buffers.take(count.max(1));
    target.buffers.data_mut(buffer, 0, count.max(1)).fill(byte);
    let reply = target.ask(ZonedRequest { tag: Tag(1), op, block, count, buffer: Some(buffer) });
    target.buffers.give_back(buffer);
    reply
}

/// The same with a whole buffer, as lists have.
fn describe(target: &mut Reference<ZonedModel>, op: ZonedOp, block: u64, byte: u8) -> ZonedReply {
    let buffer = target.buffers.take_whole(1);
    target.buffers.whole_mut(buffer, 0, 1).fill(byte);
    let reply = target.ask(ZonedRequest { tag: Tag(1), op, block, count: 0, buffer: Some(buffer) });
    target.buffers.give_back(buffer);
    reply
}

/// Asks, and checks statuses.
fn check(target: &mut Reference<ZonedModel>, cases: &[(ZonedOp, u64, u32, Status)]) {
    for &(op, block, count, status) in cases {
        let reply = ask(target, op, block, count, 7);
        assert_eq!(reply.status, status, "{op:?} of {count} blocks at {block}");
    }
}

fn states(target: &Reference<ZonedModel>) -> Vec<ZoneState> {
    (0..6).map(|zone| target.model.zone(zone).state).collect()
}

#[test]
fn writes_follow_the_pointer_up_to_the_capacity() {
    check(
        &mut target(ZONES),
        &[
            (WRITE, 0, 2, Status::SUCCESS),
            (WRITE, 0, 1, Status::ZONE_INVALID_WRITE),
            (WRITE, 3, 1, Status::ZONE_INVALID_WRITE),
            (WRITE, 2, 5, Status::ZONE_BOUNDARY_ERROR),
            (WRITE, 2, 4, Status::SUCCESS),
            (WRITE, 6, 1, Status::ZONE_IS_FULL),
            (WRITE, 48, 1, Status::LBA_OUT_OF_RANGE),
            (WRITE, 40, 9, Status::LBA_OUT_OF_RANGE),
            (WRITE, 8, 0, Status::INVALID_FIELD),
        ],
    );
}

#[test]
fn an_extension_is_for_an_empty_zone_which_is_closed_then() {
    let set = ZonedOp::SetExtension;
    let wrong = Status::INVALID_ZONE_TRANSITION;
    let mut target = target(ZONES);
    let fine = Status::SUCCESS;
    for (op, block, status) in [
        (set, 9, Status::INVALID_FIELD),
        (set, 48, Status::LBA_OUT_OF_RANGE),
        (set, 8, fine),
        (set, 8, wrong),
        (FINISH, 8, fine),
        (set, 8, wrong),
        (set, 16, fine),
        (CLOSE, 16, fine),
        (set, 24, fine),
        (RESET, 24, fine),
        (set, 24, fine),
        (OPEN, 24, fine),
        (set, 24, wrong),
        (set, 32, fine),
        (set, 40, fine),
        (set, 0, Status::TOO_MANY_ACTIVE_ZONES),
    ] {
        assert_eq!(describe(&mut target, op, block, 7).status, status, "{op:?} at {block}");
    }
    use ZoneState::{Closed, Empty, ExplicitlyOpened, Full};
    assert_eq!(states(&target), [Empty, Full, Closed, ExplicitlyOpened, Closed, Closed]);
    let has: Vec<bool> = (0..6).map(|zone| target.model.descriptor(zone).has_extension).collect();
    assert_eq!(has, [false, true, true, true, true, true], "finishing keeps it");
    check(&mut target, &[(RESET, 8, 0, fine)]);
    assert!(!target.model.descriptor(1).has_extension, "a reset drops it");
    let plain = ZoneGeometry { takes_extensions: false, ..ZONES };
    let mut plain = self::target(plain);
    assert_eq!(describe(&mut plain, set, 8, 7).status, Status::INVALID_FIELD);
}

#[test]
fn an_append_tells_where_it_landed() {
    let mut target = target(ZONES);
    for (block, count, found) in [
        (16, 2, Ok(16)),
        (16, 3, Ok(18)),
        (16, 2, Err(Status::ZONE_BOUNDARY_ERROR)),
        (17, 1, Err(Status::INVALID_FIELD)),
        (24, 4, Err(Status::INVALID_FIELD)),
        (16, 1, Ok(21)),
        (16, 1, Err(Status::ZONE_IS_FULL)),
    ] {
        let reply = ask(&mut target, APPEND, block, count, 1);
        match found {
            Ok(block) => assert_eq!(reply.answer, ZonedAnswer::Appended { block }),
            Err(status) => assert_eq!(reply.status, status, "{count} blocks to {block}"),
        }
    }
}

#[test]
fn every_state_takes_the_actions_the_specification_gives_it() {
    let wrong = Status::INVALID_ZONE_TRANSITION;
    let offline = manage(ZoneAction::Offline);
    let fine = Status::SUCCESS;
    for (before, verdicts) in [
        (&[][..], [fine, wrong, fine, fine, wrong]),
        (&[WRITE], [fine, fine, fine, fine, wrong]),
        (&[OPEN], [fine, fine, fine, fine, wrong]),
        (&[OPEN, CLOSE], [fine, fine, fine, fine, wrong]),
        (&[FINISH], [wrong, wrong, fine, fine, wrong]),
    ] {
        for (op, verdict) in [OPEN, CLOSE, FINISH, RESET, offline].into_iter().zip(verdicts) {
            let mut target = target(ZONES);
            for &op in before {
                assert_eq!(ask(&mut target, op, 8, 1, 7).status, fine);
            }
            assert_eq!(ask(&mut target, op, 8, 0, 7).status, verdict, "{op:?} after {before:?}");
        }
    }
    for (state, verdicts, read) in [
        (ZoneState::ReadOnly, [wrong, wrong, wrong, wrong, fine], fine),
        (ZoneState::Offline, [wrong, wrong, wrong, wrong, fine], Status::ZONE_IS_OFFLINE),
    ] {
        for (op, verdict) in [OPEN, CLOSE, FINISH, RESET, offline].into_iter().zip(verdicts) {
            let mut target = target(ZONES);
            target.model.gave_up(1, state);
            assert_eq!(ask(&mut target, ZonedOp::Read, 8, 1, 7).status, read);
            assert_eq!(ask(&mut target, op, 8, 0, 7).status, verdict, "{op:?} of {state:?}");
        }
    }
}

#[test]
fn resources_run_out_as_limits_say_and_implicitly_opened_zones_give_way() {
    let mut target = target(ZONES);
    let fine = Status::SUCCESS;
    check(&mut target, &[(WRITE, 0, 1, fine), (WRITE, 8, 1, fine), (WRITE, 16, 1, fine)]);
    let (implicit, explicit) = (ZoneState::ImplicitlyOpened, ZoneState::ExplicitlyOpened);
    assert_eq!(states(&target)[..3], [ZoneState::Closed, implicit, implicit]);
    check(&mut target, &[(OPEN, 0, 0, fine), (OPEN, 8, 0, fine)]);
    assert_eq!(states(&target)[..3], [explicit, explicit, ZoneState::Closed]);
    check(
        &mut target,
        &[
            (WRITE, 17, 1, Status::TOO_MANY_OPEN_ZONES),
            (OPEN, 24, 0, Status::TOO_MANY_OPEN_ZONES),
            (CLOSE, 8, 0, fine),
            (WRITE, 24, 1, fine),
            (WRITE, 32, 1, Status::TOO_MANY_ACTIVE_ZONES),
            (WRITE, 17, 1, fine),
            (FINISH, 16, 0, fine),
            (WRITE, 32, 6, fine),
            (WRITE, 40, 1, fine),
        ],
    );
}

#[test]
fn all_zones_are_managed_at_once() {
    let all = |action| ZonedOp::Manage { action, scope: ZoneScope::All };
    let mut target = target(ZONES);
    let fine = Status::SUCCESS;
    check(
        &mut target,
        &[
            (OPEN, 0, 0, fine),
            (WRITE, 8, 1, fine),
            (FINISH, 16, 0, fine),
            (all(ZoneAction::Close), 99, 0, fine),
        ],
    );
    assert_eq!(
        states(&target)[..4],
        [ZoneState::Closed, ZoneState::Closed, ZoneState::Full, ZoneState::Empty]
    );
    check(&mut target, &[(WRITE, 24, 1, fine), (all(ZoneAction::Open), 0, 0, Status::TOO_MANY_OPEN_ZONES)]);
    check(&mut target, &[(all(ZoneAction::Finish), 0, 0, fine)]);
    assert_eq!(
        states(&target)[..5],
        [ZoneState::Full, ZoneState::Full, ZoneState::Full, ZoneState::Full, ZoneState::Empty]
    );
    check(&mut target, &[(all(ZoneAction::Reset), 0, 0, fine)]);
    assert_eq!(states(&target), [ZoneState::Empty; 6]);
}

#[test]
fn nothing_is_read_that_was_not_written() {
    for (unwritten_read, beyond) in
        [(UnwrittenRead::Zeroes, Status::SUCCESS), (UnwrittenRead::Refused, Status::UNWRITTEN)]
    {
        let mut target = target(ZoneGeometry { unwritten_read, ..ZONES });
        assert!(ask(&mut target, WRITE, 0, 2, 9).status.is_success());
        check(
            &mut target,
            &[
                (ZonedOp::Read, 0, 2, Status::SUCCESS),
                (ZonedOp::Read, 1, 2, beyond),
                (ZonedOp::Read, 6, 2, beyond),
                (ZonedOp::Read, 7, 2, Status::ZONE_BOUNDARY_ERROR),
                (ZonedOp::Read, 47, 2, Status::LBA_OUT_OF_RANGE),
            ],
        );
        let zones = target.model.clone().observe(&mut target).expect("all zones can be read");
        let empty = zones[0].blocks[2].clone();
        assert_eq!(empty.is_some_and(|block| block.iter().all(|&byte| byte == 0)), beyond.is_success());
        assert_eq!(zones[0].blocks[1], Some(vec![9; 4_096]));
    }
}

/// What a zone may show after `ops`, of which the last is not answered: blocks readable, by state.
fn left(ops: &[(ZonedOp, u32)]) -> Vec<(ZoneState, u64)> {
    let mut reference = target(ZONES);
    for (nth, &(op, count)) in ops.iter().enumerate() {
        let block = reference.model.zone(0).written();
        let buffer = reference.buffers.take(count.max(1));
        let block = if matches!(op, ZonedOp::Manage { .. }) { 0 } else { block };
        let request = ZonedRequest { tag: Tag(1), op, block, count, buffer: Some(buffer) };
        if nth + 1 < ops.len() {
            assert!(reference.ask(request).status.is_success());
        } else {
            reference.model.apply(&request, &reference.buffers);
        }
    }
    let mut legal = Vec::new();
    for state in ZoneState::ALL {
        for written in 0..=6 {
            let mut other = target(ZONES);
            let mut found = other.model.clone().observe(&mut other).expect("all zones can be read");
            found[0].zone.state = state;
            found[0].zone.write_pointer = state.is_writable().then_some(written);
            if reference.model.may_hold(&found).is_ok() {
                legal.push((state, written));
            }
        }
    }
    legal
}

#[test]
fn a_power_cut_leaves_what_was_durable_and_a_prefix_of_the_rest() {
    // Blocks are zeroes here, so that states and pointers alone differ.
    use ZoneState::{Closed, Empty, Full};
    let full = |written: std::ops::RangeInclusive<u64>| written.map(|at| (Full, at)).collect::<Vec<_>>();
    for (ops, mut legal) in [
        (&[(WRITE, 2), (WRITE, 1)][..], vec![(Empty, 0), (Closed, 1), (Closed, 2), (Closed, 3)]),
        (&[(FUA, 2), (WRITE, 1)], vec![(Closed, 2), (Closed, 3)]),
        (&[(WRITE, 2), (ZonedOp::Flush, 0), (WRITE, 2)], vec![(Closed, 2), (Closed, 3), (Closed, 4)]),
        (&[(FUA, 2), (RESET, 0)], vec![(Empty, 0), (Closed, 2)]),
        (&[(FUA, 2), (RESET, 0), (WRITE, 1)], vec![(Empty, 0), (Closed, 1)]),
        (&[(OPEN, 0), (FUA, 1)], vec![(Empty, 0), (Closed, 1)]),
        (&[(FUA, 2), (FINISH, 0)], [vec![(Closed, 2)], full(0..=6)].concat()),
        (&[(FUA, 2), (FINISH, 0), (ZonedOp::Flush, 0)], full(0..=6)),
    ] {
        let mut found = left(ops);
        legal.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, legal, "{ops:?}");
    }
}

#[test]
fn whatever_a_sound_target_keeps_is_allowed() {
    for seed in 0..60 {
        let tally = Trial::new(seed, ZonedModel::new(ZONES), pool())
            .run(1_500, &mut DrawnZoned::new(&ZonedModel::new(ZONES), &mut Prng::new(seed)));
        let tally = tally.unwrap_or_else(|found| panic!("{found}"));
        assert!(tally.succeeded > 150 && tally.refused > 30 && tally.cuts > 5, "seed {seed}: {tally:?}");
    }
}

#[test]
fn a_target_that_forgets_or_mixes_is_found() {
    for (name, canary) in canaries().into_iter().chain(canaries_of_extensions()) {
        let found = (0..20).find_map(|seed| {
            let mut trial = Trial::new(seed, ZonedModel::new(ZONES), pool());
            trial.canary = Some(canary);
            trial.run(1_500, &mut DrawnZoned::new(&ZonedModel::new(ZONES), &mut Prng::new(seed))).err()
        });
        assert!(found.is_some(), "{name}: not found with seeds 0 to 19");
    }
}
