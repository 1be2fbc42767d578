//! Identify, geometry, log pages and features, as a host decodes them.

use crate::host::{Host, bits, scalar, tiny};
use ocssd_base::Nanos;
use ocssd_flash::Flash;
use ocssd_flash::config::CacheConfig;
use ocssd_flash::controller::{AdminOutcome, Controller};
use ocssd_lightnvm::Payload;
use ocssd_nvme::feature::{FeatureId, Select};
use ocssd_nvme::identify::{
    Cns, DeallocatedRead, IdentifyController, IdentifyNamespace, NamespaceIds, NamespaceList, Uuid,
};
use ocssd_nvme::log_page::{ErrorLogEntry, FirmwareSlots, LogPageId, SmartLog};
use ocssd_nvme::ocssd20::{ChunkDescriptor, Geometry};
use ocssd_nvme::sqe::{Abort, GetLogPage, Identify, SetFeatures};
use ocssd_nvme::{AdminOpcode, Cqe, Sqe};

fn identify(host: &mut Host, nsid: u32, cns: u8) -> (Cqe, Vec<u8>) {
    let mut data = vec![0xA5; 4096];
    (host.admin(Sqe::identify(nsid, Identify { cns: Cns(cns), cntid: 0, csi: 0 }), &mut data), data)
}

fn log(host: &mut Host, nsid: u32, lid: LogPageId, offset_bytes: u64, bytes: usize) -> (Cqe, Vec<u8>) {
    let dword_count = u64::try_from(bytes / 4).expect("small");
    let get = GetLogPage { lid, lsp: 0, retain_event: false, dword_count, offset_bytes, csi: 0 };
    let mut data = vec![0xA5; bytes];
    (host.admin(Sqe::get_log_page(nsid, get), &mut data), data)
}

#[test]
fn identify_describes_controller_and_namespace() {
    let mut host = Host::with_every_state();
    let (cqe, data) = identify(&mut host, 0, 1);
    let controller = IdentifyController::decode(&data).expect("an Identify Controller");
    assert_eq!((bits(&cqe), controller.mdts, controller.nn, controller.oncs & 4), (0, 6, 1, 4));
    assert_eq!((controller.mn.to_string(), controller.vwc & 1), ("tiny".to_owned(), 0));
    let (cqe, data) = identify(&mut host, 1, 0);
    let namespace = IdentifyNamespace::decode(&data).expect("an Identify Namespace");
    assert_eq!(bits(&cqe), 0);
    assert_eq!((namespace.nsze, namespace.ncap), (1024, 1024));
    assert_eq!(namespace.nuse, 16 + 32 + 8);
    assert_eq!((namespace.format().ms_bytes, namespace.format().block_bytes()), (16, Some(4096)));
    assert_eq!((namespace.mc, namespace.extended_lba, namespace.lightnvm), (2, false, true));
    assert_eq!((namespace.deallocated_read, namespace.nsfeat & 4), (DeallocatedRead::Zeros, 4));
    let (cqe, data) = identify(&mut host, 0, 2);
    assert_eq!(bits(&cqe), 0);
    assert_eq!(NamespaceList::decode(&data).expect("a list").nsids(), [1]);
    let (_, data) = identify(&mut host, 1, 2);
    assert!(NamespaceList::decode(&data).expect("a list").nsids().is_empty(), "none above 1");
    let (cqe, data) = identify(&mut host, 1, 3);
    assert_eq!(bits(&cqe), 0);
    let ids = NamespaceIds::decode(&data).expect("identifiers");
    assert_eq!((ids.eui64, ids.nguid), (Some(namespace.eui64), Some(namespace.nguid)));
}

#[test]
fn the_address_space_of_a_drive_with_holes_is_larger_than_the_drive() {
    let mut config = ocssd_flash::presets::find("odd").expect("a preset").config();
    config.payload = Payload::Bytes;
    let host = Host::new(config);
    let namespace = host.controller.identify_namespace();
    assert_eq!((namespace.nsze, namespace.ncap), (1 << (2 + 3 + 3 + 7), 3 * 5 * 7 * 72));
}

#[test]
fn geometry_is_the_drives() {
    let mut host = Host::new(tiny());
    let mut data = vec![0; 4096];
    assert_eq!(bits(&host.admin(Sqe::geometry(1), &mut data)), 0);
    let geometry = Geometry::decode(&data).expect("a geometry");
    let shape = (geometry.num_grp, geometry.num_pu, geometry.num_chk, geometry.clba);
    assert_eq!((geometry.mjr, shape), (2, (2, 2, 8, 32)));
    assert_eq!((geometry.ws_min, geometry.ws_opt, geometry.mw_cunits), (4, 8, 8));
    assert_eq!((geometry.mccap.vector_copy, geometry.tcrst_ns), (true, 3_000_000));
    assert_eq!(geometry.lbaf, host.controller.flash().config().geometry.lba_format);
}

