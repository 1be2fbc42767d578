//! Namespaces of zones: what is said of them, every command, every refusal, reports, and changed zones.

use crate::changing_zones::zones_that_change;
use crate::model_targets::{reference, zones};
use crate::nvme_tcp::host::{Answer, transported};
use crate::nvme_tcp::testing::{NQN, World, completion};
use ocssd_base::Prng;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::zoned::{
    DescribedZone, ZoneAction, ZoneArea, ZoneDescriptor, ZoneGeometry, ZoneState, ZonedTarget,
};
use ocssd_lightnvm::interface::{AnyTarget, Entry};
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::identify::{
    Cns, DeallocatedRead, IdentifyController, IdentifyNamespace, NamespaceIds, NamespaceList,
};
use ocssd_nvme::log_page::{AsyncEvent, CommandEffects, EffectsLog, LogPageId};
use ocssd_nvme::sqe::{DatasetManagement, GetLogPage, Identify, ReadWrite, SetFeatures};
use ocssd_nvme::zns::{
    ChangedZoneList, OZCS_AREAS, ReportHeader, ZnsController, ZnsNamespace, ZoneAppend,
    ZoneManagementReceive, ZoneManagementSend, ZoneReceiveAction, ZoneSendAction,
};
use ocssd_nvme::{IoOpcode, Lba, Sqe};
use ocssd_sim::model::target::ReferenceTarget;
use ocssd_sim::zoned::ZonedModel;

/// The namespace of zones, and the one that is not written.
const NSID: u32 = 3;
const READ_ONLY: u32 = 4;

fn world() -> World {
    World::beside(vec![("z", zones()), ("z-ro", zones())], [8, 4, 4], &[])
}

/// Areas of eight blocks that are committed by four, in two zones at most.
const AREA: ZoneArea = ZoneArea { blocks: 8, granularity: 4, areas_max: 2 };

fn zones_with_areas() -> AnyTarget {
    let geometry = ZoneGeometry { area: Some(AREA), ..reference().zone_geometry() };
    let target = ReferenceTarget::new(ZonedModel::new(geometry), &Prng::new(1));
    AnyTarget::from(Box::new(target) as Box<dyn ZonedTarget>)
}

fn io(slba: u64, block_count: u32) -> ReadWrite {
    ReadWrite { slba: Lba(slba), block_count, limited_retry: false, force_unit_access: false }
}

fn append(zslba: u64, block_count: u32) -> Sqe {
    let zslba = Lba(zslba);
    let append =
        ZoneAppend { zslba, block_count, limited_retry: false, force_unit_access: true, remaps_tag: false };
    Sqe::zone_append(NSID, append)
}

fn send(action: ZoneAction, slba: u64) -> Sqe {
    let action = ZoneSendAction::Manage(action);
    Sqe::zone_management_send(NSID, ZoneManagementSend { slba: Lba(slba), action, all: false, option: false })
}

fn send_all(action: ZoneAction) -> Sqe {
    Sqe { cdw13: send(action, 0).cdw13 | 1 << 8, ..send(action, 5) }
}

fn receive(slba: u64, bytes: u64, filter: u8, partial: bool) -> Sqe {
    let (slba, action) = (Lba(slba), ZoneReceiveAction::Report);
    let receive = ZoneManagementReceive { slba, dword_count: bytes / 4, action, filter, partial };
    Sqe::zone_management_receive(NSID, receive)
}

fn identify(nsid: u32, cns: Cns, csi: u8) -> Sqe {
    Sqe::identify(nsid, Identify { cns, cntid: 0, csi })
}

fn log(nsid: u32, lid: LogPageId, csi: u8, retain_event: bool) -> Sqe {
    let get = GetLogPage { lid, lsp: 0, retain_event, dword_count: 1024, offset_bytes: 0, csi };
    Sqe::get_log_page(nsid, get)
}

fn status(world: &mut World, line: usize, sqe: Sqe) -> Status {
    world.ask(line, sqe).status.status
}

fn write(world: &mut World, line: usize, slba: u64, blocks: u32, fill: u8) -> Status {
    let data = vec![fill; usize::try_from(blocks).expect("few") * 4096];
    world.write(line, Sqe::write(NSID, io(slba, blocks)), &data).status.status
}

fn zeroes(slba: u64, blocks: u32) -> Sqe {
    Sqe { opcode: IoOpcode::WRITE_ZEROES.0, ..Sqe::write(NSID, io(slba, blocks)) }
}

