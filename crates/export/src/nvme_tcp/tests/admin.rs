//! Identify, logs, features, events.

use crate::nvme_tcp::testing::{NQN, World};
use crate::protocol::Protocol;
use ocssd_lightnvm::Status;
use ocssd_nvme::feature::{FeatureId, Select};
use ocssd_nvme::identify::{Cns, IdentifyNamespace, IndependentNamespace, NamespaceIds, NamespaceList};
use ocssd_nvme::log_page::{CommandEffects, EffectsLog, ErrorLogEntry, FirmwareSlots, LogPageId, SmartLog};
use ocssd_nvme::sqe::{Abort, GetFeatures, GetLogPage, Identify, ReadWrite, SetFeatures};
use ocssd_nvme::{Lba, Sqe};

fn identify(nsid: u32, cns: u8, csi: u8) -> Sqe {
    Sqe::identify(nsid, Identify { cns: Cns(cns), cntid: 0, csi })
}

fn log(lid: u8, dword_count: u64, offset_bytes: u64, csi: u8) -> Sqe {
    let get = GetLogPage { lid: LogPageId(lid), lsp: 0, retain_event: false, dword_count, offset_bytes, csi };
    Sqe::get_log_page(0, get)
}

#[test]
fn namespaces_say_what_exports_are() {
    let mut world = World::new();
    let (line, _) = world.admin((false, false), NQN);
    let mut ask = |sqe| world.read(line, sqe, 4096);
    let namespace = IdentifyNamespace::decode(&ask(identify(1, 0, 0)).unwrap()).unwrap();
    assert_eq!((namespace.nsze, namespace.format().block_bytes(), namespace.nsattr), (1 << 11, Some(512), 0));
    // Linux: a physical block is min(NPWG, NAWUPF) if NSFEAT bits 1 and 4 say that they are given.
    let (atomic, preferred) = (namespace.atomic, namespace.preferred);
    assert_eq!((namespace.nsfeat & 0b10010, preferred.npwg.min(atomic.nawupf)), (0b10010, 7), "4096 bytes");
    assert_eq!((atomic.nabspf, atomic.nabsn, atomic.nawun, atomic.nabo), (7, 7, 7, 0));
    assert_eq!([preferred.npwa, preferred.npdg, preferred.npda, preferred.nows], [7; 4]);
    assert_eq!(IdentifyNamespace::decode(&ask(identify(2, 0, 0)).unwrap()).unwrap().nsattr, 1);
    let list = |bytes: Vec<u8>| NamespaceList::decode(&bytes).unwrap().nsids().to_vec();
    assert_eq!(list(ask(identify(0, 2, 0)).unwrap()), [1, 2]);
    assert_eq!(list(ask(identify(1, 7, 0)).unwrap()), [2]);
    let ids = [1, 2].map(|nsid| NamespaceIds::decode(&ask(identify(nsid, 3, 0)).unwrap()).unwrap());
    assert_eq!(ids.map(|ids| ids.csi), [Some(0), Some(0)]);
    assert!(ids[0].nguid.is_some() && ids[0].uuid == ids[0].nguid && ids[0].eui64.is_some());
    assert!(ids[0].nguid != ids[1].nguid && ids[0].eui64 != ids[1].eui64, "{ids:?}");
    assert_eq!((Some(namespace.nguid), Some(namespace.eui64)), (ids[0].nguid, ids[0].eui64));
    let independent = IndependentNamespace::decode(&ask(identify(2, 8, 0)).unwrap()).unwrap();
    assert_eq!((independent.nsattr, independent.nstat), (1, 1));
    assert_eq!(ask(identify(1, 5, 0)).unwrap(), vec![0; 4096]);
    assert_eq!(ask(identify(0, 6, 0)).unwrap(), vec![0; 4096]);
    assert_eq!(ask(identify(0, 0x1C, 0)).unwrap()[..2], [1, 0]);
    let cases = [
        (identify(3, 0, 0), Status::INVALID_NAMESPACE),
        (identify(0, 0, 0), Status::INVALID_NAMESPACE),
        (identify(3, 3, 0), Status::INVALID_NAMESPACE),
        (identify(3, 8, 0), Status::INVALID_NAMESPACE),
        (identify(u32::MAX, 2, 0), Status::INVALID_NAMESPACE),
        (identify(1, 5, 2), Status::INVALID_FIELD),
        (identify(0, 6, 0x30), Status::INVALID_FIELD),
        (identify(0, 0x10, 0), Status::INVALID_FIELD),
    ];
    for (sqe, expected) in cases {
        assert_eq!(ask(sqe), Err(expected), "{sqe:?}");
    }
    assert_eq!(world.read(line, identify(1, 0, 0), 512), Err(Status::INVALID_SGL_LENGTH));
    assert_eq!(world.ask(line, identify(1, 0, 0)).status.status, Status::INVALID_SGL_LENGTH);
    world.end();
}