#[test]
fn what_admin_commands_refuse_and_why() {
    let mut host = Host::new(tiny());
    let get = |lid, offset_bytes, dword_count| {
        let get = GetLogPage {
            lid: LogPageId(lid),
            lsp: 0,
            retain_event: false,
            dword_count,
            offset_bytes,
            csi: 0,
        };
        Sqe::get_log_page(1, get)
    };
    let feature = |fid, save, value| Sqe::set_features(1, SetFeatures { fid: FeatureId(fid), save, value });
    let identify = |nsid, cns| Sqe::identify(nsid, Identify { cns: Cns(cns), cntid: 0, csi: 0 });
    let unaligned = Sqe { cdw12: 2, ..get(0xCA, 0, 1) };
    let table = [
        (identify(0, 0), 0x400B, "identify namespace 0"),
        (identify(2, 0), 0x400B, "identify namespace 2"),
        (identify(u32::MAX, 2), 0x400B, "list above the last"),
        (identify(1, 0x10), 0x4002, "a structure the drive does not have"),
        (Sqe::geometry(0), 0x400B, "geometry of namespace 0"),
        (Sqe::geometry(2), 0x400B, "geometry of namespace 2"),
        (get(0xCB, 0, 1), 0x4109, "an unknown log page"),
        (Sqe { nsid: 0, ..get(0xCA, 0, 1) }, 0x400B, "chunks of no namespace"),
        (Sqe { nsid: u32::MAX, ..get(0xD0, 0, 1) }, 0x400B, "notifications of all namespaces"),
        (get(0x02, 0, 128), 0x4002, "health of one namespace"),
        (Sqe { nsid: 5, ..get(0x02, 0, 128) }, 0x400B, "health of a namespace that is not"),
        (unaligned, 0x4002, "an offset inside a dword"),
        (get(0xCA, 32 * 32, 1), 0x4002, "an offset at the end of the page"),
        (get(0xCA, u64::MAX - 3, 1), 0x4002, "an offset far beyond"),
        (get(0xCA, 0, 65_537), 0x4002, "more than MDTS"),
        (get(0xCA, 0, 1 << 32), 0x4002, "all that can be asked for"),
        (get(0xCA, 0, 1024 + 1), 0x4004, "more than the buffer holds"),
        (feature(0x05, true, 0), 0x410D, "a feature saved"),
        (Sqe { nsid: 0, ..feature(0x05, false, 0) }, 0x400B, "error recovery of no namespace"),
        (feature(0x06, false, 1), 0x4002, "a cache that is not there"),
        (feature(0x07, false, 0xFFFF), 0x4002, "65536 queues"),
        (feature(0x02, false, 1), 0x4002, "a power state that is not there"),
        (feature(0x0B, false, 0x100), 0x4002, "a notification the drive cannot send"),
        (feature(0x04, false, 0), 0x4002, "a feature the drive does not have"),
        (
            Sqe { opcode: AdminOpcode::GET_FEATURES.0, cdw10: 0x0405, ..feature(0x05, false, 0) },
            0x4002,
            "a reserved select",
        ),
        (Sqe { opcode: 0x01, ..Sqe::default() }, 0x4001, "queues are the transport's"),
        (Sqe { opcode: AdminOpcode::GET_BBT.0, nsid: 1, ..Sqe::default() }, 0x4001, "1.2 on a 2.0 drive"),
        (Sqe { opcode: 0xFF, ..Sqe::default() }, 0x4001, "an unknown opcode"),
    ];
    for (sqe, status, why) in table {
        let mut data = vec![0xA5; 4096];
        assert_eq!(bits(&host.admin(sqe, &mut data)), status, "{why}");
        assert!(data.iter().all(|&byte| byte == 0xA5), "{why}: nothing is written");
    }
}

#[test]
fn replies_need_room_for_all_of_them() {
    let mut host = Host::new(tiny());
    for sqe in [Sqe::geometry(1), Sqe::identify(1, Identify { cns: Cns(0), cntid: 0, csi: 0 })] {
        let mut data = vec![0xA5; 4095];
        assert_eq!(bits(&host.admin(sqe, &mut data)), 0x4004);
        assert!(data.iter().all(|&byte| byte == 0xA5));
    }
}