/// A report: its number of zones, and the descriptors.
fn report(world: &mut World, line: usize, sqe: Sqe, bytes: usize) -> (u64, Vec<ZoneDescriptor>) {
    let data = world.read(line, sqe, bytes).expect("a report");
    let header = ReportHeader::decode(&data).expect("64 bytes");
    let zones = data[64..].chunks_exact(64).map_while(ZoneDescriptor::decode).collect();
    (header.zone_count, zones)
}

/// As many zeroes as a command may move (WZSL) go where a write goes, though the host sends none.
#[test]
fn zeroes_are_written_at_the_write_pointer_and_nowhere_else() {
    let mut world = world();
    let (admin, line, _) = world.ready((true, true));
    let limits = world.read(admin, identify(0, Cns::COMMAND_SET_CONTROLLER, 0), 4096).expect("limits");
    assert_eq!((limits[0], limits[1]), (0, 6), "VSL, WZSL: 64 pages");
    assert_eq!(write(&mut world, line, 0, 2, 7), Status::SUCCESS);
    assert_eq!(status(&mut world, line, zeroes(1, 3)), Status::ZONE_INVALID_WRITE, "it was written");
    assert_eq!(status(&mut world, line, zeroes(2, 65)), Status::INVALID_FIELD, "longer than WZSL");
    assert_eq!(status(&mut world, line, zeroes(2, 47)), Status::ZONE_BOUNDARY_ERROR, "behind the capacity");
    assert_eq!(status(&mut world, line, zeroes(2, 3)), Status::SUCCESS);
    assert_eq!(write(&mut world, line, 5, 1, 9), Status::SUCCESS, "it goes on behind them");
    let data = world.read(line, Sqe::read(NSID, io(0, 6)), 6 * 4096).expect("it was written");
    assert!(
        data.chunks(4096).zip([7, 7, 0, 0, 0, 9]).all(|(block, fill)| block.iter().all(|&byte| byte == fill))
    );
    let refused = Sqe { nsid: READ_ONLY, ..zeroes(0, 1) };
    assert_eq!(status(&mut world, line, refused), Status::WRITE_TO_READ_ONLY);
    world.end();
}

#[test]
fn a_namespace_says_what_its_zones_are() {
    let mut world = world();
    let (line, _) = world.admin((false, false), NQN);
    let mut ask = |sqe| world.read(line, sqe, 4096);
    let ids = NamespaceIds::decode(&ask(identify(NSID, Cns::NAMESPACE_IDS, 0)).unwrap()).unwrap();
    assert_eq!(ids.csi, Some(2));
    let blocks = IdentifyNamespace::decode(&ask(identify(NSID, Cns::NAMESPACE, 0)).unwrap()).unwrap();
    assert_eq!((blocks.nsze, blocks.ncap, blocks.format().block_bytes()), (512, 384, Some(4096)));
    assert_eq!((blocks.deallocated_read, blocks.nsattr), (DeallocatedRead::Zeros, 0));
    let zones = ask(identify(NSID, Cns::COMMAND_SET_NAMESPACE, 2)).unwrap();
    let zones = ZnsNamespace::decode(&zones).unwrap();
    assert_eq!((zones.active_max, zones.open_max, zones.formats[0].zone_size), (Some(4), Some(3), 64));
    assert_eq!((zones.zoc, zones.ozcs, zones.formats[0].extension_units), (0, 0, 1), "64 bytes");
    let controller = ask(identify(0, Cns::COMMAND_SET_CONTROLLER, 2)).unwrap();
    assert_eq!(ZnsController::decode(&controller).unwrap().zasl, 3, "8 blocks of 4 KiB");
    let list = |bytes: Vec<u8>| NamespaceList::decode(&bytes).unwrap().nsids().to_vec();
    assert_eq!(list(ask(identify(0, Cns::COMMAND_SET_ACTIVE_NAMESPACES, 2)).unwrap()), [3, 4]);
    assert_eq!(list(ask(identify(0, Cns::ACTIVE_NAMESPACES, 0)).unwrap()), [1, 2, 3, 4]);
    assert_eq!(ask(identify(0, Cns::COMMAND_SETS, 0)).unwrap()[0], 0b101);
    let controller = ask(identify(0, Cns::CONTROLLER, 0)).unwrap();
    assert_eq!(IdentifyController::decode(&controller).unwrap().oaes, 1 << 27);
    let effects = ask(log(0, LogPageId::COMMAND_EFFECTS, 2, false)).unwrap();
    let effects = EffectsLog::decode(&effects).unwrap();
    assert_eq!([0x01, 0x08, 0x79, 0x7D].map(|opcode| effects.io[opcode]), [CommandEffects::CHANGES; 4]);
    assert_eq!((effects.io[0x7A], effects.io[0x0C]), (CommandEffects::SUPPORTED, CommandEffects::default()));
    assert_eq!(ask(identify(1, Cns::COMMAND_SET_NAMESPACE, 2)), Err(Status::INVALID_FIELD), "it has blocks");
    assert_eq!(ask(identify(NSID, Cns::COMMAND_SET_NAMESPACE, 1)), Err(Status::INVALID_FIELD));
    world.end();
}

