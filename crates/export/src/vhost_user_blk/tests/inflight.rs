//! A server is killed with requests in flight; the next one has the guest's memory and the log, and nothing else.

use super::{check_clean, world};
use crate::dispatcher::Dispatcher;
use crate::memory_disk::MemoryDisks;
use crate::vhost_user_blk::backend::Backend;
use crate::vhost_user_blk::config::feature;
use crate::vhost_user_blk::device::Device;
use crate::vhost_user_blk::guest::{Guest, INDIRECT, NEXT, SIZE, WRITE};
use crate::vhost_user_blk::request::{BlkStatus, Header, kind};
use ocssd_base::Prng;
use std::fs::File;
use std::os::fd::AsFd;
use vhost::vhost_user::VhostUserBackendReqHandlerMut;
use vhost::vhost_user::message::{VhostUserInflight, VhostUserVringAddrFlags};

const DATA: u64 = 0x4_0000;

/// What a frontend keeps.
struct Kept {
    inflight: VhostUserInflight,
    file: File,
}

impl Kept {
    fn new(backend: &mut Backend) -> Self {
        let asked = VhostUserInflight::new(0, 0, 2, SIZE);
        let (inflight, file) = backend.get_inflight_fd(&asked).unwrap();
        Self { inflight, file }
    }

    fn file(&self) -> File {
        File::from(self.file.as_fd().try_clone_to_owned().unwrap())
    }
}

/// Sets up ring 0 as a frontend does that begins at `base`.
fn begin(backend: &mut Backend, kept: &Kept, base: u32) {
    let offered = backend.get_features().unwrap();
    backend.set_features(offered & !feature::EVENT_IDX).unwrap();
    backend.set_inflight_fd(&kept.inflight, kept.file()).unwrap();
    backend.set_vring_num(0, SIZE.into()).unwrap();
    backend.set_vring_base(0, base).unwrap();
    backend.set_vring_addr(0, VhostUserVringAddrFlags::empty(), 0, 0x2000, 0x1000, 0).unwrap();
    backend.set_vring_kick(0, Some(File::open("/dev/null").unwrap())).unwrap();
    backend.set_vring_enable(0, true).unwrap();
}

fn new_device(dispatcher: &Dispatcher, memory_of: &mut Device) -> Device {
    let export = crate::exports::ExportId(0);
    let mut device = Device::new(export, dispatcher.exports.get(export).clone(), 3, 9);
    device.memory = std::mem::take(&mut memory_of.memory);
    device
}

/// A guest whose frontend keeps a log.
fn guest_with_log() -> (Guest, Dispatcher, MemoryDisks, Kept) {
    let (mut guest, dispatcher, disks) = world();
    let mut backend = Backend::new(new_device(&dispatcher, &mut guest.device));
    let kept = Kept::new(&mut backend);
    begin(&mut backend, &kept, 0);
    guest.device = backend.device;
    (guest, dispatcher, disks, kept)
}

/// The server is killed: what it was asked to do may have been done, or not. Another one begins.
fn kill(guest: &mut Guest, kept: &Kept) -> (Dispatcher, MemoryDisks) {
    let (_, dispatcher, disks) = world();
    // As QEMU does when a server is gone: the used index.
    let used = guest.get(guest.at(0) + 0x2000 + 2, 2);
    let mut backend = Backend::new(new_device(&dispatcher, &mut guest.device));
    begin(&mut backend, kept, u16::from_le_bytes([used[0], used[1]]).into());
    guest.device = backend.device;
    (dispatcher, disks)
}

