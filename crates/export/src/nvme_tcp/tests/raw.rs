//! The raw namespace over a drive that keeps bytes and nothing else.

use crate::nvme_tcp::host::Answer;
use crate::nvme_tcp::testing::World;
use crate::raw_drive::{RawBuffers, RawBusy, RawDrive, RawShape};
use crate::raw_lane::RawLane;
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_nvme::identify::{
    AtomicSizes, Cns, DeallocatedRead, IdentifyNamespace, LbaDataFormat, NamespaceIds, PreferredSizes,
};
use ocssd_nvme::log_page::LogPageId;
use ocssd_nvme::ocssd20::Claim;
use ocssd_nvme::sqe::{GetLogPage, Identify, ReadWrite};
use ocssd_nvme::{Cqe, HostAddress, IoOpcode, Lba, Sqe, StatusField};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// What the drive was asked: opcode, namespace, addresses.
type Asked = Rc<RefCell<Vec<(u8, u32, Vec<u64>)>>>;

/// Takes two commands at a time.
struct Fake {
    asked: Asked,
    /// Metadata of writes.
    written: Rc<RefCell<Vec<u8>>>,
    open: VecDeque<u16>,
    /// How commands end.
    status: StatusField,
    events: VecDeque<u32>,
}

fn success(cid: u16) -> Cqe {
    Cqe { dw0: 0, dw1: 0, sqhd: 0, sqid: 0, cid, phase: false, status: StatusField::SUCCESS }
}

impl RawDrive for Fake {
    fn identify_namespace(&self) -> IdentifyNamespace {
        IdentifyNamespace {
            nsze: 1 << 20,
            ncap: 1 << 19,
            nuse: 0,
            nsfeat: 4,
            lbaf: vec![LbaDataFormat { ms_bytes: 16, lbads: 12, rp: 0 }],
            format_index: 0,
            extended_lba: false,
            mc: 2,
            nmic: 0,
            nsattr: 0,
            dpc: 0,
            dps: 0,
            deallocated_read: DeallocatedRead::Zeros,
            atomic: AtomicSizes::default(),
            preferred: PreferredSizes::default(),
            nvmcap_bytes: 0,
            nguid: [9; 16],
            eui64: [9; 8],
            lightnvm: true,
        }
    }

    fn shape(&self) -> RawShape {
        RawShape { sector_bytes: 4096, metadata_bytes: 16, chunk_stride: 1 << 12 }
    }

    fn admin(&mut self, _: Nanos, sqe: &Sqe, data: &mut [u8]) -> Cqe {
        self.asked.borrow_mut().push((sqe.opcode, sqe.nsid, Vec::new()));
        data.fill(2);
        success(sqe.cid)
    }

    fn submit(&mut self, _: Nanos, sqe: &Sqe, buffers: RawBuffers<'_>) -> Result<(), RawBusy> {
        let RawBuffers { data, metadata, addresses } = buffers;
        if self.open.len() == 2 {
            return Err(RawBusy);
        }
        self.asked.borrow_mut().push((sqe.opcode, sqe.nsid, addresses.to_vec()));
        if sqe.opcode & 3 == 2 {
            data.fill(0x5A);
            metadata.fill(0xA5);
        }
        self.written.borrow_mut().extend_from_slice(if sqe.opcode & 3 == 1 { metadata } else { &[] });
        self.open.push_back(sqe.cid);
        Ok(())
    }

    fn poll(&mut self, _: Nanos) -> Option<Cqe> {
        let cid = self.open.pop_front()?;
        Some(Cqe { dw0: 1, dw1: 2, status: self.status, ..success(cid) })
    }

    fn poll_event(&mut self) -> Option<u32> {
        self.events.pop_front()
    }

    fn failure(&self) -> Option<&str> {
        None
    }

    fn deadline(&self) -> Option<Nanos> {
        None
    }

