//! Hand-written cases of the specification's words, and random trials.

use super::*;
use crate::contract::{Answerer, Broken};
use crate::model::Model;
use crate::model::trial::{Reference, Trial};
use ocssd_base::Prng;
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::zoned::{
    UnwrittenRead, ZoneAction, ZoneArea, ZoneGeometry, ZoneScope, ZoneState, ZonedAnswer, ZonedOp,
    ZonedReply, ZonedRequest,
};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PayloadFormat, Status, Tag};
use std::rc::Rc;

/// Six zones of eight blocks that hold six.
const ZONES: ZoneGeometry = ZoneGeometry {
    capacity_blocks: 6,
    active_max: Some(4),
    open_max: Some(2),
    append_blocks_max: 3,
    takes_extensions: true,
    ..ZoneGeometry::plain(8, 6)
};

/// Zones that hold fourteen blocks, with areas of four that are committed by two, in two zones at most.
const AREAS: ZoneGeometry = ZoneGeometry {
    capacity_blocks: 14,
    takes_extensions: true,
    open_max: Some(3),
    active_max: Some(4),
    area: Some(ZoneArea { blocks: 4, granularity: 2, areas_max: 2 }),
    ..ZoneGeometry::plain(16, 6)
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
    let extended = ZonedOp::ReportExtended { only: None };
    assert_eq!(describe(&mut plain, extended, 0, 7).status, Status::INVALID_FIELD);
}

