//! Pages of ELEOS served to an NVMe host over TCP: a flush of many capsules through kills of the server and of the connection.

use crate::namespaces::Queue;
use crate::program::Program;
use crate::serve::Served;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::Entry;
use ocssd_lightnvm::interface::log_structured::{PageEntry, PageId};
use ocssd_nvme::Sqe;
use ocssd_nvme::pages::{FlushPages, PageNamespace, PageOpcode, ReadPage, StagePages};
use ocssd_nvme::sqe::Identify;
use ocssd_nvme::{identify::Cns, pages::CSI};

const SERVE: &str =
    "--nvme-tcp 127.0.0.1:0 --drive x.img --nqn nqn.2014-08.org.nvmexpress:test --target eleos";
const SESSION: u64 = 7;
/// Pages of a flush, and bytes of each: no multiple of anything.
const PAGES: u64 = 200;
const PAGE_BYTES: u32 = 4001;
const STAGE: u32 = 3;

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a flush is short")
}

/// The page table of a flush, and its buffer: page n begins with n, and is `fill` behind that.
fn flush(fill: u8) -> (Vec<u8>, Vec<u8>) {
    let (mut table, mut buffer) = (Vec::new(), Vec::new());
    for page in 0..PAGES {
        let mut row = [0; PageEntry::BYTES];
        PageEntry { page: PageId(page), offset: length(buffer.len()), bytes: PAGE_BYTES }.encode(&mut row);
        table.extend(row);
        buffer.extend(page.to_le_bytes());
        buffer.resize(table.len() / PageEntry::BYTES * usize::try_from(PAGE_BYTES).expect("short"), fill);
    }
    (table, buffer)
}

/// How far the session is.
fn applied(queue: &mut Queue) -> u32 {
    let cqe = queue.ask(Sqe::page_session(PageOpcode::OPEN_SESSION, 1, SESSION));
    assert_eq!(cqe.status.status, Status::SUCCESS);
    cqe.dw0
}

fn collect(queue: &mut Queue, buffer: &[u8], parts: usize) {
    let open = StagePages { stage: STAGE, bytes: length(buffer.len()), offset: 0 };
    assert_eq!(queue.ask(Sqe::page_stage(PageOpcode::STAGE_OPEN, 1, open)).status.status, Status::SUCCESS);
    let mut offset = 0;
    for part in buffer.chunks(256 << 10).take(parts) {
        let append = StagePages { stage: STAGE, bytes: length(part.len()), offset };
        let cqe = queue.write(Sqe::page_stage(PageOpcode::STAGE_APPEND, 1, append), part);
        assert_eq!(cqe.status.status, Status::SUCCESS);
        offset += length(part.len());
    }
}

fn commit(queue: &mut Queue, wsn: u64, table: &[u8], buffer: &[u8]) -> Status {
    let (bytes, rows) = (length(buffer.len()), length(table.len() / PageEntry::BYTES));
    let flush =
        FlushPages { session: SESSION, wsn, bytes, rows, force_unit_access: true, stage: Some(STAGE) };
    queue.write(Sqe::flush_pages(1, flush), table).status.status
}

/// The byte that all pages hold behind their names; `None` if there is no page.
fn found(queue: &mut Queue) -> Option<u8> {
    let mut fills = Vec::new();
    for page in 0..PAGES {
        let (bytes, cqe) = queue.read(Sqe::read_page(1, ReadPage { page, offset: 0, bytes: 4096 }), 4096);
        if cqe.status.status == Status::UNWRITTEN {
            fills.push(None);
            continue;
        }
        assert_eq!((cqe.status.status, cqe.dw0), (Status::SUCCESS, PAGE_BYTES));
        assert_eq!(bytes[..8], page.to_le_bytes(), "it is the page that was asked for");
        assert!(bytes[8..4001].iter().all(|&byte| byte == bytes[8]) && bytes[4001..] == [0; 95]);
        fills.push(Some(bytes[8]));
    }
    assert!(fills.iter().all(|fill| *fill == fills[0]), "a flush is torn: {fills:?}");
    fills[0]
}

#[test]
fn a_flush_of_many_capsules_is_whole_or_absent_whatever_dies() {
    let program = Program::new();
    program.good(
        "format x.img --drive tiny --set payload=bytes --set groups=2 --set pus_per_group=4 --set chunks_per_pu=32 \
         --set sectors_per_chunk=64 --set media.read=2us --set media.program=5us --set media.erase=9us",
    );
    let mut served = Served::start_at(&program, SERVE);
    let (mut admin, mut queue) = Queue::both(&served);
    let identify = Identify { cns: Cns::COMMAND_SET_NAMESPACE, cntid: 0, csi: CSI };
    let limits = PageNamespace::decode(&admin.read(Sqe::identify(1, identify), 4096).0).expect("4096 bytes");
    let (table, buffer) = flush(1);
    assert!(limits.flush_bytes_max >= length(buffer.len()), "{limits:?}");
    assert_eq!((applied(&mut queue), found(&mut queue)), (0, None));
    // The connections die within the flush.
    collect(&mut queue, &buffer, 3);
    drop((admin, queue));
    let (admin, mut queue) = Queue::both(&served);
    assert_eq!((applied(&mut queue), found(&mut queue)), (0, None));
    collect(&mut queue, &buffer, 4);
    assert_eq!(commit(&mut queue, 1, &table, &buffer), Status::SUCCESS);
    assert_eq!(found(&mut queue), Some(1));
    // The server dies within the next.
    let (table, buffer) = flush(2);
    collect(&mut queue, &buffer, 4);
    served.signal("-KILL");
    served.child.wait().expect("it can be waited for");
    drop(admin);

    let served = Served::start_at(&program, SERVE);
    let (_admin, mut queue) = Queue::both(&served);
    assert_eq!((applied(&mut queue), found(&mut queue)), (1, Some(1)));
    collect(&mut queue, &buffer, 4);
    assert_eq!(commit(&mut queue, 2, &table, &buffer), Status::SUCCESS);
    assert_eq!((applied(&mut queue), found(&mut queue)), (2, Some(2)));
    served.stop();
}