    fn sync(&mut self) -> Result<(), String> {
        Ok(())
    }
}

fn world(runs: bool) -> (World, Asked) {
    world_of(runs, StatusField::SUCCESS)
}

fn world_of(runs: bool, status: StatusField) -> (World, Asked) {
    let mut world = World::new();
    let asked = Asked::default();
    let (written, open, events) = Default::default();
    let fake = Fake { asked: Rc::clone(&asked), written, open, status, events };
    world.dispatcher.raw = Some(RawLane::new(Box::new(fake), runs));
    (world, asked)
}

fn scalar(slba: u64, block_count: u32) -> ReadWrite {
    ReadWrite { slba: Lba(slba), block_count, limited_retry: false, force_unit_access: false }
}

/// A vector command of `count` addresses that begins at `first`.
fn vector(opcode: IoOpcode, first: u32, count: u32) -> Sqe {
    Sqe { opcode: opcode.0, nsid: 3, cdw10: first, cdw12: count - 1, ..Sqe::default() }
}

#[test]
fn the_raw_namespace_is_the_one_after_the_exports_and_says_what_it_is() {
    let (mut world, asked) = world(false);
    let (admin, _, _) = world.ready((false, false));
    let identify = |nsid, cns, csi| Sqe::identify(nsid, Identify { cns, cntid: 0, csi });
    let ids = world.read(admin, identify(3, Cns::NAMESPACE_IDS, 0), 4096).unwrap();
    assert_eq!(NamespaceIds::decode(&ids).unwrap().csi, Some(0x30));
    let found = world.read(admin, identify(3, Cns::NAMESPACE, 0), 4096).unwrap();
    let found = IdentifyNamespace::decode(&found).unwrap();
    assert_eq!((found.nsze, found.mc, found.format().ms_bytes, found.lightnvm), (1 << 20, 0, 0, true));
    assert!(world.read(admin, identify(3, Cns::COMMAND_SET_NAMESPACE, 0x30), 4096).is_ok());
    assert!(world.read(admin, identify(0, Cns::COMMAND_SET_CONTROLLER, 0x30), 4096).is_ok());
    let lid = LogPageId::CHUNK_INFORMATION;
    let get = GetLogPage { lid, lsp: 0, retain_event: false, dword_count: 16, offset_bytes: 0, csi: 0 };
    assert_eq!(world.read(admin, Sqe::get_log_page(3, get), 64), Ok(vec![2; 64]));
    assert_eq!(world.read(admin, Sqe::geometry(3), 4096), Ok(vec![2; 4096]));
    assert_eq!(world.read(admin, Sqe::geometry(1), 4096), Err(Status::INVALID_OPCODE));
    assert_eq!(*asked.borrow(), [(0x02, 1, vec![]), (0xE2, 1, vec![])], "its own number is 1");
    world.end();
}

