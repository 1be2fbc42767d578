//! Namespaces of tables in a slot: what hosts have over NVMe/TCP, with data where a guest's pages are.

use super::{Bench, Served, ready};
use crate::model_targets::tables;
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

fn slot() -> Bench<Served> {
    ready(vec![("t", tables()), ("t-ro", tables())])
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a transfer is small")
}

fn create(bench: &mut Bench<Served>, table: u64, is_log: bool) -> Cqe {
    let create = CreateTable { table, is_log, level: 1, stream: 2, bytes_expected: 0 };
    bench.carry_out(1, TableCommand::Create(create).entry(NSID))
}

fn append(bench: &mut Bench<Served>, table: u64, bytes: &[u8]) -> Cqe {
    let append = AppendTable { table, bytes: length(bytes.len()), force_unit_access: false };
    bench.send(TableCommand::Append(append).entry(NSID), bytes)
}

fn edit(bench: &mut Bench<Served>, rows: &[(EditOp, u64, &[u8])]) -> Cqe {
    let (mut list, mut attributes) = (vec![0; rows.len() * TableEdit::BYTES], Vec::new());
    for (&(op, table, of_row), place) in rows.iter().zip(list.chunks_exact_mut(TableEdit::BYTES)) {
        let (attributes_first, attributes_bytes) = (length(attributes.len()), length(of_row.len()));
        TableEdit { op, table: TableId(table), attributes_first, attributes_bytes }.encode(place);
        attributes.extend_from_slice(of_row);
    }
    let edit = EditTables { rows: length(rows.len()), attributes_bytes: length(attributes.len()) };
    bench.send(TableCommand::Edit(edit).entry(NSID), &[list, attributes].concat())
}

fn read(bench: &mut Bench<Served>, table: u64, offset: u64, room: usize) -> (Vec<u8>, Cqe) {
    let read = ReadTable { table, bytes: length(room), offset };
    bench.fetch(TableCommand::Read(read).entry(NSID), room)
}

/// Names, kinds and lengths of what is listed.
fn list(bench: &mut Bench<Served>) -> Vec<(u64, TableKind, u64)> {
    let command = TableCommand::List(ListTables { from: 0, rows: 8 });
    let (bytes, cqe) = bench.fetch(command.entry(NSID), 8 * TableEntry::BYTES);
    assert_eq!((cqe.status.status, cqe.dw0), (Status::SUCCESS, cqe.dw1));
    let rows = bytes.chunks_exact(TableEntry::BYTES).take(usize::try_from(cqe.dw0).expect("few"));
    let rows = rows.map(|row| TableEntry::decode(row).expect("a row"));
    rows.map(|row| (row.table.0, row.kind, row.bytes)).collect()
}

#[test]
fn the_namespace_says_what_it_is() {
    let mut bench = slot();
    let identify = |cns, csi| Sqe::identify(NSID, Identify { cns, cntid: 0, csi });
    let ids = bench.ask(identify(Cns::NAMESPACE_IDS, 0)).expect("it is there");
    assert_eq!(NamespaceIds::decode(&ids).expect("a list").csi, Some(tables::CSI));
    let found = bench.ask(identify(Cns::COMMAND_SET_NAMESPACE, tables::CSI)).expect("its set");
    let found = TableNamespace::decode(&found).expect("4096 bytes");
    assert_eq!((found.tables_max, found.edits_max, found.nsze, found.nsattr), (20, 4, 1 << 20, 0));
    assert_eq!(bench.ask(identify(Cns::NAMESPACE, 0)), Err(Status::INVALID_FIELD));
    bench.end();
}