#[test]
fn requests_in_flight_are_carried_out_by_the_next_server_and_only_those() {
    let (mut guest, mut dispatcher, mut disks, kept) = guest_with_log();
    let ended = guest.ask(kind::FLUSH, 0, &[], &[]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    guest.put(DATA, &[7; 512]);
    let write = guest.ask(kind::OUT, 3, &[(DATA, 512)], &[]);
    let read = guest.ask(kind::IN, 3, &[], &[(DATA + 4096, 512)]);
    // Taken, and then nothing.
    assert!(guest.device.take(&mut dispatcher).unwrap());
    let later = guest.ask(kind::FLUSH, 0, &[], &[]);
    let (mut dispatcher, mut disks) = kill(&mut guest, &kept);
    assert!(guest.device.ask_for_kicks(&dispatcher), "nobody kicks for what was taken before");
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    let heads: Vec<u16> = std::iter::from_fn(|| guest.came_back(0)).map(|(head, _)| head).collect();
    assert_eq!(heads, [ended, write, read, later]);
    assert!(heads.iter().all(|head| guest.status(*head) == BlkStatus::Ok.code()));
    assert_eq!(guest.get(DATA + 4096, 512), [7; 512], "in their order");
    check_clean(&guest, &dispatcher);
    let (mut dispatcher, _) = kill(&mut guest, &kept);
    assert!(!guest.device.take(&mut dispatcher).unwrap(), "nothing is left");
}

#[test]
fn random_kills_leave_every_request_answered_once() {
    for seed in 0..40 {
        let mut prng = Prng::new(seed);
        let (mut guest, mut dispatcher, mut disks, kept) = guest_with_log();
        let (mut asked, mut came) = (Vec::new(), Vec::new());
        // Each takes two descriptors or three; 64 are there, and none is used twice.
        for _ in 0..20 {
            let kind = if prng.chance(1 << 31) { kind::FLUSH } else { kind::IN };
            let writable = if kind == kind::IN { vec![(DATA, 512)] } else { vec![] };
            asked.push(guest.ask(kind, 1, &[], &writable));
            match prng.below(4) {
                0 => drop(guest.device.take(&mut dispatcher).unwrap()),
                1 => guest.settle(&mut dispatcher, &mut disks).unwrap(),
                2 => {
                    // Ends come out of order.
                    guest.device.take(&mut dispatcher).unwrap();
                    disks.take(&mut dispatcher);
                    // Any of those that wait, or none.
                    disks.carry_out(usize::try_from(prng.below(3)).unwrap(), &mut dispatcher);
                    while let Some(done) = dispatcher.poll_done() {
                        guest.device.on_done(done, &mut dispatcher);
                    }
                }
                _ => (dispatcher, disks) = kill(&mut guest, &kept),
            }
            came.extend(std::iter::from_fn(|| guest.came_back(0)).map(|(head, _)| head));
        }
        guest.settle(&mut dispatcher, &mut disks).unwrap();
        came.extend(std::iter::from_fn(|| guest.came_back(0)).map(|(head, _)| head));
        came.sort_unstable();
        assert_eq!(came, asked, "seed {seed}");
        check_clean(&guest, &dispatcher);
    }
}

#[test]
fn a_chain_by_way_of_another_table_is_found_again() {
    let (mut guest, mut dispatcher, _, kept) = guest_with_log();
    let (table, header, status) = (0x2_0000, 0x2_1000, 0x2_2000);
    guest.put(header, &Header { kind: kind::IN, sector: 0 }.encode());
    guest.put(DATA, &[1; 512]);
    guest.descriptor(table, 0, (header, 16), NEXT, 1);
    guest.descriptor(table, 1, (DATA, 512), NEXT | WRITE, 2);
    guest.descriptor(table, 2, (status, 1), WRITE, 0);
    guest.put(status, &[0xEE]);
    guest.descriptor(0, 9, (table, 48), INDIRECT, 0);
    guest.offer(0, 9);
    assert!(guest.device.take(&mut dispatcher).unwrap());
    let (mut dispatcher, mut disks) = kill(&mut guest, &kept);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!((guest.came_back(0), guest.get(status, 1)), (Some((9, 513)), vec![0]));
    // Tables that cannot be: within a table, of half a descriptor, and one that goes round.
    for (bytes, flags, next) in [(16, INDIRECT, 0), (17, INDIRECT, 0), (16, NEXT, 11)] {
        let (mut guest, mut dispatcher, _, kept) = guest_with_log();
        guest.put(header, &Header { kind: kind::FLUSH, sector: 0 }.encode());
        guest.descriptor(0, 11, (header, 16), NEXT, 12);
        guest.descriptor(0, 12, (status, 1), WRITE, 0);
        guest.offer(0, 11);
        assert!(guest.device.take(&mut dispatcher).unwrap());
        guest.descriptor(table, 0, (table, 16), INDIRECT, 0);
        guest.descriptor(0, 11, (table, bytes), flags, next);
        let (mut dispatcher, _) = kill(&mut guest, &kept);
        let protocol_error = guest.device.take(&mut dispatcher).unwrap_err();
        assert!(protocol_error.sentence.contains("broken"), "{}", protocol_error.sentence);
    }
}

#[test]
fn a_ring_that_is_to_stop_ends_what_was_taken_before_first() {
    let (mut guest, mut dispatcher, _, kept) = guest_with_log();
    let head = guest.ask(kind::FLUSH, 0, &[], &[]);
    assert!(guest.device.take(&mut dispatcher).unwrap());
    let later = guest.ask(kind::FLUSH, 0, &[], &[]);
    let (mut dispatcher, mut disks) = kill(&mut guest, &kept);
    guest.device.rings[0].paused = true;
    assert!(!guest.device.rings[0].is_idle());
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert!(guest.device.rings[0].is_idle());
    assert_eq!([guest.came_back(0), guest.came_back(0)], [Some((head, 1)), None], "not chain {later}");
    // One that may not run keeps it in the log.
    let (mut guest, mut dispatcher, _, kept) = guest_with_log();
    guest.ask(kind::FLUSH, 0, &[], &[]);
    assert!(guest.device.take(&mut dispatcher).unwrap());
    let (mut dispatcher, _) = kill(&mut guest, &kept);
    guest.device.rings[0].enabled = false;
    assert!(!guest.device.take(&mut dispatcher).unwrap() && guest.device.rings[0].is_idle());
    let (mut dispatcher, mut disks) = kill(&mut guest, &kept);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert!(guest.came_back(0).is_some());
}

#[test]
fn a_reset_forgets_what_is_in_flight() {
    let (mut guest, mut dispatcher, _, kept) = guest_with_log();
    guest.ask(kind::FLUSH, 0, &[], &[]);
    assert!(guest.device.take(&mut dispatcher).unwrap());
    let (dispatcher, _) = kill(&mut guest, &kept);
    let mut backend = Backend::new(new_device(&dispatcher, &mut guest.device));
    begin(&mut backend, &kept, 0);
    assert!(backend.set_inflight_fd(&kept.inflight, kept.file()).unwrap_err().to_string().contains("runs"));
    backend.reset_device().unwrap();
    guest.device = backend.device;
    let (mut dispatcher, _) = kill(&mut guest, &kept);
    assert!(guest.device.rings[0].is_idle(), "nothing is to be carried out again");
    // The index of what the guest offers was not reset here: its request is a new one.
    assert!(guest.device.take(&mut dispatcher).unwrap() && !guest.device.is_idle());
}