#[test]
fn what_a_capsule_can_carry_reaches_the_drive_and_nothing_else() {
    let (mut world, asked) = world(false);
    let (_, line, _) = world.ready((true, true));
    assert!(world.write(line, Sqe::write(3, scalar(0, 4)), &[1; 16384]).status.status.is_success());
    assert_eq!(world.read(line, Sqe::read(3, scalar(0, 1)), 4096), Ok(vec![0x5A; 4096]));
    let cqe = world.write(line, vector(IoOpcode::VECTOR_WRITE, 8, 1), &[1; 4096]);
    assert_eq!((cqe.status.status, cqe.dw0, cqe.dw1), (Status::SUCCESS, 1, 2), "the bitmap travels");
    for sqe in [vector(IoOpcode::VECTOR_RESET, 0, 1), vector(IoOpcode::VECTOR_COPY, 0, 1), Sqe::flush(3)] {
        assert!(world.ask(line, sqe).status.status.is_success(), "{sqe:?}");
    }
    let ranges = [0; 4096];
    assert!(
        world
            .write(line, Sqe { cdw10: 0, cdw11: 4, opcode: 9, nsid: 3, ..Sqe::default() }, &ranges)
            .status
            .status
            .is_success()
    );
    let opcodes: Vec<u8> = asked.borrow().iter().map(|(opcode, ..)| *opcode).collect();
    assert_eq!(opcodes, [0x01, 0x02, 0x91, 0x90, 0x93, 0x00, 0x09]);
    asked.borrow_mut().clear();
    assert_eq!(world.read(line, vector(IoOpcode::VECTOR_READ, 0, 4), 16384), Err(Status::INVALID_FIELD));
    let described = vector(IoOpcode::VECTOR_RESET, 0, 1).with_mptr(HostAddress(4096));
    let refused = [
        (vector(IoOpcode::VECTOR_RESET, 0, 2), Status::INVALID_FIELD),
        (described, Status::INVALID_FIELD),
        (Sqe { opcode: IoOpcode::WRITE_ZEROES.0, nsid: 3, ..Sqe::default() }, Status::INVALID_OPCODE),
        (Sqe::write(3, scalar(0, 1)), Status::INVALID_SGL_LENGTH),
    ];
    for (sqe, expected) in refused {
        assert_eq!(world.ask(line, sqe).status.status, expected, "{sqe:?}");
    }
    assert!(asked.borrow().is_empty());
    world.end();
}

#[test]
fn by_its_own_convention_several_addresses_are_those_that_follow() {
    let (mut world, asked) = world(true);
    let (_, line, _) = world.ready((false, false));
    assert!(world.write(line, vector(IoOpcode::VECTOR_WRITE, 8, 4), &[1; 16384]).status.status.is_success());
    assert!(world.read(line, vector(IoOpcode::VECTOR_READ, 8, 2), 8192).is_ok());
    assert!(world.ask(line, vector(IoOpcode::VECTOR_RESET, 1 << 12, 3)).status.status.is_success());
    assert_eq!(world.ask(line, vector(IoOpcode::VECTOR_COPY, 0, 2)).status.status, Status::INVALID_FIELD);
    let expected =
        [(0x91, 1, vec![8, 9, 10, 11]), (0x92, 1, vec![8, 9]), (0x90, 1, vec![1 << 12, 2 << 12, 3 << 12])];
    assert_eq!(*asked.borrow(), expected);
    world.end();
}

/// Two entries failed, as the fake's bitmap says: the others' data come before the completion that says so.
#[test]
fn a_vector_read_that_failed_in_part_brings_the_data_of_the_rest() {
    let (mut world, _) = world_of(true, StatusField::retry(Status::UNRECOVERED_READ));
    let (_, line, _) = world.ready((false, false));
    let mut answers = |sqe: Sqe, bytes: usize| {
        let sqe = crate::nvme_tcp::host::transported(sqe.with_cid(1), bytes);
        let command = world.lines[line].host.command(&sqe, &[]);
        world.say(line, &command)
    };
    let found = answers(vector(IoOpcode::VECTOR_READ, 8, 3), 3 * 4096);
    let [Answer::Data { bytes, .. }, Answer::Completion(cqe)] = &found[..] else { panic!("{found:?}") };
    assert!(bytes.len() == 3 * 4096 && bytes.iter().all(|&byte| byte == 0x5A));
    assert_eq!((cqe.status.status, cqe.dw0, cqe.dw1), (Status::UNRECOVERED_READ, 1, 2));
    // All entries failed, and a scalar read, whose bits mean nothing.
    for (sqe, bytes) in [(vector(IoOpcode::VECTOR_READ, 8, 2), 8192), (Sqe::read(3, scalar(0, 3)), 3 * 4096)]
    {
        let found = answers(sqe, bytes);
        assert!(matches!(found[..], [Answer::Completion(_)]), "{found:?}");
    }
    world.end();
}

