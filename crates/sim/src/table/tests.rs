//! Hand-written cases, and random trials.

use super::*;
use crate::model::Model;
use crate::model::trial::{Reference, Trial};
use ocssd_base::Prng;
use ocssd_lightnvm::interface::table::{
    EditOp, TableAnswer, TableEdit, TableEntry, TableHint, TableId, TableKind, TableLimits, TableOp,
    TableRefusal, TableReply, TableRequest,
};
use ocssd_lightnvm::interface::{Content, Durability, List, Piece};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PayloadFormat, Tag};
use std::collections::BTreeMap;

const LIMITS: TableLimits = TableLimits {
    tables_max: 8,
    table_bytes_max: 4_000,
    attributes_bytes_max: 40,
    edits_max: 4,
    capacity_bytes: 20_000,
};

fn pool() -> Buffers {
    Buffers::new(PayloadFormat::new(Payload::Stamp, &Geometry::example(1, 1, 4, 24, 24)))
}

fn target() -> Reference<TableModel> {
    Reference { model: TableModel::new(LIMITS), buffers: pool() }
}

fn ask(target: &mut Reference<TableModel>, op: TableOp) -> TableReply {
    target.ask(TableRequest { tag: Tag(1), op })
}

fn create(table: u64, kind: TableKind) -> TableOp {
    TableOp::Create { table: TableId(table), kind, hint: TableHint::default(), bytes_expected: 0 }
}

fn filled(buffers: &mut Buffers, bytes: u32, byte: u8) -> Content {
    let buffer = buffers.take_whole(1);
    buffers.whole_mut(buffer, 0, 1).fill(byte);
    Content::Piece(Piece { buffer, first_byte: 0, bytes })
}

fn append(buffers: &mut Buffers, table: u64, bytes: u32, byte: u8) -> TableOp {
    let content = filled(buffers, bytes, byte);
    TableOp::Append { table: TableId(table), content, durability: Durability::AtFlush }
}

/// An edit whose rows each have the attributes `attributes`.
fn edit(buffers: &mut Buffers, rows: &[(EditOp, u64)], attributes: &[u8]) -> TableOp {
    let (list, payload) = (buffers.take_whole(1), buffers.take_whole(1));
    let bytes = u32::try_from(attributes.len()).expect("short");
    let row = |&(op, table): &(EditOp, u64)| TableEdit {
        op,
        table: TableId(table),
        attributes_first: 0,
        attributes_bytes: if op == EditOp::Delete { 0 } else { bytes },
    };
    let rows: Vec<TableEdit> = rows.iter().map(row).collect();
    buffers.whole_mut(payload, 0, 1)[..attributes.len()].copy_from_slice(attributes);
    let attributes = Content::Piece(Piece { buffer: payload, first_byte: 0, bytes });
    TableOp::Edit { edits: List::write(buffers, list, &rows), attributes }
}

fn read(
    target: &mut Reference<TableModel>,
    table: u64,
    offset: u64,
    room: u32,
) -> Result<Vec<u8>, TableRefusal> {
    let into = filled(&mut target.buffers, room, 0);
    let reply = ask(target, TableOp::Read { table: TableId(table), offset, into });
    let TableAnswer::Read { bytes } = reply.answer else {
        return Err(reply.refusal.expect("it was refused"));
    };
    let mut content = into.gathered(&target.buffers);
    content.truncate(usize::try_from(bytes).expect("short"));
    Ok(content)
}

/// Creates and fills; every request succeeds.
fn written(target: &mut Reference<TableModel>, table: u64, kind: TableKind, bytes: u32, byte: u8) {
    assert!(ask(target, create(table, kind)).status.is_success());
    let op = append(&mut target.buffers, table, bytes, byte);
    assert!(ask(target, op).status.is_success());
}

fn publish(table: u64) -> TableOp {
    TableOp::Publish { table: TableId(table), attributes: Content::Empty }
}

#[test]
fn a_table_is_invisible_until_published_and_constant_then() {
    let mut target = target();
    written(&mut target, 5, TableKind::Table, 10, 1);
    let more = append(&mut target.buffers, 5, 5, 2);
    assert_eq!(ask(&mut target, more).answer, TableAnswer::Appended { offset: 10 });
    assert_eq!(read(&mut target, 5, 0, 100), Err(TableRefusal::NotPublished));
    assert_eq!(ask(&mut target, create(5, TableKind::Log)).refusal, Some(TableRefusal::NameTaken));
    assert!(ask(&mut target, publish(5)).status.is_success());
    assert_eq!(read(&mut target, 5, 8, 4), Ok(vec![1, 1, 2, 2]));
    assert_eq!(read(&mut target, 5, 13, 4), Ok(vec![2, 2]), "what there is");
    assert_eq!(read(&mut target, 5, 99, 4), Ok(vec![]));
    assert_eq!(ask(&mut target, more).refusal, Some(TableRefusal::IsPublished));
    assert_eq!(ask(&mut target, publish(5)).refusal, Some(TableRefusal::IsPublished));
    assert_eq!(ask(&mut target, TableOp::Sync { table: TableId(5) }).refusal, Some(TableRefusal::WrongKind));
    assert!(ask(&mut target, TableOp::Delete { table: TableId(5) }).status.is_success());
    assert_eq!(read(&mut target, 5, 0, 4), Err(TableRefusal::NoSuchTable));
}

