//! Namespaces of pages: every command, a flush longer than a command, lost connections, and what is refused.

use crate::model_targets::pages;
use crate::nvme_tcp::host::{Answer, in_capsule, transported};
use crate::nvme_tcp::testing::{NQN, World, connect, data};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::Entry;
use ocssd_lightnvm::interface::log_structured::{PageEntry, PageId};
use ocssd_nvme::identify::{Cns, NamespaceIds};
use ocssd_nvme::log_page::{CommandEffects, EffectsLog, LogPageId};
use ocssd_nvme::pages::{self, FlushPages, PageNamespace, PageOpcode, ReadPage, StagePages};
use ocssd_nvme::sqe::{GetLogPage, Identify};
use ocssd_nvme::{Cqe, Sqe};

/// The namespace of pages, and the one that is not written.
const NSID: u32 = 3;
const READ_ONLY: u32 = 4;
const SESSION: u64 = 0x1_0000_0007;
/// Bytes of a command that carries part of a long buffer.
const PART: usize = 256 << 10;

fn world() -> World {
    World::beside(vec![("p", pages()), ("p-ro", pages())], [8, 4, 4], &[])
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a transfer is small")
}

/// A page table: pages of these lengths, one after the other; 0 deletes.
fn table(rows: &[(u64, u32)]) -> Vec<u8> {
    let mut bytes = vec![0; rows.len() * PageEntry::BYTES];
    let mut at = 0;
    for (&(page, length), place) in rows.iter().zip(bytes.chunks_exact_mut(PageEntry::BYTES)) {
        let offset = if length == 0 { 0 } else { at };
        PageEntry { page: PageId(page), offset, bytes: length }.encode(place);
        at += length;
    }
    bytes
}

fn flush_of(wsn: u64, rows: usize, bytes: usize) -> FlushPages {
    let (rows, bytes) = (length(rows), length(bytes));
    FlushPages { session: SESSION, wsn, bytes, rows, force_unit_access: false, stage: None }
}

/// A flush in one command: all bytes of its pages are `fill`.
fn flush(world: &mut World, line: usize, wsn: u64, rows: &[(u64, u32)], fill: u8) -> Cqe {
    let bytes: usize = rows.iter().map(|row| usize::try_from(row.1).expect("short")).sum();
    let sqe = Sqe::flush_pages(NSID, flush_of(wsn, rows.len(), bytes));
    let sent = [table(rows), vec![fill; bytes]].concat();
    if sent.is_empty() { world.ask(line, sqe) } else { world.write(line, sqe, &sent) }
}

fn session(world: &mut World, line: usize, opcode: PageOpcode, name: u64) -> Cqe {
    world.ask(line, Sqe::page_session(opcode, NSID, name))
}

/// The applied number of an opened session.
fn open(world: &mut World, line: usize) -> u64 {
    let cqe = session(world, line, PageOpcode::OPEN_SESSION, SESSION);
    assert!(cqe.status.status.is_success(), "{cqe:?}");
    u64::from(cqe.dw1) << 32 | u64::from(cqe.dw0)
}

/// A page: its bytes as far as there is room, its length, and the status.
fn read(world: &mut World, line: usize, page: u64, offset: usize, room: usize) -> (Vec<u8>, u32, Status) {
    let sqe = Sqe::read_page(NSID, ReadPage { page, offset: length(offset), bytes: length(room) });
    let pdu = world.lines[line].host.command(&transported(sqe, room), &[]);
    match world.say(line, &pdu).as_slice() {
        [Answer::Data { bytes, .. }, Answer::Completion(cqe)] => (bytes.clone(), cqe.dw0, cqe.status.status),
        [Answer::Completion(cqe)] => (Vec::new(), cqe.dw0, cqe.status.status),
        other => panic!("an answer to {sqe:?} was {other:?}"),
    }
}

/// Pages, and bytes of them all.
fn stat(world: &mut World, line: usize) -> (u64, u64) {
    let sqe = Sqe { opcode: PageOpcode::STAT.0, nsid: NSID, ..Sqe::default() };
    let bytes = world.read(line, sqe, 16).expect("a stat succeeds");
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    (number(0), number(8))
}

fn stage(world: &mut World, line: usize, opcode: PageOpcode, name: u32, bytes: usize) -> Status {
    let stage = StagePages { stage: name, bytes: length(bytes), offset: 0 };
    world.ask(line, Sqe::page_stage(opcode, NSID, stage)).status.status
}

fn append(world: &mut World, line: usize, name: u32, offset: usize, part: &[u8]) -> Status {
    let stage = StagePages { stage: name, bytes: length(part.len()), offset: length(offset) };
    world.write(line, Sqe::page_stage(PageOpcode::STAGE_APPEND, NSID, stage), part).status.status
}