#[test]
fn a_zone_is_written_in_order_and_read_and_appends_say_where_they_are() {
    let mut world = world();
    let (_, line, _) = world.ready((true, true));
    assert_eq!(write(&mut world, line, 64, 2, 7), Status::SUCCESS);
    assert_eq!(write(&mut world, line, 65, 1, 8), Status::ZONE_INVALID_WRITE);
    assert_eq!(write(&mut world, line, 600, 1, 8), Status::LBA_OUT_OF_RANGE);
    let cqe = world.write(line, append(64, 2), &[9; 8192]);
    assert_eq!((cqe.status.status, cqe.dw0, cqe.dw1), (Status::SUCCESS, 66, 0));
    let data = world.read(line, Sqe::read(NSID, io(65, 4)), 16384).expect("written, and a block that is not");
    assert_eq!(data, [[7; 4096], [9; 4096], [9; 4096], [0; 4096]].concat());
    let compare = |fill| (Sqe { opcode: 5, ..Sqe::read(NSID, io(64, 1)) }, [fill; 4096]);
    for (fill, expected) in [(7, Status::SUCCESS), (8, Status::COMPARE_FAILURE)] {
        let (sqe, data) = compare(fill);
        assert_eq!(world.write(line, sqe, &data).status.status, expected);
    }
    assert_eq!(world.write(line, append(65, 1), &[1; 4096]).status.status, Status::INVALID_FIELD);
    assert_eq!(world.read(line, Sqe::read(NSID, io(126, 4)), 16384), Err(Status::ZONE_BOUNDARY_ERROR));
    assert_eq!(status(&mut world, line, Sqe::flush(NSID)), Status::SUCCESS);
    let advice =
        DatasetManagement { range_count: 1, deallocate: true, integral_read: false, integral_write: false };
    let ranges = world.write(line, Sqe::dataset_management(NSID, advice), &[0; 4096]);
    assert_eq!(ranges.status.status, Status::SUCCESS, "advice");
    world.end();
}

#[test]
fn a_zone_ends_at_its_capacity_and_every_state_has_its_status() {
    let mut world = world();
    let (_, line, _) = world.ready((false, false));
    for slba in (0..48).step_by(4) {
        assert_eq!(write(&mut world, line, slba, 4, 1), Status::SUCCESS);
    }
    assert_eq!(write(&mut world, line, 48, 1, 1), Status::ZONE_IS_FULL);
    let mut ask = |sqe| status(&mut world, line, sqe);
    assert_eq!(ask(send(ZoneAction::Open, 0)), Status::INVALID_ZONE_TRANSITION);
    assert_eq!(ask(send(ZoneAction::Finish, 0)), Status::SUCCESS, "it is full");
    assert_eq!(ask(send(ZoneAction::Close, 64)), Status::INVALID_ZONE_TRANSITION, "it is empty");
    assert_eq!(ask(send(ZoneAction::Offline, 64)), Status::INVALID_ZONE_TRANSITION);
    for zone in 1..4 {
        assert_eq!(ask(send(ZoneAction::Open, zone * 64)), Status::SUCCESS);
    }
    assert_eq!(ask(send(ZoneAction::Open, 4 * 64)), Status::TOO_MANY_OPEN_ZONES);
    assert_eq!(ask(send(ZoneAction::Close, 64)), Status::SUCCESS);
    assert_eq!(ask(send(ZoneAction::Reset, 65)), Status::INVALID_FIELD, "no zone begins there");
    assert_eq!(ask(send(ZoneAction::Reset, 512)), Status::LBA_OUT_OF_RANGE);
    assert_eq!(ask(send_all(ZoneAction::Reset)), Status::SUCCESS);
    let (count, empty) = report(&mut world, line, receive(0, 4096, 1, false), 4096);
    assert_eq!((count, empty.len()), (8, 8), "all are empty again");
    // More active ones than there may be: closed zones stay active.
    for zone in 0..4 {
        assert_eq!(write(&mut world, line, zone * 64, 1, 2), Status::SUCCESS);
        assert_eq!(status(&mut world, line, send(ZoneAction::Close, zone * 64)), Status::SUCCESS);
    }
    assert_eq!(write(&mut world, line, 4 * 64, 1, 2), Status::TOO_MANY_ACTIVE_ZONES);
    world.end();
}