#[test]
fn logs_tell_what_happened() {
    let mut world = World::new();
    let (admin, line, _) = world.ready((false, false));
    let io =
        |slba| ReadWrite { slba: Lba(slba), block_count: 1, limited_retry: false, force_unit_access: false };
    assert!(world.write(line, Sqe::write(1, io(0)), &[1; 512]).status.status.is_success());
    world.read(line, Sqe::read(1, io(0)), 512).unwrap();
    assert!(world.read(line, Sqe::read(1, io(u64::MAX)).with_cid(77), 512).is_err());
    let smart = SmartLog::decode(&world.read(admin, log(2, 128, 0, 0), 512).unwrap()).unwrap();
    assert_eq!((smart.host_read_commands, smart.host_write_commands, smart.error_log_entries), (1, 1, 1));
    assert_eq!((smart.data_units_written, smart.critical_warning, smart.available_spare), (1, 0, 100));
    let error = ErrorLogEntry::decode(&world.read(admin, log(1, 16, 0, 0), 64).unwrap()).unwrap();
    assert_eq!((error.error_count, error.sqid, error.cid, error.lba), (1, 1, 77, Lba(u64::MAX)));
    assert_eq!(error.status.status, Status::LBA_OUT_OF_RANGE);
    let effects = EffectsLog::decode(&world.read(admin, log(5, 1024, 0, 0), 4096).unwrap()).unwrap();
    assert_eq!(
        (effects.io[1], effects.io[5], effects.io[0x0D]),
        (CommandEffects::CHANGES, CommandEffects::SUPPORTED, CommandEffects::default())
    );
    let slots = FirmwareSlots::decode(&world.read(admin, log(3, 128, 0, 0), 512).unwrap()).unwrap();
    assert_eq!(slots.active_slot, 1);
    // Slices, from the middle and beyond the end.
    let tail = world.read(admin, log(2, 4, 504, 0), 16).unwrap();
    assert_eq!(tail, [0; 16]);
    let cases = [
        (Sqe { cdw12: 2, ..log(2, 4, 0, 0) }, 16, Status::INVALID_FIELD),
        (log(2, 4, 512, 0), 16, Status::INVALID_FIELD),
        (log(2, 128, 0, 0), 16, Status::INVALID_SGL_LENGTH),
        (log(2, 1 << 32, 0, 0), 4096, Status::INVALID_SGL_LENGTH),
        (log(5, 4, 0, 0x30), 16, Status::INVALID_LOG_PAGE),
        (log(0x70, 4, 0, 0), 16, Status::INVALID_LOG_PAGE),
        (log(0xCA, 4, 0, 0), 16, Status::INVALID_LOG_PAGE),
    ];
    for (sqe, bytes, expected) in cases {
        assert_eq!(world.read(admin, sqe, bytes), Err(expected), "{sqe:?}");
    }
    world.end();
}