/// The command that makes true what the stage 5 holds.
fn staged(wsn: u64, rows: usize, bytes: usize) -> Sqe {
    Sqe::flush_pages(NSID, FlushPages { stage: Some(5), ..flush_of(wsn, rows, bytes) })
}

/// Two thousand pages of 4 KiB, which are 8 MiB together, and their buffer: each page begins with its name.
fn long() -> (Vec<(u64, u32)>, Vec<u8>) {
    let rows: Vec<(u64, u32)> = (0..2048).map(|page| (page, 4096)).collect();
    let page = |&(page, bytes): &(u64, u32)| {
        let mut content = vec![3; usize::try_from(bytes).expect("short")];
        content[..8].copy_from_slice(&page.to_le_bytes());
        content
    };
    let buffer = rows.iter().flat_map(page).collect();
    (rows, buffer)
}

fn send_long(world: &mut World, line: usize, buffer: &[u8]) {
    assert_eq!(stage(world, line, PageOpcode::STAGE_OPEN, 5, buffer.len()), Status::SUCCESS);
    for (place, part) in buffer.chunks(PART).enumerate() {
        assert_eq!(append(world, line, 5, place * PART, part), Status::SUCCESS);
        assert_eq!(stat(world, line).0, 0, "nothing of it is there before all of it is");
    }
}

#[test]
fn a_namespace_says_what_its_flushes_and_pages_may_be() {
    let mut world = world();
    let (line, _) = world.admin((false, false), NQN);
    let mut ask =
        |nsid, cns, csi| world.read(line, Sqe::identify(nsid, Identify { cns, cntid: 0, csi }), 4096);
    let ids = NamespaceIds::decode(&ask(NSID, Cns::NAMESPACE_IDS, 0).unwrap()).unwrap();
    assert_eq!(ids.csi, Some(pages::CSI));
    let of_pages = ask(NSID, Cns::COMMAND_SET_NAMESPACE, pages::CSI).unwrap();
    let found = PageNamespace::decode(&of_pages).unwrap();
    assert_eq!((found.nsze, found.nsattr, found.pages_max), (16 << 20, 0, 4096));
    let flush = (found.flush_bytes_max, found.flush_pages_max, found.page_bytes_max);
    assert_eq!((flush, found.page_align_bytes, found.sessions_max), ((8 << 20, 2048, 20_000), 1, 3));
    assert_eq!((found.stages_max, found.stage_bytes_max), (2, 8 << 20));
    let read_only = ask(READ_ONLY, Cns::COMMAND_SET_NAMESPACE, pages::CSI).unwrap();
    assert_eq!(PageNamespace::decode(&read_only).unwrap().nsattr, 1);
    let sets = ask(0, Cns::COMMAND_SETS, 0).unwrap();
    assert_eq!(u64::from_le_bytes(sets[..8].try_into().unwrap()), 1 | 1 << pages::CSI);
    assert_eq!(ask(NSID, Cns::NAMESPACE, 0), Err(Status::INVALID_FIELD), "it has no blocks");
    let (lid, csi) = (LogPageId::COMMAND_EFFECTS, pages::CSI);
    let get = GetLogPage { lid, lsp: 0, retain_event: false, dword_count: 1024, offset_bytes: 0, csi };
    let effects = EffectsLog::decode(&world.read(line, Sqe::get_log_page(0, get), 4096).unwrap()).unwrap();
    assert_eq!(effects.io[0xA1], CommandEffects::CHANGES);
    assert_eq!([0, 0xA2, 0xA3, 0xA4, 0xC1].map(|opcode| effects.io[opcode]), [CommandEffects::SUPPORTED; 5]);
    assert_eq!(effects.io[1], CommandEffects::default());
    world.end();
}

