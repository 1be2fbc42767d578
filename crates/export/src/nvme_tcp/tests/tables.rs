//! Namespaces of tables: every command, refusals with their reasons, and what the next host finds of the one before.

use crate::model_targets::tables;
use crate::nvme_tcp::host::{Answer, transported};
use crate::nvme_tcp::testing::{World, completion};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::Entry;
use ocssd_lightnvm::interface::table::{EditOp, TableEdit, TableEntry, TableId, TableKind};
use ocssd_nvme::identify::{Cns, NamespaceIds};
use ocssd_nvme::ocssd20::Claim;
use ocssd_nvme::sqe::Identify;
use ocssd_nvme::tables::{
    self, AppendTable, CreateTable, EditTables, ListTables, ReadTable, TableCommand, TableNamespace,
};
use ocssd_nvme::{Cqe, Sqe};

/// The namespace of tables, and the one that is not written.
const NSID: u32 = 3;
const READ_ONLY: u32 = 4;

fn world() -> World {
    World::beside(vec![("t", tables()), ("t-ro", tables())], [8, 4, 4], &[])
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a transfer is small")
}

fn create(world: &mut World, line: usize, table: u64, is_log: bool) -> Cqe {
    let create = CreateTable { table, is_log, level: 1, stream: 2, bytes_expected: 0 };
    world.ask(line, TableCommand::Create(create).entry(NSID))
}

fn append(world: &mut World, line: usize, table: u64, bytes: &[u8]) -> Cqe {
    let append = AppendTable { table, bytes: length(bytes.len()), force_unit_access: false };
    world.write(line, TableCommand::Append(append).entry(NSID), bytes)
}

fn edit(world: &mut World, line: usize, rows: &[(EditOp, u64, &[u8])]) -> Cqe {
    let (mut list, mut attributes) = (vec![0; rows.len() * TableEdit::BYTES], Vec::new());
    for (&(op, table, of_row), place) in rows.iter().zip(list.chunks_exact_mut(TableEdit::BYTES)) {
        let (attributes_first, attributes_bytes) = (length(attributes.len()), length(of_row.len()));
        TableEdit { op, table: TableId(table), attributes_first, attributes_bytes }.encode(place);
        attributes.extend_from_slice(of_row);
    }
    let edit = EditTables { rows: length(rows.len()), attributes_bytes: length(attributes.len()) };
    world.write(line, TableCommand::Edit(edit).entry(NSID), &[list, attributes].concat())
}

/// What a command reads, as far as DW0 says, and its completion.
fn read(world: &mut World, line: usize, command: TableCommand, room: usize) -> (Vec<u8>, Cqe) {
    let pdu = world.lines[line].host.command(&transported(command.entry(NSID), room), &[]);
    match world.say(line, &pdu).as_slice() {
        [Answer::Data { bytes, .. }, Answer::Completion(cqe)] => (bytes.clone(), *cqe),
        // Nothing is to be said: no completion follows.
        [Answer::Data { bytes, is_success: true, .. }] => (bytes.clone(), Cqe::decode(&[0; Cqe::BYTES])),
        answers => (Vec::new(), completion(answers)),
    }
}

fn read_table(world: &mut World, line: usize, table: u64, offset: u64, room: usize) -> (Vec<u8>, Cqe) {
    read(world, line, TableCommand::Read(ReadTable { table, bytes: length(room), offset }), room)
}

/// Names, kinds and lengths of what is listed.
fn list(world: &mut World, line: usize) -> Vec<(u64, TableKind, u64)> {
    let command = TableCommand::List(ListTables { from: 0, rows: 8 });
    let (bytes, cqe) = read(world, line, command, 8 * TableEntry::BYTES);
    assert_eq!((cqe.status.status, cqe.dw0), (Status::SUCCESS, cqe.dw1));
    let rows = bytes.chunks_exact(TableEntry::BYTES).take(usize::try_from(cqe.dw0).expect("few"));
    rows.map(|row| TableEntry::decode(row).expect("a row"))
        .map(|row| (row.table.0, row.kind, row.bytes))
        .collect()
}

#[test]
fn the_namespace_says_what_it_is() {
    let mut world = world();
    let (admin, _, _) = world.ready((false, false));
    let identify = |cns, csi| Sqe::identify(NSID, Identify { cns, cntid: 0, csi });
    let ids = world.read(admin, identify(Cns::NAMESPACE_IDS, 0), 4096).expect("it is there");
    assert_eq!(NamespaceIds::decode(&ids).expect("a list").csi, Some(tables::CSI));
    let found = world.read(admin, identify(Cns::COMMAND_SET_NAMESPACE, tables::CSI), 4096).expect("its set");
    let found = TableNamespace::decode(&found).expect("4096 bytes");
    assert_eq!((found.tables_max, found.edits_max, found.nsze, found.nsattr), (20, 4, 1 << 20, 0));
    assert_eq!(world.read(admin, identify(Cns::NAMESPACE, 0), 4096), Err(Status::INVALID_FIELD));
    world.end();
}

