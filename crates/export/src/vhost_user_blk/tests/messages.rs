//! What frontends may say, carried out on the device.

use super::world;
use crate::vhost_user_blk::backend::{Backend, Change};
use crate::vhost_user_blk::config::{QUEUES_MAX, feature};
use crate::vhost_user_blk::memory::Memory;
use vhost::vhost_user::VhostUserBackendReqHandlerMut;
use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserVringAddrFlags};

fn backend() -> Backend {
    let (guest, ..) = world();
    let mut backend = Backend::new(guest.device);
    backend.device.rings = (0..QUEUES_MAX).map(|_| Default::default()).collect();
    backend
}

#[test]
fn a_ring_is_set_up_started_and_stopped_where_it_was() {
    let mut backend = backend();
    backend.device.memory = Memory::anonymous(&[(0x1000, 0x10_0000)]);
    let offered = backend.get_features().unwrap();
    backend.set_features(offered & !feature::CONFIG_WCE).unwrap();
    backend.set_vring_num(2, 64).unwrap();
    backend.set_vring_base(2, 77).unwrap();
    let none = VhostUserVringAddrFlags::empty();
    backend.set_vring_addr(2, none, 0x1000, 0x3000, 0x2000, 0).unwrap();
    let kick = || Some(std::fs::File::open("/dev/null").unwrap());
    backend.set_vring_kick(2, kick()).unwrap();
    assert!(backend.device.has_driver() && !backend.device.rings[2].runs(), "it is not enabled yet");
    backend.set_vring_enable(2, true).unwrap();
    assert!(backend.device.rings[2].runs());
    let error = backend.set_vring_num(2, 64).unwrap_err().to_string();
    assert!(error.contains("runs"), "{error}");
    let state = backend.get_vring_base(2).unwrap();
    assert_eq!(({ state.index }, { state.num }, backend.device.rings[2].runs()), (2, 77, false));
    assert!(matches!(
        backend.changes[..],
        [Change::Kick(2, Some(_)), Change::Kick(2, None), Change::Call(2, None)]
    ));
}

#[test]
fn what_was_not_offered_is_refused_with_a_sentence() {
    let mut backend = backend();
    let none = VhostUserVringAddrFlags::empty();
    let config = VhostUserConfigFlags::empty();
    let errors = [
        (backend.set_features(1 << 34).unwrap_err(), "features 0x400000000"),
        (backend.set_protocol_features(1 << 1).unwrap_err(), "protocol features 0x2"),
        (backend.set_vring_num(16, 64).unwrap_err(), "ring 16"),
        (backend.set_vring_num(0, 65).unwrap_err(), "found 65"),
        (backend.set_vring_base(0, 1 << 16).unwrap_err(), "cannot begin at 65536"),
        (backend.set_vring_addr(0, none, 1 << 40, 0, 0, 0).unwrap_err(), "where no memory is"),
        (backend.set_vring_kick(0, None).unwrap_err(), "without a descriptor"),
        (backend.get_config(200, 100, config).unwrap_err(), "bytes 200"),
        (backend.set_config(0, &[1], config).unwrap_err(), "cannot be set"),
        (backend.set_config(32, &[2], config).unwrap_err(), "cannot be set"),
        (backend.set_config(32, &[], config).unwrap_err(), "cannot be set"),
        (backend.check_device_state().unwrap_err(), "not offered"),
    ];
    for (error, expected) in errors {
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn write_back_is_what_the_driver_was_promised_or_chose() {
    let mut backend = backend();
    let (base, none) = (feature::VERSION_1 | feature::PROTOCOL_FEATURES, VhostUserConfigFlags::empty());
    backend.set_features(base).unwrap();
    assert!(!backend.device.writeback, "it knows no flush");
    backend.set_features(base | feature::FLUSH).unwrap();
    assert!(backend.device.writeback);
    let both = base | feature::FLUSH | feature::CONFIG_WCE;
    backend.set_features(both).unwrap();
    backend.set_config(32, &[0], none).unwrap();
    backend.set_features(both).unwrap();
    assert!(!backend.device.writeback, "the choice stays");
    assert_eq!(backend.get_config(32, 1, none).unwrap(), [0]);
    backend.reset_device().unwrap();
    assert!(backend.device.writeback && backend.device.features == 0);
}

#[test]
fn without_protocol_features_rings_are_enabled_from_the_start() {
    let mut backend = backend();
    backend.set_features(feature::VERSION_1 | feature::FLUSH).unwrap();
    assert!(backend.device.rings.iter().all(|ring| ring.enabled));
}
