//! Greeting, Connect, properties, discovery.

use crate::nvme_tcp::testing::{HOST, NQN, World, completion, connect, data};
use ocssd_lightnvm::Status;
use ocssd_nvme::fabrics::{
    Connect, ConnectData, ConnectStatus, DISCOVERY_NQN, DYNAMIC_CNTLID, DiscoveryEntry, DiscoveryHeader,
    PropertyGet, PropertySet, offset,
};
use ocssd_nvme::identify::{Cns, IdentifyController};
use ocssd_nvme::log_page::LogPageId;
use ocssd_nvme::sqe::{GetLogPage, Identify};
use ocssd_nvme::{Sqe, Status as NvmeStatus};

fn identify(cns: Cns) -> Sqe {
    Sqe::identify(0, Identify { cns, cntid: 0, csi: 0 })
}

fn log_page(lid: LogPageId, bytes: u64, offset_bytes: u64) -> Sqe {
    let get = GetLogPage { lid, lsp: 0, retain_event: false, dword_count: bytes / 4, offset_bytes, csi: 0 };
    Sqe::get_log_page(0, get)
}

#[test]
fn a_host_comes_as_linux_does_with_and_without_digests() {
    for digests in [(false, false), (true, false), (false, true), (true, true)] {
        let mut world = World::new();
        let (admin, io, cntlid) = world.ready(digests);
        let page = world.read(admin, identify(Cns::CONTROLLER), 4096).unwrap();
        let controller = IdentifyController::decode(&page).unwrap();
        assert_eq!((controller.cntlid, controller.cntrltype, controller.nn), (cntlid, 1, 2));
        assert_eq!((controller.subnqn.as_str(), controller.fabrics.ioccsz), (NQN, (64 + 16384) / 16));
        assert_eq!((controller.kas > 0, controller.maxcmd, controller.fabrics.icdoff), (true, 128, 0));
        assert!(world.ask(io, Sqe::flush(1)).status.status.is_success());
        world.end();
    }
}

#[test]
fn who_may_not_come_is_told_why() {
    let wrong = |offset, in_data| ConnectStatus::InvalidParameters { offset, in_data };
    let any = DYNAMIC_CNTLID;
    let stranger = ConnectData { hostnqn: "nqn.other".to_owned(), ..data(NQN, any) };
    let cases = [
        (connect(0), data("nqn.nothing", any), wrong(256, true)),
        (connect(0), data(NQN, 5), wrong(16, true)),
        (connect(0), stranger, ConnectStatus::InvalidHost),
        (connect(1), data(NQN, 77), wrong(16, true)),
        (Connect { recfmt: 1, ..connect(0) }, data(NQN, any), ConnectStatus::IncompatibleFormat),
        (Connect { sqsize: 128, ..connect(0) }, data(NQN, any), wrong(44, false)),
        (Connect { sqsize: 0, ..connect(0) }, data(NQN, any), wrong(44, false)),
    ];
    for (connect, data, expected) in cases {
        let mut world = World::with([4, 4, 4], &[HOST]);
        let line = world.greeted(false, false);
        let cqe = world.connect(line, connect, &data);
        assert_eq!((cqe.status.status, cqe.dw0), (expected.status(), expected.dw0()), "{connect:?} {data:?}");
        // It may try again.
        assert!(
            world
                .connect(line, super::super::testing::connect(0), &super::super::testing::data(NQN, any))
                .status
                .status
                .is_success()
        );
        world.end();
    }
}

#[test]
fn nothing_but_connect_is_done_before_connect_and_little_before_the_controller_is_ready() {
    let mut world = World::new();
    let line = world.greeted(false, false);
    for sqe in [Sqe::flush(1), identify(Cns::CONTROLLER), Sqe::disconnect()] {
        let status = world.ask(line, sqe).status.status;
        assert!(!status.is_success(), "{sqe:?}");
    }
    assert!(world.connect(line, connect(0), &data(NQN, DYNAMIC_CNTLID)).status.status.is_success());
    assert_eq!(world.read(line, identify(Cns::CONTROLLER), 4096), Err(Status::COMMAND_SEQUENCE_ERROR));
    assert_eq!(world.csts(line), 0);
    world.set_cc(line, 0x46_0001);
    assert!(world.read(line, identify(Cns::CONTROLLER), 4096).is_ok());
    let again = world.connect(line, connect(0), &data(NQN, DYNAMIC_CNTLID));
    assert_eq!(again.status.status, Status::COMMAND_SEQUENCE_ERROR);
    world.end();
}