#[test]
fn an_append_tells_where_it_lies() {
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
        assert_eq!(zones[0].blocks[1], Some(Rc::new(vec![9; 4_096])));
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

const AREA: ZonedOp = ZonedOp::OpenWithArea;
const COMMIT: ZonedOp = ZonedOp::CommitArea;

/// What a zone with an area is after these requests: its state, its write pointer, and which of its blocks are written.
fn with_area(steps: &[(ZonedOp, u64, u32, Status)]) -> (ZoneState, u64, Vec<u64>) {
    let mut target = target(AREAS);
    check(&mut target, &[(AREA, 0, 0, Status::SUCCESS)]);
    check(&mut target, steps);
    let zone = target.model.zone(0);
    let written = (0..14).filter(|&number| zone.block(number).is_some()).collect();
    (zone.state, zone.written(), written)
}

#[test]
fn an_area_takes_writes_in_any_order_and_moves_as_little_as_they_need() {
    let (fine, invalid) = (Status::SUCCESS, Status::ZONE_INVALID_WRITE);
    use ZoneState::{ExplicitlyOpened, Full};
    for (steps, pointer, written) in [
        (&[(WRITE, 3, 1, fine), (WRITE, 0, 1, fine), (WRITE, 3, 1, fine)][..], 0, vec![0, 3]),
        (&[(WRITE, 3, 2, fine)], 2, vec![3, 4]),
        (&[(WRITE, 6, 1, fine), (WRITE, 3, 1, invalid)], 4, vec![6]),
        (&[(WRITE, 0, 8, fine), (WRITE, 3, 1, invalid)], 4, (0..8).collect()),
        (
            &[(WRITE, 0, 9, invalid), (WRITE, 8, 1, invalid), (APPEND, 0, 1, Status::INVALID_ZONE_OPERATION)],
            0,
            vec![],
        ),
        (&[(WRITE, 1, 1, fine), (COMMIT, 1, 0, fine), (WRITE, 0, 1, invalid)], 2, vec![1]),
        (&[(COMMIT, 0, 0, Status::INVALID_FIELD), (COMMIT, 4, 0, Status::INVALID_FIELD)], 0, vec![]),
        (&[(COMMIT, 5, 0, Status::INVALID_FIELD), (COMMIT, 3, 0, fine)], 4, vec![]),
    ] {
        assert_eq!(with_area(steps), (ExplicitlyOpened, pointer, written), "{steps:?}");
    }
    let end = [
        (COMMIT, 3, 0, fine),
        (COMMIT, 7, 0, fine),
        (COMMIT, 11, 0, fine),
        (WRITE, 13, 2, Status::ZONE_BOUNDARY_ERROR),
        (WRITE, 13, 1, fine),
        (WRITE, 12, 1, fine),
    ];
    assert_eq!(with_area(&end), (ExplicitlyOpened, 12, vec![12, 13]), "only a commit makes it full");
    let full = [&end[..], &[(COMMIT, 13, 0, fine), (WRITE, 13, 1, Status::ZONE_IS_FULL)]].concat();
    assert_eq!(with_area(&full), (Full, 14, vec![12, 13]));
}

#[test]
fn areas_are_for_so_many_zones_and_stay_until_these_are_full_or_empty() {
    let (fine, none) = (Status::SUCCESS, Status::ZRWA_RESOURCES_UNAVAILABLE);
    let mut target = target(AREAS);
    let has = |target: &Reference<ZonedModel>| {
        (0..6).filter(|&zone| target.model.descriptor(zone).has_area).collect::<Vec<_>>()
    };
    check(&mut target, &[(AREA, 1, 0, Status::INVALID_FIELD), (AREA, 96, 0, Status::LBA_OUT_OF_RANGE)]);
    check(&mut target, &[(WRITE, 0, 1, fine), (AREA, 0, 0, none), (WRITE, 1, 1, fine), (AREA, 0, 0, fine)]);
    check(
        &mut target,
        &[(AREA, 16, 0, fine), (AREA, 16, 0, fine), (AREA, 32, 0, none), (CLOSE, 16, 0, fine)],
    );
    assert_eq!((has(&target), states(&target)[1]), (vec![0, 1], ZoneState::Closed), "a closed zone keeps it");
    check(&mut target, &[(COMMIT, 17, 0, fine), (COMMIT, 33, 0, Status::INVALID_FIELD)]);
    assert_eq!(states(&target)[1], ZoneState::ImplicitlyOpened);
    check(&mut target, &[(WRITE, 5, 1, fine), (FINISH, 0, 0, fine), (RESET, 16, 0, fine)]);
    assert!(has(&target).is_empty());
    assert_eq!(target.model.zone(0).block(5), Some(&vec![7; 4_096]), "finishing keeps what is written");
    check(&mut target, &[(AREA, 0, 0, Status::INVALID_ZONE_TRANSITION), (AREA, 16, 0, fine)]);
    let refused = Status::INVALID_ZONE_OPERATION;
    check(&mut self::target(ZONES), &[(AREA, 0, 0, refused), (COMMIT, 0, 0, refused)]);
}

/// The states and write pointers a survivor may show.
fn shown(survivor: &Survivor) -> Vec<(ZoneState, u64)> {
    match survivor {
        Survivor::Zone(zone) => vec![(zone.state, zone.written())],
        Survivor::Area { pointer, .. } => {
            let state = |at| if at == 0 { ZoneState::Empty } else { ZoneState::Closed };
            pointer.clone().step_by(2).map(|at| (state(at), at)).collect()
        }
    }
}

/// A target that counts what it is asked.
struct Counting {
    inner: Reference<ZonedModel>,
    asked: u32,
}

impl Answerer<ZonedRequest, ZonedReply> for Counting {
    fn buffers(&mut self) -> &mut Buffers {
        &mut self.inner.buffers
    }

    fn ask(&mut self, request: ZonedRequest) -> Result<ZonedReply, Broken> {
        self.asked += 1;
        Ok(self.inner.ask(request))
    }
}

/// An audit of large zones took half a minute, a read for each block that nobody wrote.
#[test]
fn what_lies_behind_write_pointers_is_read_in_few_requests() {
    let mut inner = target(ZoneGeometry { takes_extensions: true, ..ZoneGeometry::plain(1_024, 8) });
    check(&mut inner, &[(WRITE, 0, 5, Status::SUCCESS), (WRITE, 1_024, 1, Status::SUCCESS)]);
    let (model, mut target) = (inner.model.clone(), Counting { inner, asked: 0 });
    let zones = model.observe(&mut target).expect("all zones can be read");
    assert!(zones.iter().all(|zone| zone.blocks.len() == 1_024), "every block is there");
    let zero = zones[7].blocks[0].as_ref().expect("it reads as zeroes");
    assert!(zones[7].blocks.iter().flatten().all(|block| Rc::ptr_eq(block, zero)), "zeroes are kept once");
    // The report, a read for each of six blocks, and for each zone some 16 of 64 blocks.
    assert_eq!(target.asked, 1 + 6 + 8 * 16);
}

#[test]
fn blocks_of_an_area_survive_each_for_itself() {
    let mut target = target(AREAS);
    check(&mut target, &[(AREA, 0, 0, Status::SUCCESS)]);
    let block = |byte| vec![byte; 4_096];
    for (op, at, byte) in
        [(WRITE, 3, 1), (FUA, 3, 2), (WRITE, 1, 3), (WRITE, 3, 4), (WRITE, 2, 5), (WRITE, 3, 6)]
    {
        assert_eq!(ask(&mut target, op, at, 1, byte).status, Status::SUCCESS);
    }
    let unwritten = Some(Rc::new(block(0)));
    let may_be = |contents: [u8; 4], pointer: u64| {
        let blocks: Vec<_> = contents.iter().map(|&byte| Some(Rc::new(block(byte)))).collect();
        let found = Found {
            state: ZoneState::Closed,
            pointer: Some(pointer),
            blocks: &blocks,
            unwritten: &unwritten,
        };
        let legal = target.model.legal(0);
        legal.iter().any(|survivor| survivor.resolved(&found, &AREAS).is_some())
    };
    for (contents, pointer, is_legal) in [
        ([0, 0, 0, 2], 4, true),
        ([0, 3, 0, 2], 4, true),
        ([0, 0, 5, 2], 4, true),
        ([0, 3, 5, 6], 4, true),
        ([0, 0, 0, 4], 4, true),
        ([0, 0, 0, 1], 4, false),
        ([0, 0, 0, 0], 4, false),
        ([1, 0, 0, 2], 4, false),
        ([0, 3, 5, 6], 2, false),
        ([0, 3, 5, 6], 3, false),
    ] {
        assert_eq!(may_be(contents, pointer), is_legal, "{contents:?}, pointer at {pointer}");
    }
}

#[test]
fn a_power_cut_takes_the_area_away_and_commits_what_survived_in_it() {
    use ZoneState::{Closed, Empty};
    for (steps, mut legal) in [
        (&[(WRITE, 1, 1)][..], vec![(Empty, 0), (Closed, 2)]),
        (&[(FUA, 1, 1)], vec![(Closed, 2)]),
        (&[(FUA, 1, 1), (WRITE, 3, 2)], vec![(Closed, 2), (Closed, 4), (Closed, 6)]),
        (&[(WRITE, 3, 1), (ZonedOp::Flush, 0, 0)], vec![(Closed, 4)]),
        (&[(COMMIT, 3, 0)], vec![(Closed, 4)]),
        (&[(AREA, 0, 0)], vec![(Empty, 0)]),
    ] {
        let mut target = target(AREAS);
        check(&mut target, &[(AREA, 0, 0, Status::SUCCESS)]);
        for &(op, block, count) in steps {
            check(&mut target, &[(op, block, count, Status::SUCCESS)]);
        }
        let mut found: Vec<_> = target.model.legal(0).iter().flat_map(shown).collect();
        found.sort_unstable();
        found.dedup();
        legal.sort_unstable();
        assert_eq!(found, legal, "{steps:?}");
    }
}

#[test]
fn whatever_a_sound_target_with_areas_keeps_is_allowed() {
    for unwritten_read in [UnwrittenRead::Zeroes, UnwrittenRead::Refused] {
        let areas = ZonedModel::new(ZoneGeometry { unwritten_read, ..AREAS });
        for seed in 0..30 {
            let mut drawn = DrawnZoned::new(&areas, &mut Prng::new(seed));
            let tally = Trial::new(seed, areas.clone(), pool()).run(1_500, &mut drawn);
            let tally = tally.unwrap_or_else(|found| panic!("{found}"));
            assert!(tally.succeeded > 100 && tally.refused > 30 && tally.cuts > 5, "seed {seed}: {tally:?}");
        }
    }
}

#[test]
fn a_target_that_forgets_what_areas_hold_is_found() {
    for (name, canary) in canaries().into_iter().chain(canaries_of_areas()) {
        let found = (0..20).find_map(|seed| {
            let mut trial = Trial::new(seed, ZonedModel::new(AREAS), pool());
            trial.canary = Some(canary);
            trial.run(1_500, &mut DrawnZoned::new(&ZonedModel::new(AREAS), &mut Prng::new(seed))).err()
        });
        assert!(found.is_some(), "{name}: not found with seeds 0 to 19");
    }
}