#[test]
fn features_are_granted_within_bounds() {
    let mut world = World::new();
    let (line, _) = world.admin((false, false), NQN);
    let mut set = |fid, value| {
        let cqe = world.ask(line, Sqe::set_features(0, SetFeatures { fid, save: false, value }));
        (cqe.status.status, cqe.dw0)
    };
    assert_eq!(set(FeatureId::NUMBER_OF_QUEUES, 3 << 16 | 7), (Status::SUCCESS, 3 << 16 | 3));
    assert_eq!(set(FeatureId::NUMBER_OF_QUEUES, 500 << 16 | 500), (Status::SUCCESS, 63 << 16 | 63));
    assert_eq!(set(FeatureId::NUMBER_OF_QUEUES, 0xFFFF), (Status::INVALID_FIELD, 0));
    assert_eq!(set(FeatureId::ASYNC_EVENT_CONFIGURATION, 0x100), (Status::SUCCESS, 0));
    assert_eq!(set(FeatureId::KEEP_ALIVE_TIMER, 9000), (Status::SUCCESS, 0));
    assert_eq!(set(FeatureId::ARBITRATION, 0), (Status::INVALID_FIELD, 0));
    let save = SetFeatures { fid: FeatureId::VOLATILE_WRITE_CACHE, save: true, value: 1 };
    assert_eq!(world.ask(line, Sqe::set_features(0, save)).status.status, Status::FEATURE_NOT_SAVEABLE);
    let mut get = |fid, select| {
        let cqe = world.ask(line, Sqe::get_features(0, GetFeatures { fid, select, selector: 0 }));
        (cqe.status.status, cqe.dw0)
    };
    assert_eq!(get(FeatureId::KEEP_ALIVE_TIMER, Select::Current), (Status::SUCCESS, 9000));
    assert_eq!(get(FeatureId::ASYNC_EVENT_CONFIGURATION, Select::Current), (Status::SUCCESS, 0x100));
    assert_eq!(get(FeatureId::ASYNC_EVENT_CONFIGURATION, Select::Default), (Status::SUCCESS, 0));
    assert_eq!(get(FeatureId::VOLATILE_WRITE_CACHE, Select::SupportedCapabilities), (Status::SUCCESS, 4));
    assert_eq!(get(FeatureId::ARBITRATION, Select::Current), (Status::INVALID_FIELD, 0));
    world.end();
}

#[test]
fn four_event_requests_are_held_and_news_answers_one() {
    let mut world = World::new();
    let (line, cntlid) = world.admin((false, false), NQN);
    for cid in 10..14 {
        let pdu = world.lines[line]
            .host
            .command(&crate::nvme_tcp::host::transported(Sqe::async_event_request().with_cid(cid), 0), &[]);
        assert_eq!(world.say(line, &pdu), []);
    }
    assert_eq!(world.ask(line, Sqe::async_event_request()).status.status, Status::AER_LIMIT_EXCEEDED);
    assert!(world.lines[line].session.is_idle(), "held requests keep nobody");
    world.dispatcher.subsystem.as_mut().unwrap().association_mut(cntlid).unwrap().announce(0xD0_0007);
    world.judge(line);
    let answers = world.say(line, &[]);
    let cqe = crate::nvme_tcp::testing::completion(&answers);
    assert_eq!((cqe.dw0, (10..14).contains(&cqe.cid)), (0xD0_0007, true));
    world.end();
}

#[test]
fn an_abort_ends_a_held_event_request_and_nothing_else() {
    let mut world = World::new();
    let (line, _) = world.admin((false, false), NQN);
    for cid in 10..12 {
        let sqe = Sqe::async_event_request().with_cid(cid);
        let pdu = world.lines[line].host.command(&crate::nvme_tcp::host::transported(sqe, 0), &[]);
        assert_eq!(world.say(line, &pdu), []);
    }
    for (sqid, cid) in [(1, 10), (0, 9), (0, 99)] {
        let cqe = world.ask(line, Sqe::abort(Abort { sqid, cid }).with_cid(99));
        assert_eq!((cqe.status.status, cqe.dw0), (Status::SUCCESS, 1), "{sqid} {cid}");
    }
    let sqe = Sqe::abort(Abort { sqid: 0, cid: 11 }).with_cid(99);
    let pdu = world.lines[line].host.command(&crate::nvme_tcp::host::transported(sqe, 0), &[]);
    let answers = world.say(line, &pdu);
    let ended = crate::nvme_tcp::testing::completion(&answers[..1]);
    let aborted = crate::nvme_tcp::testing::completion(&answers[1..]);
    assert_eq!((ended.cid, ended.status.status), (11, Status::ABORT_REQUESTED));
    assert_eq!((aborted.cid, aborted.status.status, aborted.dw0), (99, Status::SUCCESS, 0));
    world.end();
}