#[test]
fn a_log_is_read_while_it_grows() {
    let mut target = target();
    written(&mut target, 1, TableKind::Log, 3, 1);
    assert_eq!(read(&mut target, 1, 0, 9), Ok(vec![1; 3]));
    let more = append(&mut target.buffers, 1, 2, 2);
    assert_eq!(ask(&mut target, more).answer, TableAnswer::Appended { offset: 3 });
    assert!(ask(&mut target, TableOp::Sync { table: TableId(1) }).status.is_success());
    assert_eq!(ask(&mut target, publish(1)).refusal, Some(TableRefusal::WrongKind));
    assert_eq!(read(&mut target, 1, 2, 9), Ok(vec![1, 2, 2]));
}

#[test]
fn an_edit_applies_row_by_row_or_not_at_all() {
    use EditOp::{Delete, Describe, Publish};
    let mut target = target();
    for table in [1, 2] {
        written(&mut target, table, TableKind::Table, 10, 1);
        assert!(ask(&mut target, publish(table)).status.is_success());
    }
    written(&mut target, 3, TableKind::Table, 10, 3);
    for (rows, refusal, row) in [
        (&[(Publish, 3), (Delete, 9)][..], TableRefusal::NoSuchTable, Some(1)),
        (&[(Describe, 3)], TableRefusal::NotPublished, Some(0)),
        (&[(Delete, 1), (Delete, 1)], TableRefusal::NoSuchTable, Some(1)),
        (&[(Publish, 3), (Publish, 3)], TableRefusal::IsPublished, Some(1)),
        (&[(Delete, 1); 5], TableRefusal::TooManyEdits, None),
    ] {
        let op = edit(&mut target.buffers, rows, b"level 1");
        let reply = ask(&mut target, op);
        assert_eq!((reply.refusal, reply.row), (Some(refusal), row), "{rows:?}");
    }
    let op = edit(&mut target.buffers, &[(Publish, 3)], &[0; 41]);
    assert_eq!(ask(&mut target, op).refusal, Some(TableRefusal::AttributesTooLong));
    let op = edit(&mut target.buffers, &[(Publish, 3), (Delete, 1), (Describe, 2)], b"level 1");
    assert!(ask(&mut target, op).status.is_success());
    let found = target.model.clone().observe(&mut target).expect("all can be read");
    let names: Vec<u64> = found.keys().map(|table| table.0).collect();
    assert_eq!(names, [2, 3]);
    assert!(found.values().all(|table| table.attributes == b"level 1"));
}

#[test]
fn listings_go_by_name_and_stop_at_their_room() {
    let mut target = target();
    for table in [7, 3, 5] {
        written(&mut target, table, TableKind::Log, 1, 1);
    }
    written(&mut target, 4, TableKind::Table, 1, 1);
    let buffer = target.buffers.take_whole(1);
    for (from, room, names, matching) in [(0, 9, &[3, 5, 7][..], 3), (4, 1, &[5], 2), (8, 9, &[], 0)] {
        let reply = ask(&mut target, TableOp::List { from: TableId(from), into: List::new(buffer, room) });
        let TableAnswer::Listed { listed, matching: told } = reply.answer else { panic!("{reply:?}") };
        let found: Vec<u64> =
            listed.entries(&target.buffers).flatten().map(|entry: TableEntry| entry.table.0).collect();
        assert_eq!((found.as_slice(), told), (names, matching), "from {from}");
    }
}

#[test]
fn limits_are_told_by_name() {
    let mut target = target();
    let long = TableOp::Create {
        table: TableId(1),
        kind: TableKind::Table,
        hint: TableHint::default(),
        bytes_expected: 4_001,
    };
    assert_eq!(ask(&mut target, long).refusal, Some(TableRefusal::TooLong));
    for table in 0..5 {
        written(&mut target, table, TableKind::Table, 4_000, 1);
    }
    let more = append(&mut target.buffers, 0, 1, 1);
    assert_eq!(ask(&mut target, more).refusal, Some(TableRefusal::TooLong));
    (5..8).for_each(|table| assert!(ask(&mut target, create(table, TableKind::Log)).status.is_success()));
    assert_eq!(ask(&mut target, create(9, TableKind::Log)).refusal, Some(TableRefusal::TooManyTables));
    let more = append(&mut target.buffers, 5, 1, 1);
    assert_eq!(ask(&mut target, more).refusal, Some(TableRefusal::NoRoom));
    assert!(ask(&mut target, TableOp::Delete { table: TableId(0) }).status.is_success());
    assert!(ask(&mut target, more).status.is_success());
}