#[test]
fn a_report_begins_where_it_is_asked_and_counts_what_it_is_asked_to() {
    let mut world = world();
    let (_, line, _) = world.ready((false, true));
    assert_eq!(write(&mut world, line, 128, 3, 5), Status::SUCCESS);
    let (count, zones) = report(&mut world, line, receive(64, 64 + 3 * 64 + 63, 0, false), 4096);
    assert_eq!((count, zones.len()), (7, 3), "all behind it, and as many as have room");
    let open = zones[1];
    assert_eq!((open.state, open.start, open.capacity), (ZoneState::ImplicitlyOpened, 128, 48));
    assert_eq!((open.write_pointer, zones[0].write_pointer), (Some(131), Some(64)));
    let (count, zones) = report(&mut world, line, receive(64, 64 + 3 * 64, 0, true), 4096);
    assert_eq!((count, zones.len()), (3, 3), "partial");
    for (filter, expected) in [(1, 7), (2, 1), (3, 0), (5, 0), (7, 0)] {
        let (count, zones) = report(&mut world, line, receive(0, 4096, filter, true), 4096);
        assert_eq!((count, zones.len()), (expected, usize::try_from(expected).unwrap()), "filter {filter}");
    }
    // No room but for the number.
    let (count, zones) = report(&mut world, line, receive(0, 64, 0, false), 64);
    assert_eq!((count, zones.len()), (8, 0));
    let (count, _) = report(&mut world, line, receive(0, 64, 0, true), 64);
    assert_eq!(count, 0);
    let cases = [
        (receive(512, 4096, 0, false), 4096, Status::LBA_OUT_OF_RANGE),
        (receive(0, 4096, 8, false), 4096, Status::INVALID_FIELD),
        (receive(0, 60, 0, false), 4096, Status::INVALID_FIELD),
        (receive(0, 4096, 0, false), 512, Status::INVALID_SGL_LENGTH),
        (Sqe { cdw13: 2, ..receive(0, 4096, 0, false) }, 4096, Status::INVALID_FIELD),
    ];
    for (sqe, bytes, expected) in cases {
        assert_eq!(world.read(line, sqe, bytes), Err(expected), "{sqe:?}");
    }
    world.end();
}