/// Whoever claims it has lists and metadata; others have nothing until the association of the first is over.
#[test]
fn a_claimed_drive_is_one_hosts_and_metadata_travels() {
    let (mut world, asked) = world(false);
    let (admin, first, _) = world.ready((false, false));
    let (_, second, _) = world.ready((true, true));
    let claim = |world: &mut World, line, claim| world.ask(line, Sqe::claim_drive(3, claim));
    let cqe = claim(&mut world, first, Claim::Take);
    assert_eq!((cqe.status.status, cqe.dw0), (Status::SUCCESS, 16), "bytes of metadata");
    assert_eq!(claim(&mut world, first, Claim::Take).status.status, Status::SUCCESS, "twice is once");
    let found = world.read(first, vector(IoOpcode::VECTOR_READ, 8, 2), 2 * 4112).expect("it is ours");
    assert!(found[..8192].iter().all(|&byte| byte == 0x5A) && found[8192..].iter().all(|&byte| byte == 0xA5));
    assert_eq!(world.read(first, Sqe::read(3, scalar(0, 1)), 4096), Err(Status::INVALID_SGL_LENGTH));
    assert!(world.write(first, Sqe::write(3, scalar(0, 1)), &[1; 4112]).status.status.is_success());
    assert_eq!(*asked.borrow(), [(0x92, 1, vec![8, 9]), (0x01, 1, vec![])]);
    let conflict = Status::RESERVATION_CONFLICT;
    assert_eq!(claim(&mut world, second, Claim::Take).status.status, conflict);
    assert_eq!(claim(&mut world, second, Claim::GiveUp).status.status, conflict);
    assert_eq!(world.read(second, Sqe::read(3, scalar(0, 1)), 4096), Err(conflict));
    let unknown = Sqe { cdw10: 2, ..Sqe::claim_drive(3, Claim::Take) };
    assert_eq!(world.ask(first, unknown).status.status, Status::INVALID_FIELD);
    world.hang_up(admin);
    assert_eq!(world.read(second, Sqe::read(3, scalar(0, 1)), 4096), Ok(vec![0x5A; 4096]), "as before");
    assert_eq!(claim(&mut world, second, Claim::Take).status.status, Status::SUCCESS);
    assert_eq!(claim(&mut world, second, Claim::GiveUp).status.status, Status::SUCCESS);
    assert!(world.read(second, Sqe::read(3, scalar(0, 1)), 4096).is_ok());
    world.end();
}

/// Data that was asked for before the claim comes too late.
#[test]
fn a_write_on_its_way_does_not_reach_a_drive_that_was_claimed_meanwhile() {
    let (mut world, asked) = world(false);
    let (_, first, _) = world.ready((false, false));
    let (_, second, _) = world.ready((false, false));
    let (cid, tag) = world.asked(first, Sqe::write(3, scalar(0, 8)), 32768);
    assert!(world.ask(second, Sqe::claim_drive(3, Claim::Take)).status.status.is_success());
    let pdu = world.lines[first].host.data(cid, tag, 0, &[1; 32768], true);
    let cqe = crate::nvme_tcp::testing::completion(&world.say(first, &pdu));
    assert_eq!((cqe.status.status, asked.borrow().len()), (Status::RESERVATION_CONFLICT, 0));
    world.end();
}

#[test]
fn a_busy_drive_holds_up_its_own_commands_and_answers_all() {
    let (mut world, _) = world(false);
    let (_, line, _) = world.ready((false, false));
    let mut bytes = Vec::new();
    for cid in 0..20 {
        let sqe = crate::nvme_tcp::host::transported(Sqe::read(3, scalar(0, 1)).with_cid(cid), 4096);
        bytes.extend(world.lines[line].host.command(&sqe, &[]));
    }
    // Each answer has DW0 and DW1, so that a completion follows the data.
    assert_eq!(world.say(line, &bytes).len(), 40);
    world.end();
}