/// Applies without an answer.
fn unanswered(target: &mut Reference<TableModel>, op: TableOp) {
    target.model.apply(&TableRequest { tag: Tag(77), op }, &target.buffers);
}

fn found(all: &[(u64, TableKind, u32, u8)]) -> BTreeMap<TableId, ObservedTable> {
    let one = |&(table, kind, bytes, byte): &(u64, TableKind, u32, u8)| {
        let bytes = vec![byte; usize::try_from(bytes).expect("short")];
        (TableId(table), ObservedTable { kind, bytes, attributes: Vec::new() })
    };
    all.iter().map(one).collect()
}

#[test]
fn answered_edits_survive_whole_and_others_whole_or_not() {
    use TableKind::Table;
    let mut target = target();
    for table in [1, 2, 3] {
        written(&mut target, table, Table, 10, 1);
    }
    assert!(ask(&mut target, publish(1)).status.is_success());
    let op = edit(&mut target.buffers, &[(EditOp::Publish, 2), (EditOp::Delete, 1)], b"");
    unanswered(&mut target, op);
    unanswered(&mut target, publish(3));
    for (found, legal) in [
        (found(&[(1, Table, 10, 1)]), true),
        (found(&[(2, Table, 10, 1)]), true),
        (found(&[(2, Table, 10, 1), (3, Table, 10, 1)]), true),
        (found(&[(1, Table, 10, 1), (2, Table, 10, 1)]), false),
        (found(&[(1, Table, 10, 1), (3, Table, 10, 1)]), false),
        (found(&[]), false),
        (found(&[(1, Table, 9, 1)]), false),
        (found(&[(1, Table, 10, 2)]), false),
    ] {
        assert_eq!(target.model.may_hold(&found).is_ok(), legal, "{found:?}");
    }
}

#[test]
fn of_a_log_there_is_what_was_synced_and_perhaps_more() {
    use TableKind::{Log, Table};
    let mut target = target();
    written(&mut target, 1, Log, 10, 1);
    let legal = |target: &Reference<TableModel>| {
        let lengths = (0..=20).filter(|&bytes| target.model.may_hold(&found(&[(1, Log, bytes, 1)])).is_ok());
        (target.model.may_hold(&found(&[])).is_ok(), lengths.collect::<Vec<_>>())
    };
    assert_eq!(legal(&target), (true, (0..=10).collect()), "nothing was synced");
    assert!(ask(&mut target, TableOp::Sync { table: TableId(1) }).status.is_success());
    let more = append(&mut target.buffers, 1, 5, 1);
    assert!(ask(&mut target, more).status.is_success());
    assert_eq!(legal(&target), (false, (10..=15).collect()));
    written(&mut target, 2, Table, 1, 1);
    written(&mut target, 3, Log, 1, 1);
    assert!(ask(&mut target, publish(2)).status.is_success());
    let all = |bytes| found(&[(1, Log, 10, 1), (2, Table, 1, 1), (3, Log, bytes, 1)]);
    assert!([0, 1].into_iter().all(|bytes| target.model.may_hold(&all(bytes)).is_ok()));
    let without = found(&[(1, Log, 10, 1), (2, Table, 1, 1)]);
    assert!(target.model.may_hold(&without).is_err(), "the edit came after the log's creation");
}

#[test]
fn whatever_a_sound_target_keeps_is_allowed() {
    for seed in 0..60 {
        let tally = Trial::new(seed, TableModel::new(LIMITS), pool())
            .run(1_500, &mut DrawnTable::new(LIMITS, &mut Prng::new(seed)));
        let tally = tally.unwrap_or_else(|found| panic!("{found}"));
        assert!(tally.succeeded > 150 && tally.refused > 30 && tally.cuts > 5, "seed {seed}: {tally:?}");
    }
}

#[test]
fn a_target_that_forgets_or_tears_is_found() {
    for (name, canary) in canaries() {
        let found = (0..400).find_map(|seed| {
            let mut trial = Trial::new(seed, TableModel::new(LIMITS), pool());
            trial.canary = Some(canary);
            trial.run(1_500, &mut DrawnTable::new(LIMITS, &mut Prng::new(seed))).err()
        });
        assert!(found.is_some(), "{name}: not found with seeds 0 to 399");
    }
}