#[test]
fn an_extension_is_set_while_a_zone_is_empty_and_an_extended_report_shows_it() {
    let mut world = world();
    let (_, line, _) = world.ready((false, false));
    let set = |slba| Sqe { cdw13: 0x10, ..send(ZoneAction::Open, slba) };
    let extension: Vec<u8> = (0..64).collect();
    let cases = [
        (set(65), &extension[..], Status::INVALID_FIELD),
        (set(512), &extension, Status::LBA_OUT_OF_RANGE),
        (set(64), &extension[..60], Status::INVALID_SGL_LENGTH),
        (Sqe { nsid: READ_ONLY, ..set(64) }, &extension, Status::WRITE_TO_READ_ONLY),
        (Sqe { nsid: 1, ..set(64) }, &extension, Status::INVALID_OPCODE),
        (set(64), &extension, Status::SUCCESS),
        (set(64), &extension, Status::INVALID_ZONE_TRANSITION),
        (set(128), &[7; 4096], Status::SUCCESS),
    ];
    for (sqe, data, expected) in cases {
        assert_eq!(world.write(line, sqe, data).status.status, expected, "{sqe:?} with {} bytes", data.len());
    }
    assert_eq!(status(&mut world, line, set(0)), Status::INVALID_SGL_LENGTH, "without data");
    let extended =
        |slba, bytes| Sqe { cdw13: receive(0, 4, 4, true).cdw13 | 1, ..receive(slba, bytes, 4, true) };
    let data = world.read(line, extended(0, 4096), 4096).expect("a report");
    assert_eq!(ReportHeader::decode(&data).expect("64 bytes").zone_count, 2, "the closed ones");
    let zones: Vec<_> = data[64..].chunks_exact(128).take(2).map(DescribedZone::decode).collect();
    for (zone, (start, first, last)) in zones.into_iter().zip([(64, 0, 63), (128, 7, 7)]) {
        let DescribedZone { zone, extension } = zone.expect("a zone");
        assert_eq!((zone.start, zone.has_extension, zone.state), (start, true, ZoneState::Closed));
        assert_eq!((extension.0[0], extension.0[63]), (first, last));
    }
    assert!(data[64 + 2 * 128..].iter().all(|&byte| byte == 0), "nothing of another is sent");
    let (_, plain) = report(&mut world, line, receive(64, 128, 0, true), 128);
    assert!(plain[0].has_extension, "ZDEV");
    // Room for half a zone is room for none.
    let data = world.read(line, extended(0, 128), 128).expect("a report");
    assert_eq!(data, [0; 128]);
    assert_eq!(status(&mut world, line, send_all(ZoneAction::Reset)), Status::SUCCESS);
    assert_eq!(report(&mut world, line, receive(0, 4096, 1, false), 4096).0, 8, "closed ones are reset");
    let (_, plain) = report(&mut world, line, receive(64, 128, 0, true), 128);
    assert_eq!((plain[0].has_extension, plain[0].state), (false, ZoneState::Empty));
    world.end();
}

#[test]
fn a_zone_with_an_area_takes_writes_in_any_order_until_they_are_committed() {
    let mut world =
        World::beside(vec![("z", zones_with_areas()), ("z-ro", zones_with_areas())], [8, 4, 4], &[]);
    let (admin, line, _) = world.ready((false, false));
    let zones = world.read(admin, identify(NSID, Cns::COMMAND_SET_NAMESPACE, 2), 4096).expect("zones");
    let zones = ZnsNamespace::decode(&zones).expect("4096 bytes");
    assert_eq!((zones.ozcs, zones.area), (OZCS_AREAS, Some(AREA)));
    let open = |slba| Sqe { cdw13: 0x203, ..send(ZoneAction::Open, slba) };
    let commit = |slba| Sqe { cdw13: 0x11, ..send(ZoneAction::Open, slba) };
    let refused = Status::INVALID_FIELD;
    for (sqe, expected) in [
        (commit(67), refused),
        (Sqe { cdw13: 0x303, ..open(64) }, refused),
        (Sqe { nsid: READ_ONLY, ..open(64) }, Status::WRITE_TO_READ_ONLY),
        (open(64), Status::SUCCESS),
        (open(128), Status::SUCCESS),
        (open(192), Status::ZRWA_RESOURCES_UNAVAILABLE),
        (Sqe { cdw13: 0x111, ..commit(67) }, refused),
        (commit(66), refused),
    ] {
        assert_eq!(status(&mut world, line, sqe), expected, "{sqe:?}");
    }
    let appended = world.write(line, append(64, 1), &[1; 4096]).status.status;
    assert_eq!(appended, Status::INVALID_ZONE_OPERATION);
    for (slba, blocks, fill) in [(66, 2, 1), (64, 1, 2), (66, 1, 3)] {
        assert_eq!(write(&mut world, line, slba, blocks, fill), Status::SUCCESS, "{blocks} blocks at {slba}");
    }
    let shown = |world: &mut World| {
        let (_, zones) = report(world, line, receive(64, 128, 0, true), 128);
        (zones[0].has_area, zones[0].write_pointer)
    };
    assert_eq!(shown(&mut world), (true, Some(64)));
    assert_eq!(status(&mut world, line, commit(67)), Status::SUCCESS);
    assert_eq!(shown(&mut world), (true, Some(68)));
    assert_eq!(write(&mut world, line, 66, 1, 4), Status::ZONE_INVALID_WRITE);
    assert_eq!(write(&mut world, line, 76, 1, 5), Status::SUCCESS, "just behind the area");
    assert_eq!(shown(&mut world), (true, Some(72)));
    let data = world.read(line, Sqe::read(NSID, io(64, 4)), 4 * 4096).expect("blocks");
    let first: Vec<u8> = data.chunks(4096).map(|block| block[0]).collect();
    assert_eq!(first, [2, 0, 3, 1]);
    assert_eq!(status(&mut world, line, send(ZoneAction::Reset, 64)), Status::SUCCESS);
    assert_eq!(shown(&mut world), (false, Some(64)));
    world.end();
}