#[test]
fn properties_are_the_four_there_are() {
    let mut world = World::new();
    let (line, _) = world.admin((false, false), NQN);
    let mut get = |is_long, offset| {
        let cqe = world.ask(line, Sqe::property_get(PropertyGet { is_long, offset }));
        (cqe.status.status, cqe.dw0, cqe.dw1)
    };
    assert_eq!(get(true, offset::CAP), (Status::SUCCESS, 0x1401_007F, 1 << 5 | 1 << 11));
    assert_eq!(get(false, offset::VS), (Status::SUCCESS, 0x0002_0000, 0));
    assert_eq!(get(false, offset::CC), (Status::SUCCESS, 0x46_0061, 0));
    for (is_long, offset) in [(false, offset::CAP), (true, offset::VS), (false, 0x10), (false, u32::MAX)] {
        assert_eq!(get(is_long, offset).0, Status::INVALID_FIELD, "{offset:x}");
    }
    let set = |offset, value| Sqe::property_set(PropertySet { is_long: false, offset, value });
    for sqe in [set(offset::CSTS, 1), set(offset::CC, 1 << 32), set(0x20, 0)] {
        assert_eq!(world.ask(line, sqe).status.status, NvmeStatus::INVALID_FIELD);
    }
    world.end();
}

#[test]
fn discovery_tells_where_the_subsystem_is_in_two_steps() {
    let mut world = World::new();
    let (line, _) = world.admin((false, false), DISCOVERY_NQN);
    let page = world.read(line, identify(Cns::CONTROLLER), 4096).unwrap();
    let controller = IdentifyController::decode(&page).unwrap();
    assert_eq!((controller.cntrltype, controller.subnqn.as_str()), (2, DISCOVERY_NQN));
    let header = world.read(line, log_page(LogPageId::DISCOVERY, 1024, 0), 1024).unwrap();
    assert_eq!(DiscoveryHeader::decode(&header).unwrap().count, 1);
    let whole = world.read(line, log_page(LogPageId::DISCOVERY, 2048, 0), 2048).unwrap();
    let entry = DiscoveryEntry::decode(&whole[1024..]).unwrap();
    assert_eq!((entry.trtype, entry.subnqn.text(), entry.traddr.text()), (3, NQN.into(), "127.0.0.1".into()));
    assert_eq!((entry.trsvcid.text(), entry.subtype, entry.cntlid), ("4420".into(), 2, DYNAMIC_CNTLID));
    assert_eq!(world.read(line, identify(Cns::ACTIVE_NAMESPACES), 4096), Err(Status::INVALID_FIELD));
    let io = world.greeted(false, false);
    let refused = world.connect(io, connect(1), &data(DISCOVERY_NQN, 1));
    assert_eq!(
        refused.status.status,
        ConnectStatus::InvalidParameters { offset: 42, in_data: false }.status()
    );
    world.end();
}

#[test]
fn connect_is_judged_with_all_of_its_data_and_may_be_asked_for_it() {
    use crate::nvme_tcp::host::{Answer, transported};
    let mut world = World::new();
    let line = world.greeted(true, true);
    let short = world.write(line, Sqe::connect(connect(0)), &[0; 1000]);
    assert_eq!(short.status.status, Status::INVALID_SGL_LENGTH);
    let mut bytes = data(NQN, DYNAMIC_CNTLID).encode();
    let pdu = world.lines[line].host.command(&transported(Sqe::connect(connect(0)), 1024), &[]);
    let asked = world.say(line, &pdu);
    let [Answer::Ask { cid, tag, offset: 0, bytes: 1024 }] = asked[..] else { panic!("{asked:?}") };
    bytes[512] = 0xFF;
    let pdu = world.lines[line].host.data(cid, tag, 0, &bytes, true);
    let cqe = completion(&world.say(line, &pdu));
    let wrong_name = ConnectStatus::InvalidParameters { offset: 512, in_data: true };
    assert_eq!((cqe.status.status, cqe.dw0), (wrong_name.status(), wrong_name.dw0()));
    world.end();
}