#[test]
fn every_slice_of_the_chunk_log_is_a_slice_of_the_whole() {
    let mut host = Host::with_every_state();
    let (cqe, whole) = log(&mut host, 1, LogPageId::CHUNK_INFORMATION, 0, 32 * 32);
    assert_eq!(bits(&cqe), 0);
    for (index, chunk) in host.table().into_iter().enumerate() {
        let descriptor = ChunkDescriptor::decode(&whole[index * 32..]).expect("a descriptor");
        assert_eq!((descriptor.slba, descriptor.cnlb), (chunk.first, 32));
        assert_eq!(descriptor.wp, chunk.write_pointer.map_or(u64::MAX, u64::from));
        assert_eq!(descriptor.cs.to_bits(), [1, 4, 2, 8, 2].get(index).copied().unwrap_or(1));
    }
    for (offset, bytes) in [(4, 4), (36, 100), (28, 8), (1020, 4), (0, 1024), (992, 32), (68, 36)] {
        let (cqe, slice) = log(&mut host, 1, LogPageId::CHUNK_INFORMATION, offset, bytes);
        assert_eq!(bits(&cqe), 0);
        let first = usize::try_from(offset).expect("small");
        assert_eq!(slice, whole[first..first + bytes], "offset {offset}, {bytes} bytes");
    }
    let (cqe, slice) = log(&mut host, 1, LogPageId::CHUNK_INFORMATION, 1008, 64);
    assert_eq!(bits(&cqe), 0);
    assert_eq!(slice[..16], whole[1008..]);
    assert!(slice[16..].iter().all(|&byte| byte == 0), "zeros beyond the end");
}

#[test]
fn the_health_log_counts_what_happened() {
    let mut config = tiny();
    config.wear.endurance = 4;
    let mut host = Host::with_every_state_of(config);
    let (_, before) = log(&mut host, u32::MAX, LogPageId::SMART, 0, 512);
    let before = SmartLog::decode(&before).expect("a health log");
    // 4 + 8 + 8 writes of 4, 2 of 4, and one that failed: 92 sectors of 4096 bytes and what the failure took.
    assert_eq!((before.host_write_commands, before.host_read_commands), (23, 0));
    assert_eq!(before.data_units_written, (88u128 * 8).div_ceil(1000));
    assert_eq!((before.media_errors, before.available_spare), (1, 96));
    assert_eq!(before.error_log_entries, 2, "the failed reset and the early close");
    host.fault(ocssd_flash::FaultKind::UnrecoveredRead, 2, Some(0));
    assert_eq!(bits(&host.read(host.lba(2, 0), 1).0), 0x0281);
    for _ in 0..3 {
        let chunk = host.lba(2, 0);
        assert_eq!(bits(&host.vector_reset(&[chunk])), 0);
        host.fill(2, 32);
    }
    host.now = host.now.max(Nanos::from_secs(7200));
    let (cqe, after) = log(&mut host, 0, LogPageId::SMART, 0, 512);
    let after = SmartLog::decode(&after).expect("a health log");
    assert_eq!(
        (bits(&cqe), after.media_errors, after.host_read_commands, after.data_units_read),
        (0, 2, 1, 1)
    );
    assert_eq!((after.power_on_hours, after.power_cycles, after.unsafe_shutdowns), (2, 1, 0));
    assert_eq!((before.percentage_used, after.percentage_used), (0, 2), "3 of 31 * 4 cycles");
}

#[test]
fn the_error_log_names_each_refused_command_newest_first() {
    let mut host = Host::with_every_state();
    let closed = host.lba(2, 0);
    assert_eq!(bits(&host.write(closed, 4, 1)), 0x4280);
    assert_eq!(bits(&host.admin(Sqe::geometry(7).with_cid(77), &mut [])), 0x400B);
    let (cqe, page) = log(&mut host, u32::MAX, LogPageId::ERROR_INFORMATION, 0, 64 * 64);
    assert_eq!(bits(&cqe), 0);
    let entry = |index: usize| ErrorLogEntry::decode(&page[index * 64..]).expect("an entry");
    let (newest, older) = (entry(0), entry(1));
    assert_eq!((newest.error_count, newest.sqid, newest.cid, newest.nsid), (4, 0, 77, 7));
    assert_eq!((older.error_count, older.sqid, older.lba.0, older.nsid), (3, 3, closed, 1));
    assert_eq!(older.status.to_bits(), 0x4280);
    assert_eq!(entry(4).error_count, 0, "an entry that holds nothing");
}