#[test]
fn what_is_not_there_is_refused_and_changes_nothing() {
    let mut world = world();
    let (_, line, _) = world.ready((false, false));
    let action = |bits: u32| Sqe { cdw13: bits, ..send(ZoneAction::Open, 0) };
    for bits in [0, 6, 0x110, 0x210, 0x11, 0xFF, 0x203] {
        assert_eq!(status(&mut world, line, action(bits)), Status::INVALID_FIELD, "{bits:#x}");
    }
    let with_data = world.write(line, send(ZoneAction::Open, 0), &[0; 4096]);
    assert_eq!(with_data.status.status, Status::INVALID_SGL_LENGTH);
    let tagged = Sqe { cdw12: append(0, 1).cdw12 | 1 << 25, ..append(0, 1) };
    assert_eq!(world.write(line, tagged, &[0; 4096]).status.status, Status::INVALID_FIELD);
    assert_eq!(world.write(line, append(0, 2), &[0; 4096]).status.status, Status::INVALID_SGL_LENGTH);
    let with_zeroes = world.write(line, zeroes(0, 1), &[0; 4096]);
    assert_eq!(with_zeroes.status.status, Status::INVALID_SGL_TYPE, "its opcode moves none");
    let zoned_of_blocks = Sqe { nsid: 1, ..send(ZoneAction::Open, 0) };
    assert_eq!(status(&mut world, line, zoned_of_blocks), Status::INVALID_OPCODE);
    for sqe in [send_all(ZoneAction::Reset), append(0, 1), Sqe::write(NSID, io(0, 1))] {
        let data = if sqe.opcode == 0x79 { &[][..] } else { &[0; 4096] };
        let sqe = Sqe { nsid: READ_ONLY, ..sqe };
        let found = if data.is_empty() { world.ask(line, sqe) } else { world.write(line, sqe, data) };
        assert_eq!(found.status.status, Status::WRITE_TO_READ_ONLY, "{sqe:?}");
    }
    let (_, zones) = report(&mut world, line, receive(0, 4096, 1, false), 4096);
    assert_eq!(zones.len(), 8, "nothing was written or opened");
    world.end();
}

#[test]
fn hosts_that_ask_for_it_are_told_of_zones_that_change_by_themselves() {
    let mut world = World::beside(vec![("z", zones_that_change(&[2, 5]))], [8, 4, 4], &[]);
    let (admin, line, _) = world.ready((false, false));
    let features = |value| {
        Sqe::set_features(0, SetFeatures { fid: FeatureId::ASYNC_EVENT_CONFIGURATION, save: false, value })
    };
    assert_eq!(status(&mut world, admin, features(1 << 27)), Status::SUCCESS);
    let sqe = Sqe::async_event_request().with_cid(9);
    let pdu = world.lines[admin].host.command(&transported(sqe, 0), &[]);
    assert_eq!(world.say(admin, &pdu), []);
    // The model tells of them with the first thing that it is asked.
    assert_eq!(write(&mut world, line, 0, 1, 1), Status::SUCCESS);
    let answers: Vec<Answer> = world.say(admin, &[]);
    let event = completion(&answers);
    assert_eq!((event.cid, AsyncEvent::from_dword(event.dw0)), (9, AsyncEvent::CHANGED_ZONES));
    let list = |world: &mut World, retain| {
        let page = world.read(admin, log(NSID, LogPageId::CHANGED_ZONES, 2, retain), 4096).expect("the page");
        ChangedZoneList::decode(&page).expect("4096 bytes")
    };
    let changed = ChangedZoneList::Zones(vec![Lba(128), Lba(320)]);
    assert_eq!([list(&mut world, true), list(&mut world, false)], [changed.clone(), changed]);
    assert_eq!(list(&mut world, false), ChangedZoneList::Zones(Vec::new()), "it was read");
    let refused = [(1, Status::INVALID_LOG_PAGE), (9, Status::INVALID_NAMESPACE)];
    for (nsid, expected) in refused {
        let page = world.read(admin, log(nsid, LogPageId::CHANGED_ZONES, 2, false), 4096);
        assert_eq!(page, Err(expected), "namespace {nsid}");
    }
    world.end();
}
