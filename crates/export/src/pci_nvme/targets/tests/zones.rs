//! Namespaces of zones.

use super::{Bench, Served, io, ready};
use crate::changing_zones::zones_that_change;
use crate::model_targets::zones;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::Entry;
use ocssd_lightnvm::interface::zoned::{ZoneAction, ZoneDescriptor, ZoneState};
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::identify::{Cns, NamespaceIds};
use ocssd_nvme::log_page::{AsyncEvent, LogPageId};
use ocssd_nvme::sqe::{Abort, GetLogPage, Identify, SetFeatures};
use ocssd_nvme::zns::{
    ChangedZoneList, ReportHeader, ZnsNamespace, ZoneAppend, ZoneManagementReceive, ZoneManagementSend,
    ZoneReceiveAction, ZoneSendAction,
};
use ocssd_nvme::{Lba, Sqe};

const NSID: u32 = 3;

fn append(zslba: u64, block_count: u32) -> Sqe {
    let zslba = Lba(zslba);
    let append =
        ZoneAppend { zslba, block_count, limited_retry: false, force_unit_access: false, remaps_tag: false };
    Sqe::zone_append(NSID, append)
}

fn send(action: ZoneSendAction, slba: u64) -> Sqe {
    let send = ZoneManagementSend { slba: Lba(slba), action, all: false, option: false };
    Sqe::zone_management_send(NSID, send)
}

/// So many zones' descriptors from a block on, and how many zones there are.
fn report(bench: &mut Bench<Served>, slba: u64, count: usize) -> (u64, Vec<ZoneDescriptor>) {
    let (bytes, action) = (64 + 64 * count, ZoneReceiveAction::Report);
    let dword_count = u64::try_from(bytes / 4).unwrap();
    let receive = ZoneManagementReceive { slba: Lba(slba), dword_count, action, filter: 0, partial: false };
    let (data, cqe) = bench.fetch(Sqe::zone_management_receive(NSID, receive), bytes);
    assert_eq!(cqe.status.status, Status::SUCCESS);
    let found = data[64..].chunks_exact(64).map(|entry| ZoneDescriptor::decode(entry).unwrap());
    (ReportHeader::decode(&data).unwrap().zone_count, found.collect())
}

fn changed(nsid: u32) -> Sqe {
    let lid = LogPageId::CHANGED_ZONES;
    let get = GetLogPage { lid, lsp: 0, retain_event: false, dword_count: 1024, offset_bytes: 0, csi: 2 };
    Sqe::get_log_page(nsid, get)
}

#[test]
fn zones_are_written_appended_to_reported_managed_and_described() {
    let mut bench = ready(vec![("z", zones())]);
    let identify = |cns, csi| Sqe::identify(NSID, Identify { cns, cntid: 0, csi });
    let ids = NamespaceIds::decode(&bench.ask(identify(Cns::NAMESPACE_IDS, 0)).unwrap()).unwrap();
    assert_eq!(ids.csi, Some(2));
    let found = bench.ask(identify(Cns::COMMAND_SET_NAMESPACE, 2)).unwrap();
    assert_eq!(ZnsNamespace::decode(&found).unwrap().active_max, Some(4));
    assert_eq!(bench.send(Sqe::write(NSID, io(64, 4)), &[5; 16384]).status.status, Status::SUCCESS);
    let appended = bench.send(append(64, 2), &[6; 8192]);
    assert_eq!((appended.status.status, appended.dw0, appended.dw1), (Status::SUCCESS, 68, 0));
    assert_eq!(bench.send(Sqe::write(NSID, io(64, 1)), &[0; 4096]).status.status, Status::ZONE_INVALID_WRITE);
    let (found, _) = bench.fetch(Sqe::read(NSID, io(66, 4)), 16384);
    assert_eq!(found, [[5; 8192], [6; 8192]].concat());
    let (count, found) = report(&mut bench, 64, 2);
    assert_eq!((count, found[0].state, found[0].write_pointer), (7, ZoneState::ImplicitlyOpened, Some(70)));
    assert_eq!((found[1].start, found[1].state), (128, ZoneState::Empty));
    for (action, state) in [
        (ZoneAction::Close, ZoneState::Closed),
        (ZoneAction::Finish, ZoneState::Full),
        (ZoneAction::Reset, ZoneState::Empty),
    ] {
        assert_eq!(bench.io(send(ZoneSendAction::Manage(action), 64)), Status::SUCCESS);
        assert_eq!(report(&mut bench, 64, 1).1[0].state, state);
    }
    // 64 bytes that PRPs know no length of: the command's own.
    let described = bench.send(send(ZoneSendAction::SetExtension, 64), &[9; 64]);
    assert_eq!(described.status.status, Status::SUCCESS);
    assert!(report(&mut bench, 64, 1).1[0].has_extension);
    assert_eq!(bench.send(append(65, 1), &[0; 4096]).status.status, Status::INVALID_FIELD);
    assert_eq!(bench.send(append(64, 9), &[0; 36864]).status.status, Status::INVALID_FIELD, "more than ZASL");
    bench.end();
}

#[test]
fn zones_that_change_by_themselves_are_events_and_a_list_until_the_guest_goes() {
    let mut bench = ready(vec![("z", zones_that_change(&[2, 5]))]);
    let fid = FeatureId::ASYNC_EVENT_CONFIGURATION;
    assert_eq!(
        bench.admin(Sqe::set_features(0, SetFeatures { fid, save: false, value: 1 << 27 })),
        Status::SUCCESS
    );
    let held: Vec<u16> = (0..4).map(|_| bench.submit(0, Sqe::async_event_request())).collect();
    bench.run();
    assert_eq!(bench.admin(Sqe::async_event_request()), Status::AER_LIMIT_EXCEEDED);
    // The model tells of them with the first thing that it is asked.
    assert_eq!(bench.send(Sqe::write(NSID, io(0, 1)), &[1; 4096]).status.status, Status::SUCCESS);
    bench.run();
    let event = bench.take(0).expect("news");
    assert_eq!((event.cid, AsyncEvent::from_dword(event.dw0)), (held[0], AsyncEvent::CHANGED_ZONES));
    assert_eq!(bench.take(0), None, "it is told once");
    let list = |bytes: &[u8]| ChangedZoneList::decode(bytes).unwrap();
    let page = bench.ask(changed(NSID)).unwrap();
    assert_eq!(list(&page), ChangedZoneList::Zones(vec![Lba(128), Lba(320)]));
    assert_eq!(list(&bench.ask(changed(NSID)).unwrap()), ChangedZoneList::Zones(Vec::new()), "it was read");
    assert_eq!(bench.ask(changed(1)), Err(Status::INVALID_LOG_PAGE));
    // An event request that is held can be aborted, and no other command.
    let abort = |cid| Sqe::abort(Abort { sqid: 0, cid });
    bench.submit(0, abort(held[2]));
    bench.run();
    let [aborted, done] = [bench.take(0).unwrap(), bench.take(0).unwrap()];
    assert_eq!((aborted.cid, aborted.status.status), (held[2], Status::ABORT_REQUESTED));
    assert_eq!((done.dw0, bench.carry_out(0, abort(held[2])).dw0), (0, 1));
    bench.end();
}