#[test]
fn tables_and_logs_are_written_published_read_described_listed_and_deleted() {
    let mut world = world();
    let (_, line, _) = world.ready((true, true));
    for (table, is_log) in [(7, false), (9, true)] {
        assert!(create(&mut world, line, table, is_log).status.status.is_success());
        assert!(append(&mut world, line, table, &[7; 100]).status.status.is_success());
        assert!(append(&mut world, line, table, &[8; 40_000]).status.status.is_success(), "asked for");
    }
    assert_eq!(list(&mut world, line), [(9, TableKind::Log, 40_100)]);
    assert!(world.ask(line, TableCommand::Sync(9).entry(NSID)).status.status.is_success());
    let rows: [(EditOp, u64, &[u8]); 2] = [(EditOp::Publish, 7, b"first"), (EditOp::Describe, 9, b"log")];
    assert!(edit(&mut world, line, &rows).status.status.is_success());
    assert_eq!(list(&mut world, line), [(7, TableKind::Table, 40_100), (9, TableKind::Log, 40_100)]);
    let (bytes, cqe) = read_table(&mut world, line, 7, 99, 3);
    assert_eq!((bytes, cqe.dw0), (vec![7, 8, 8], 3));
    let (bytes, cqe) = read_table(&mut world, line, 7, 40_098, 8);
    assert_eq!((bytes, cqe.dw0), (vec![8, 8, 0, 0, 0, 0, 0, 0], 2), "its end");
    let attributes = TableCommand::Attributes(ReadTable { table: 9, bytes: 8, offset: 0 });
    let (bytes, cqe) = read(&mut world, line, attributes, 8);
    assert_eq!((&bytes[..3], cqe.dw0), (&b"log"[..], 3));
    assert!(
        edit(&mut world, line, &[(EditOp::Delete, 7, b""), (EditOp::Delete, 9, b"")])
            .status
            .status
            .is_success()
    );
    assert_eq!(list(&mut world, line), []);
    assert!(world.ask(line, TableCommand::Flush.entry(NSID)).status.status.is_success());
    world.end();
}

#[test]
fn what_is_refused_says_why_and_of_which_row() {
    let mut world = world();
    let (_, line, _) = world.ready((false, false));
    assert!(create(&mut world, line, 7, false).status.status.is_success());
    let told = |cqe: Cqe| (cqe.status.status, cqe.dw0, cqe.dw1);
    assert_eq!(told(create(&mut world, line, 7, false)), (Status::INVALID_FIELD, 0, 2), "its name is taken");
    assert_eq!(told(append(&mut world, line, 8, &[1])), (Status::INVALID_FIELD, 0, 1), "there is none");
    let unread = read_table(&mut world, line, 7, 0, 8).1;
    assert_eq!(told(unread), (Status::COMMAND_SEQUENCE_ERROR, 0, 3), "it is not published");
    let rows: [(EditOp, u64, &[u8]); 2] = [(EditOp::Publish, 7, b""), (EditOp::Delete, 8, b"")];
    assert_eq!(told(edit(&mut world, line, &rows)), (Status::INVALID_FIELD, 1, 1), "the second row");
    assert_eq!(told(append(&mut world, line, 7, &[0; 200_000])), (Status::SUCCESS, 0, 0));
    for _ in 0..5 {
        append(&mut world, line, 7, &[0; 200_000]);
    }
    assert_eq!(
        told(append(&mut world, line, 7, &[0; 200_000])),
        (Status::CAPACITY_EXCEEDED, 0, 11),
        "no room"
    );
    let none = TableCommand::List(ListTables { from: 0, rows: 0 }).entry(NSID);
    assert_eq!(world.ask(line, none).status.status, Status::INVALID_FIELD);
    let short = TableCommand::Append(AppendTable { table: 7, bytes: 9, force_unit_access: true }).entry(NSID);
    assert_eq!(world.write(line, short, &[1; 8]).status.status, Status::INVALID_SGL_LENGTH);
    let unknown = Sqe { opcode: 0xB8, nsid: NSID, ..Sqe::default() };
    assert_eq!(world.ask(line, unknown).status.status, Status::INVALID_OPCODE);
    let on_read_only = TableCommand::Sync(1).entry(READ_ONLY);
    assert_eq!(world.ask(line, on_read_only).status.status, Status::WRITE_TO_READ_ONLY);
    world.end();
}

/// Whoever claims the namespace finds none of what another began and did not publish, and has it alone.
#[test]
fn the_next_host_gets_names_and_room_of_tables_that_nobody_published() {
    let mut world = world();
    let (admin, first, _) = world.ready((false, false));
    let (_, second, _) = world.ready((false, false));
    let claim = |world: &mut World, line| world.ask(line, Sqe::claim_drive(NSID, Claim::Take)).status.status;
    assert_eq!(claim(&mut world, first), Status::SUCCESS);
    for table in 1..=5 {
        assert!(create(&mut world, first, table, false).status.status.is_success());
        assert!(append(&mut world, first, table, &[1; 150_000]).status.status.is_success());
    }
    assert!(edit(&mut world, first, &[(EditOp::Publish, 2, b"")]).status.status.is_success());
    assert_eq!(claim(&mut world, first), Status::SUCCESS, "once more: it goes on with what it has");
    assert!(append(&mut world, first, 3, &[1; 10]).status.status.is_success());
    assert_eq!(claim(&mut world, second), Status::RESERVATION_CONFLICT);
    assert_eq!(create(&mut world, second, 9, false).status.status, Status::RESERVATION_CONFLICT);
    world.hang_up(admin);
    assert_eq!(claim(&mut world, second), Status::SUCCESS);
    assert_eq!(list(&mut world, second), [(2, TableKind::Table, 150_000)]);
    for table in [1, 3, 4, 5] {
        assert!(create(&mut world, second, table, false).status.status.is_success(), "its name is free");
        assert!(append(&mut world, second, table, &[2; 200_000]).status.status.is_success(), "there is room");
    }
    world.end();
}
