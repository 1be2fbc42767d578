//! Rings begin, end and are told of, as the frontend says.

use super::{check_clean, world};
use crate::vhost_user_blk::config::RING_SIZE_MAX;
use crate::vhost_user_blk::request::kind;
use crate::vhost_user_blk::ring::{Parts, Ring};
use vm_memory::GuestAddress;

const DATA: u64 = 0x4_0000;

#[test]
fn a_ring_that_does_not_run_is_left_alone() {
    let (mut guest, mut dispatcher, mut disks) = world();
    guest.ask(kind::IN, 0, &[], &[(DATA, 512)]);
    guest.device.rings[0].enabled = false;
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!((guest.came_back(0), guest.device.ask_for_kicks(&dispatcher)), (None, false));
    guest.device.rings[0].enabled = true;
    assert!(guest.device.ask_for_kicks(&dispatcher), "no kick will tell of it");
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert!(guest.came_back(0).is_some() && !guest.device.ask_for_kicks(&dispatcher));
    guest.device.stop();
    guest.ask(kind::IN, 0, &[], &[(DATA, 512)]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!(guest.came_back(0), None);
    check_clean(&guest, &dispatcher);
}

#[test]
fn a_guest_is_told_once_of_what_came_back_unless_it_does_not_want_it() {
    let (mut guest, mut dispatcher, mut disks) = world();
    guest.ask(kind::FLUSH, 0, &[], &[]);
    guest.ask(kind::FLUSH, 0, &[], &[]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!([guest.device.poll_call(), guest.device.poll_call()], [Some(0), None]);
    // VIRTQ_AVAIL_F_NO_INTERRUPT.
    guest.put(guest.at(0) + 0x1000, &[1, 0]);
    guest.ask(kind::FLUSH, 0, &[], &[]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!(guest.device.poll_call(), None);
}

#[test]
fn kicks_are_declined_while_rings_are_looked_at() {
    let (mut guest, mut dispatcher, mut disks) = world();
    let wants_kicks =
        |guest: &crate::vhost_user_blk::guest::Guest| guest.get(guest.at(0) + 0x2000, 2) == [0, 0];
    assert!(!guest.device.ask_for_kicks(&dispatcher) && wants_kicks(&guest));
    guest.ask(kind::FLUSH, 0, &[], &[]);
    assert!(guest.device.ask_for_kicks(&dispatcher) && !wants_kicks(&guest));
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert!(!guest.device.ask_for_kicks(&dispatcher) && wants_kicks(&guest));
}

#[test]
fn rings_that_cannot_be_are_refused_with_a_sentence() {
    let (guest, ..) = world();
    let mut ring = Ring::default();
    for size in [0, 3, u32::from(RING_SIZE_MAX) * 2, 1 << 16, u32::MAX] {
        let error = ring.set_size(size).unwrap_err();
        assert!(error.contains(&format!("found {size}")), "{error}");
    }
    let parts = |descriptors, available, used| Parts {
        descriptors: GuestAddress(descriptors),
        available: GuestAddress(available),
        used: GuestAddress(used),
    };
    for wrong in [parts(8, 0x1000, 0x2000), parts(0, 0x1001, 0x2000), parts(0, 0x1000, 0x2002)] {
        assert!(ring.set_parts(wrong).unwrap_err().contains("cannot lie"), "{wrong:?}");
    }
    let end = 1 << 20;
    for beyond in [parts(end, 0x1000, 0x2000), parts(0, end - 4, 0x2000), parts(0, 0x1000, u64::MAX - 3)] {
        ring.set_parts(beyond).unwrap();
        let error = ring.start(guest.device.memory.mapped(), true).unwrap_err();
        assert!(error.contains("beyond memory") && !ring.started, "{beyond:?}: {error}");
    }
}
