//! Asynchronous events: a chunk notification is announced once, read, and announced again when there is more.

use crate::host::{Host, bits, tiny};
use ocssd_flash::FaultKind;
use ocssd_flash::controller::AdminOutcome;
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::log_page::LogPageId;
use ocssd_nvme::ocssd20::{ChunkNotification, NotificationMask, NotificationState};
use ocssd_nvme::sqe::GetLogPage;
use ocssd_nvme::{Cqe, Sqe};

fn hold(host: &mut Host, cid: u16) {
    let sqe = Sqe::async_event_request().with_cid(cid).encode();
    assert_eq!(host.controller.admin(host.now, &sqe, &mut []), AdminOutcome::Held);
}

fn event(host: &mut Host) -> Option<(u16, u32)> {
    let cqe = Cqe::decode(&host.controller.poll_event()?);
    assert_eq!((bits(&cqe), cqe.sqid), (0, 0));
    Some((cqe.cid, cqe.dw0))
}

fn weak_read(host: &mut Host, sector: u32) {
    host.fault(FaultKind::HighEcc, 2, Some(sector));
    assert_eq!(bits(&host.read(host.lba(2, sector), 1).0), 0, "media feedback is off");
}

fn notifications(host: &mut Host, retain_event: bool, count: usize) -> Vec<ChunkNotification> {
    let dword_count = u64::try_from(count * 16).expect("small");
    let lid = LogPageId::CHUNK_NOTIFICATION;
    let mut data = vec![0xA5; count * 64];
    let get = GetLogPage { lid, lsp: 0, retain_event, dword_count, offset_bytes: 0, csi: 0 };
    assert_eq!(bits(&host.admin(Sqe::get_log_page(1, get), &mut data)), 0);
    let entries = data.chunks_exact(64).map(|entry| ChunkNotification::decode(entry).expect("64 bytes"));
    entries.filter(|entry| entry.nc != 0).collect()
}

#[test]
fn a_weak_sector_is_announced_masked_read_and_cleared() {
    let mut host = Host::with_every_state();
    let quiet = host.controller.flash().chunk_notifications().count();
    assert_eq!(quiet, 0);
    hold(&mut host, 11);
    hold(&mut host, 12);
    assert_eq!(event(&mut host), None, "no news");
    weak_read(&mut host, 5);
    assert_eq!(event(&mut host), Some((11, 0x00D0_0007)));
    weak_read(&mut host, 6);
    assert_eq!(event(&mut host), None, "masked until the log is read");
    assert_eq!(notifications(&mut host, true, 4).len(), 2);
    assert_eq!(event(&mut host), None, "read, but retained");
    let read = notifications(&mut host, false, 4);
    let expected = |nc, sector| ChunkNotification {
        nc,
        lba: ocssd_nvme::Lba(host.lba(2, sector)),
        nsid: 1,
        state: NotificationState::ERROR_RATE_LOW,
        mask: NotificationMask::LOGICAL_BLOCKS,
        block_count: 1,
    };
    assert_eq!(read, [expected(1, 5), expected(2, 6)]);
    assert!(notifications(&mut host, false, 4).is_empty(), "cleared");
    assert_eq!(event(&mut host), None);
    weak_read(&mut host, 7);
    assert_eq!(event(&mut host), Some((12, 0x00D0_0007)));
    assert_eq!(event(&mut host), None, "no request is held");
}

#[test]
fn entries_that_were_not_read_are_announced_again() {
    let mut host = Host::with_every_state();
    weak_read(&mut host, 1);
    weak_read(&mut host, 2);
    hold(&mut host, 1);
    hold(&mut host, 2);
    assert_eq!(event(&mut host).map(|(cid, _)| cid), Some(1), "what happened before the request counts");
    assert_eq!(notifications(&mut host, false, 1).len(), 1);
    assert_eq!(event(&mut host).map(|(cid, _)| cid), Some(2));
    assert_eq!(notifications(&mut host, false, 1)[0].nc, 2);
}

#[test]
fn lost_data_and_uneven_wear_are_notified_as_what_they_are() {
    let mut config = tiny();
    config.wear.endurance = 20;
    let mut host = Host::with_every_state_of(config);
    host.fault(FaultKind::UnrecoveredRead, 2, Some(3));
    assert_eq!(bits(&host.read(host.lba(2, 3), 1).0), 0x0281);
    let chunk = host.lba(2, 0);
    assert_eq!(bits(&host.vector_reset(&[chunk])), 0);
    let read = notifications(&mut host, false, 8);
    assert_eq!(read.len(), 2);
    assert_eq!((read[0].state, read[0].lba.0), (NotificationState::UNRECOVERABLE, host.lba(2, 3)));
    assert_eq!(
        (read[1].state, read[1].mask),
        (NotificationState::WEAR_OUTSIDE_THRESHOLD, NotificationMask::CHUNK)
    );
}

#[test]
fn more_requests_than_the_limit_are_refused_and_a_reset_drops_them() {
    let mut host = Host::with_every_state();
    for cid in 0..4 {
        hold(&mut host, cid);
    }
    assert_eq!(host.controller.identify_controller().aerl, 3);
    assert_eq!(bits(&host.admin(Sqe::async_event_request(), &mut [])), 0x4105);
    host.controller.reset(host.now);
    weak_read(&mut host, 1);
    assert_eq!(event(&mut host), None);
}

#[test]
fn a_worn_out_drive_warns_who_asked() {
    let mut config = tiny();
    config.wear.endurance = 10;
    config.wear.initial_cycles = 10;
    let mut host = Host::new(config);
    hold(&mut host, 1);
    assert_eq!(event(&mut host), None, "nobody asked for health warnings");
    assert_eq!(bits(&host.set_feature(FeatureId::ASYNC_EVENT_CONFIGURATION, 0b100)), 0);
    assert_eq!(event(&mut host), Some((1, 0x0002_0001)));
    hold(&mut host, 2);
    assert_eq!(event(&mut host), None, "told once");
}