#[test]
fn pages_of_any_length_are_flushed_read_deleted_and_counted() {
    let mut world = world();
    let (_, line, _) = world.ready((true, true));
    assert_eq!(open(&mut world, line), 0);
    let cqe = flush(&mut world, line, 1, &[(9, 5), (1 << 40, 5000)], 7);
    assert_eq!((cqe.status.status, cqe.dw1), (Status::SUCCESS, 0));
    let (bytes, whole, status) = read(&mut world, line, 1 << 40, 4990, 64);
    assert_eq!((whole, status, &bytes[..10]), (5000, Status::SUCCESS, &[7; 10][..]));
    assert!(bytes[10..].iter().all(|&byte| byte == 0), "what is behind is nobody's");
    assert_eq!(read(&mut world, line, 9, 0, 0), (Vec::new(), 5, Status::SUCCESS), "only its length");
    assert_eq!(stat(&mut world, line), (2, 5005));
    let durable = FlushPages { force_unit_access: true, ..flush_of(2, 1, 0) };
    let cqe = world.write(line, Sqe::flush_pages(NSID, durable), &table(&[(9, 0)]));
    assert_eq!((cqe.status.status, cqe.dw0), (Status::SUCCESS, 2), "it says how far the session is durable");
    assert_eq!(read(&mut world, line, 9, 0, 64).2, Status::UNWRITTEN);
    assert_eq!(flush(&mut world, line, 3, &[], 0).status.status, Status::SUCCESS, "no page at all");
    assert_eq!((open(&mut world, line), stat(&mut world, line)), (3, (1, 5000)));
    assert_eq!(world.ask(line, Sqe::flush(NSID)).status.status, Status::SUCCESS);
    let closed = session(&mut world, line, PageOpcode::CLOSE_SESSION, SESSION);
    assert_eq!(closed.status.status, Status::SUCCESS);
    let cqe = flush(&mut world, line, 4, &[(1, 1)], 1);
    assert_eq!((cqe.status.status, cqe.dw1), (Status::COMMAND_SEQUENCE_ERROR, 1), "the session is unknown");
    assert_eq!(stat(&mut world, line), (1, 5000), "its pages stay");
    world.end();
}

#[test]
fn a_flush_of_8_mib_comes_in_many_capsules_and_is_there_all_at_once_and_once() {
    let mut world = world();
    let (_, line, _) = world.ready((false, true));
    open(&mut world, line);
    let (rows, buffer) = long();
    assert_eq!(buffer.len(), 8 << 20);
    send_long(&mut world, line, &buffer);
    let sqe = staged(1, rows.len(), buffer.len());
    assert_eq!(world.write(line, sqe, &table(&rows)).status.status, Status::SUCCESS);
    assert_eq!(stat(&mut world, line), (2048, 8 << 20));
    for page in [0, 1, 1000, 2047] {
        let (bytes, ..) = read(&mut world, line, page, 0, 4096);
        assert_eq!((&bytes[..8], bytes[8]), (&page.to_le_bytes()[..], 3));
    }
    // The host heard nothing, and sends again: of another content nothing is seen, and its stage is over.
    for fill in [8, 9] {
        let other = vec![fill; 4096];
        assert_eq!(stage(&mut world, line, PageOpcode::STAGE_OPEN, 5, other.len()), Status::SUCCESS);
        assert_eq!(append(&mut world, line, 5, 0, &other), Status::SUCCESS);
        let again = world.write(line, staged(1, 1, other.len()), &table(&[(0, 4096)]));
        assert_eq!(again.status.status, Status::SUCCESS);
    }
    assert_eq!(read(&mut world, line, 0, 8, 1).0, [3]);
    assert_eq!(open(&mut world, line), 1);
    world.end();
}

#[test]
fn a_connection_that_dies_within_a_flush_leaves_nothing_of_it() {
    let (rows, buffer) = long();
    let mut world = world();
    for parts in [0, 1, 31, 32] {
        let (admin, line, _) = world.ready((false, false));
        assert_eq!(open(&mut world, line), 0, "the flush was never applied");
        assert_eq!(stage(&mut world, line, PageOpcode::STAGE_OPEN, 5, buffer.len()), Status::SUCCESS);
        for (place, part) in buffer.chunks(PART).enumerate().take(parts) {
            assert_eq!(append(&mut world, line, 5, place * PART, part), Status::SUCCESS);
        }
        // The flush itself is cut within its table.
        let sent = table(&rows);
        let (cid, tag) = world.asked(line, staged(1, rows.len(), buffer.len()), sent.len());
        let pdu = world.lines[line].host.data(cid, tag, 0, &sent, true);
        assert_eq!(world.say(line, &pdu[..pdu.len() - 1]), []);
        world.hang_up(if parts % 2 == 0 { line } else { admin });
        if parts % 2 == 0 {
            world.hang_up(admin);
        }
    }
    let (_, line, _) = world.ready((false, false));
    assert_eq!((open(&mut world, line), stat(&mut world, line)), (0, (0, 0)));
    send_long(&mut world, line, &buffer);
    let sqe = staged(1, rows.len(), buffer.len());
    assert_eq!(world.write(line, sqe, &table(&rows)).status.status, Status::SUCCESS);
    assert_eq!(stat(&mut world, line), (2048, 8 << 20));
    world.end();
}