#[test]
fn tables_and_logs_are_written_published_read_described_listed_and_deleted() {
    let mut bench = slot();
    for (table, is_log) in [(7, false), (9, true)] {
        assert!(create(&mut bench, table, is_log).status.status.is_success());
        // No multiple of anything: a PRP has no length, the command has.
        assert!(append(&mut bench, table, &[7; 100]).status.status.is_success());
        assert!(append(&mut bench, table, &[8; 40_001]).status.status.is_success());
    }
    assert_eq!(list(&mut bench), [(9, TableKind::Log, 40_101)]);
    assert!(bench.io(TableCommand::Sync(9).entry(NSID)).is_success());
    let rows: [(EditOp, u64, &[u8]); 2] = [(EditOp::Publish, 7, b"first"), (EditOp::Describe, 9, b"log")];
    assert!(edit(&mut bench, &rows).status.status.is_success());
    assert_eq!(list(&mut bench), [(7, TableKind::Table, 40_101), (9, TableKind::Log, 40_101)]);
    let (bytes, cqe) = read(&mut bench, 7, 99, 3);
    assert_eq!((bytes, cqe.dw0), (vec![7, 8, 8], 3));
    let (bytes, cqe) = read(&mut bench, 7, 40_099, 8);
    assert_eq!((bytes, cqe.dw0), (vec![8, 8, 0, 0, 0, 0, 0, 0], 2), "its end");
    let (bytes, cqe) = read(&mut bench, 7, 100, 40_001);
    assert!(cqe.dw0 == 40_001 && bytes == [8; 40_001], "over a list of pages");
    let attributes = TableCommand::Attributes(ReadTable { table: 9, bytes: 8, offset: 0 });
    let (bytes, cqe) = bench.fetch(attributes.entry(NSID), 8);
    assert_eq!((&bytes[..3], cqe.dw0), (&b"log"[..], 3));
    let rows: [(EditOp, u64, &[u8]); 2] = [(EditOp::Delete, 7, b""), (EditOp::Delete, 9, b"")];
    assert!(edit(&mut bench, &rows).status.status.is_success());
    assert_eq!(list(&mut bench), []);
    assert!(bench.io(TableCommand::Flush.entry(NSID)).is_success());
    bench.end();
}

#[test]
fn what_is_refused_says_why_and_of_which_row() {
    let mut bench = slot();
    assert!(create(&mut bench, 7, false).status.status.is_success());
    let told = |cqe: Cqe| (cqe.status.status, cqe.dw0, cqe.dw1);
    assert_eq!(told(create(&mut bench, 7, false)), (Status::INVALID_FIELD, 0, 2), "its name is taken");
    assert_eq!(told(append(&mut bench, 8, &[1])), (Status::INVALID_FIELD, 0, 1), "there is none");
    let unread = read(&mut bench, 7, 0, 8).1;
    assert_eq!(told(unread), (Status::COMMAND_SEQUENCE_ERROR, 0, 3), "it is not published");
    let rows: [(EditOp, u64, &[u8]); 2] = [(EditOp::Publish, 7, b""), (EditOp::Delete, 8, b"")];
    assert_eq!(told(edit(&mut bench, &rows)), (Status::INVALID_FIELD, 1, 1), "the second row");
    let unknown = Sqe { opcode: 0xB8, nsid: NSID, ..Sqe::default() };
    assert_eq!(bench.io(unknown), Status::INVALID_OPCODE);
    assert_eq!(bench.io(TableCommand::Sync(1).entry(READ_ONLY)), Status::WRITE_TO_READ_ONLY);
    bench.end();
}

/// A guest that restarts finds its names free, as a host does whose connections ended: it claims the namespace again.
#[test]
fn after_a_controller_reset_a_claim_finds_none_of_what_was_not_published() {
    let mut bench = slot();
    let claim = |bench: &mut Bench<Served>| bench.io(Sqe::claim_drive(NSID, Claim::Take));
    assert_eq!(claim(&mut bench), Status::SUCCESS);
    for table in [6, 7, 8] {
        assert!(create(&mut bench, table, false).status.status.is_success());
        assert!(append(&mut bench, table, &[7; 100]).status.status.is_success());
    }
    assert!(edit(&mut bench, &[(EditOp::Publish, 7, b"")]).status.status.is_success());
    assert_eq!(claim(&mut bench), Status::SUCCESS, "once more: it goes on with what it has");
    assert!(append(&mut bench, 6, &[7; 100]).status.status.is_success());
    bench.write(0x14, 0);
    bench.enable();
    bench.make_queue(1);
    let taken = create(&mut bench, 6, false);
    assert_eq!((taken.status.status, taken.dw1), (Status::INVALID_FIELD, 2), "nobody claimed anything yet");
    assert_eq!(claim(&mut bench), Status::SUCCESS);
    assert_eq!(list(&mut bench), [(7, TableKind::Table, 100)]);
    for table in [6, 8] {
        assert!(create(&mut bench, table, false).status.status.is_success(), "its name is free");
    }
    bench.end();
}