#[test]
fn the_firmware_log_has_one_slot() {
    let mut host = Host::new(tiny());
    let (cqe, page) = log(&mut host, u32::MAX, LogPageId::FIRMWARE_SLOT, 0, 512);
    let slots = FirmwareSlots::decode(&page).expect("firmware slots");
    assert_eq!((bits(&cqe), slots.active_slot), (0, 1));
    assert_eq!(slots.revisions[0], Some(host.controller.identify_controller().fr));
    assert_eq!(slots.revisions[1..], [None; 6]);
}

#[test]
fn features_are_read_back_as_they_were_set() {
    let mut config = tiny();
    config.cache = CacheConfig { sectors: 64, power_loss_protection: false };
    let mut host = Host::new(config);
    assert_eq!(host.controller.identify_controller().vwc & 1, 1);
    // Feature, value set, value read, default, capabilities.
    let table = [
        (0x02, 0x20, 0x20, 0, 4),
        (0x05, 0xFFFF_1234, 0x0001_1234, 0, 6),
        (0x06, 0, 0, 1, 4),
        (0x07, 0x0003_0007, 0x0003_0007, 0x007F_007F, 4),
        (0x0B, 0x1F, 0x1F, 0, 4),
        (0xCA, 0x3, 0x3, 0, 4),
    ];
    for (fid, set, read, default, capabilities) in table {
        let fid = FeatureId(fid);
        let value = |host: &mut Host, select| {
            let cqe = host.get_feature(fid, select);
            assert_eq!(bits(&cqe), 0, "{fid:?}");
            cqe.dw0
        };
        assert_eq!(value(&mut host, Select::Current), default, "{fid:?}");
        assert_eq!(bits(&host.set_feature(fid, set)), 0, "{fid:?}");
        assert_eq!(value(&mut host, Select::Current), read, "{fid:?}");
        assert_eq!(value(&mut host, Select::Default), default, "{fid:?}");
        assert_eq!(value(&mut host, Select::Saved), default, "{fid:?}");
        assert_eq!(value(&mut host, Select::SupportedCapabilities), capabilities, "{fid:?}");
    }
    let granted = host.set_feature(FeatureId::NUMBER_OF_QUEUES, 0xFFFE_0000);
    assert_eq!((bits(&granted), granted.dw0), (0, 0x007F_0000), "no more than there are");
}

#[test]
fn a_protected_cache_is_no_volatile_cache() {
    let mut config = tiny();
    config.cache = CacheConfig { sectors: 64, power_loss_protection: true };
    let mut host = Host::new(config);
    assert_eq!(host.controller.identify_controller().vwc & 1, 0);
    assert_eq!(bits(&host.get_feature(FeatureId::VOLATILE_WRITE_CACHE, Select::Current)), 0x4002);
}

#[test]
fn abort_and_keep_alive_are_answered() {
    let mut host = Host::new(tiny());
    let at = host.lba(0, 0);
    let cid = host.submit(Sqe::write(1, scalar(at, 4)), &mut crate::host::Buffers::sectors(4, 1));
    let cqe = host.admin(Sqe::abort(Abort { sqid: 3, cid }), &mut []);
    assert_eq!((bits(&cqe), cqe.dw0 & 1), (0, 1), "not aborted");
    assert_eq!(bits(&host.wait()), 0, "what was begun is finished");
    let keep_alive = Sqe { opcode: AdminOpcode::KEEP_ALIVE.0, ..Sqe::default() };
    assert_eq!(bits(&host.admin(keep_alive, &mut [])), 0);
}

/// Linux ignores a namespace of which any name is another's.
#[test]
fn drives_of_one_seed_with_their_own_uuids_share_no_name() {
    let names = [[0x11; 16], [0x22; 16]].map(|random| {
        let flash = Flash::format(crate::host::tiny()).expect("a sound drive");
        let uuid = Uuid::of_random(random);
        let mut controller = Controller::new(flash).expect("bytes").with_uuid(uuid);
        let mut data = vec![0; 4096];
        let identify = Identify { cns: Cns::NAMESPACE_IDS, cntid: 0, csi: 0 };
        let sqe = Sqe::identify(1, identify).encode();
        assert!(matches!(controller.admin(Nanos::ZERO, &sqe, &mut data), AdminOutcome::Done(_)));
        let NamespaceIds { eui64, nguid, uuid: told, .. } = NamespaceIds::decode(&data).expect("a list");
        assert_eq!(told, Some(uuid.0));
        let found = controller.identify_controller();
        assert_eq!(found.subnqn, uuid.nqn());
        (eui64.expect("an EUI-64"), nguid.expect("an NGUID"), found.sn.to_string(), found.subnqn)
    });
    let [one, other] = names;
    assert!(
        one.0 != other.0 && one.1 != other.1 && one.2 != other.2 && one.3 != other.3,
        "{one:?} {other:?}"
    );
}