#[test]
fn an_answer_that_was_lost_is_asked_for_again() {
    let mut world = world();
    let (admin, line, cntlid) = world.ready((false, false));
    open(&mut world, line);
    let sent = [table(&[(1, 100)]), vec![1; 100]].concat();
    let sqe = in_capsule(Sqe::flush_pages(NSID, flush_of(1, 1, 100)), sent.len());
    let pdu = world.lines[line].host.command(&sqe, &sent);
    world.say(line, &pdu);
    world.hang_up(line);
    let line = world.greeted(false, false);
    assert!(world.connect(line, connect(1), &data(NQN, cntlid)).status.status.is_success());
    assert_eq!(open(&mut world, line), 1, "it was taken");
    assert_eq!(flush(&mut world, line, 1, &[(1, 100)], 2).status.status, Status::SUCCESS);
    assert_eq!(read(&mut world, line, 1, 99, 1).0, [1], "what is sent again changes nothing");
    assert_eq!(flush(&mut world, line, 2, &[(1, 100)], 2).status.status, Status::SUCCESS);
    assert_eq!(read(&mut world, line, 1, 99, 1).0, [2]);
    world.hang_up(admin);
    world.end();
}

#[test]
fn what_is_refused_says_why_and_changes_nothing() {
    let mut world = world();
    let (_, line, _) = world.ready((false, false));
    open(&mut world, line);
    assert_eq!(flush(&mut world, line, 1, &[(1, 10)], 1).status.status, Status::SUCCESS);
    let row = |page, offset, bytes| PageEntry { page: PageId(page), offset, bytes };
    let cases = [
        (0, vec![row(2, 0, 1)], 10, (Status::INVALID_FIELD, 0, 4)),
        (3, vec![row(2, 0, 1)], 10, (Status::COMMAND_SEQUENCE_ERROR, 2, 3)),
        (2, vec![row(2, 0, 6), row(3, 5, 1)], 10, (Status::INVALID_FIELD, 1, 8)),
        (2, vec![row(2, 0, 6), row(3, 6, 5)], 10, (Status::INVALID_FIELD, 1, 9)),
        (2, vec![row(2, 0, 20_001)], 20_001, (Status::INVALID_FIELD, 0, 10)),
        (2, vec![row(2, 1, 0)], 0, (Status::INVALID_FIELD, 0, 11)),
        (2, vec![row(2, 0, 1), row(3, 1, 1), row(2, 2, 1)], 10, (Status::INVALID_FIELD, 2, 12)),
    ];
    for (wsn, rows, bytes, expected) in cases {
        let mut sent = vec![0; rows.len() * PageEntry::BYTES];
        let places = sent.chunks_exact_mut(PageEntry::BYTES);
        rows.iter().zip(places).for_each(|(row, place)| row.encode(place));
        sent.resize(sent.len() + bytes, 9);
        let cqe = world.write(line, Sqe::flush_pages(NSID, flush_of(wsn, rows.len(), bytes)), &sent);
        assert_eq!((cqe.status.status, cqe.dw0, cqe.dw1), expected, "{rows:?}");
    }
    let many = vec![(7, 0); 2049];
    let cqe = flush(&mut world, line, 2, &many, 0);
    assert_eq!((cqe.status.status, cqe.dw1), (Status::INVALID_FIELD, 6), "more rows than a flush has");
    let short = world.write(line, Sqe::flush_pages(NSID, flush_of(2, 1, 10)), &table(&[(2, 10)]));
    assert_eq!(short.status.status, Status::INVALID_SGL_LENGTH, "the buffer is missing");
    let nowhere = world.write(line, staged(2, 1, 10), &table(&[(2, 10)]));
    assert_eq!(nowhere.status.status, Status::COMMAND_SEQUENCE_ERROR, "no stage has the name");
    for opcode in [0x01, 0x02, 0xC2, 0xC4] {
        let cqe = world.ask(line, Sqe { opcode, nsid: NSID, ..Sqe::default() });
        assert_eq!(cqe.status.status, Status::INVALID_OPCODE, "{opcode:#x} is not of this set");
    }
    for opcode in [PageOpcode::OPEN_SESSION, PageOpcode::CLOSE_SESSION, PageOpcode::STAGE_OPEN] {
        let cqe = world.ask(line, Sqe { opcode: opcode.0, nsid: READ_ONLY, ..Sqe::default() });
        assert_eq!(cqe.status.status, Status::WRITE_TO_READ_ONLY);
    }
    // A1h and A3h mean nothing to blocks, and there A3h moves data both ways, which nothing does.
    let blocks = world.read(line, Sqe { opcode: 0xA3, nsid: 1, ..Sqe::default() }, 512);
    assert_eq!(blocks, Err(Status::INVALID_SGL_LENGTH));
    assert_eq!((open(&mut world, line), stat(&mut world, line)), (1, (1, 10)), "nothing was changed");
    world.end();
}
