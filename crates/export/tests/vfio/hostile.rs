//! Guests that do what none may: they are refused or dropped, and the next one is served.

use crate::guest::{ENABLE, Guest, MEMORY, MEMORY_BYTES};
use crate::world::World;
use ocssd_lightnvm::Status;
use ocssd_nvme::sqe::ReadWrite;
use ocssd_nvme::{HostAddress, Lba, Sqe};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// A message of vfio-user: its header, and what follows.
fn message(command: u16, size: u32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, 0];
    bytes.extend(command.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(rest);
    bytes
}

/// A message of the length it says.
fn sound(command: u16, rest: &[u8]) -> Vec<u8> {
    message(command, u32::try_from(16 + rest.len()).expect("small"), rest)
}

/// An access to a region: offset, region, count.
fn access(offset: u64, region: u32, count: u32) -> Vec<u8> {
    [offset.to_le_bytes().as_slice(), &region.to_le_bytes(), &count.to_le_bytes()].concat()
}

#[test]
fn messages_without_sense_end_at_most_their_guest() {
    let world = World::new();
    let version = [0u8, 0, 1, 0];
    let mut garbage = vec![0; 4096];
    let mut prng = ocssd_base::Prng::new(11);
    garbage.iter_mut().for_each(|byte| *byte = prng.next_u64().to_le_bytes()[0]);
    let table: Vec<Vec<u8>> = vec![
        Vec::new(),
        vec![1],
        garbage,
        sound(99, &[]),
        // A version that is shorter than itself, no text, or has no end.
        message(1, 4, &version),
        message(1, u32::MAX, &version),
        sound(1, &[version.as_slice(), b"{\0x"].concat()),
        sound(1, &[version.as_slice(), b"[]\0"].concat()),
        // Regions that are not there, or not so large.
        sound(9, &access(0, 3, 4)),
        sound(9, &access(0, 77, 4)),
        sound(9, &access(0x3FFE, 0, 4)),
        sound(9, &access(0, 0, u32::MAX)),
        sound(9, &access(u64::MAX, 7, 1)),
        sound(10, &[access(0x4000, 0, 4), vec![0; 4]].concat()),
        sound(10, &access(0, 0, 1 << 20)),
        // Interrupts that are not there: argsz, flags, index, start, count.
        sound(8, &[20u32, 1 << 2 | 1 << 5, 2, 60, 9].map(u32::to_le_bytes).concat()),
        sound(8, &[20u32, 1 << 2 | 1 << 5, 0, 0, 1].map(u32::to_le_bytes).concat()),
        sound(8, &[20u32, 1 << 2 | 1 << 3, 2, u32::MAX, u32::MAX].map(u32::to_le_bytes).concat()),
        // Memory that wraps, or is none: argsz, flags, offset, address, size.
        sound(2, &[0u64, 0, u64::MAX, 2].map(u64::to_le_bytes).concat()),
        sound(2, &[0u64, 0, 0, 0].map(u64::to_le_bytes).concat()),
        sound(3, &[0u64, u64::MAX, u64::MAX].map(u64::to_le_bytes).concat()),
    ];
    for bytes in &table {
        let mut stream = UnixStream::connect(&world.path).expect("the listener thread is open");
        // Whoever is dropped in the middle of a word is dropped.
        let _ = stream.write_all(bytes);
        stream.shutdown(std::net::Shutdown::Write).expect("it is connected");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
    }
    let guest = Guest::ready(&world);
    drop(guest);
    world.stop();
}

#[test]
fn memory_that_is_lent_wrongly_is_refused() {
    let world = World::new();
    let mut guest = Guest::ready(&world);
    // The client does not look at refusals, so what counts is that the memory that is there still works.
    guest.lend();
    let fd = std::fs::File::open("/dev/null").expect("it is there");
    let fd = std::os::fd::AsRawFd::as_raw_fd(&fd);
    guest.client.dma_map(0, 0x1000, 0x1000, fd).expect("an answer");
    guest.client.dma_map(0, u64::MAX - 0xFFF, 0x2000, fd).expect("an answer");
    guest.make_queue(1);
    assert!(guest.carry_out(1, Sqe::flush(1)).status.status.is_success());
    let read = ReadWrite { slba: Lba(0), block_count: 1, limited_retry: false, force_unit_access: false };
    let nowhere = Sqe::read(1, read).with_prps(HostAddress(0x1000), HostAddress(0));
    assert_eq!(guest.carry_out(1, nowhere).status.status, Status::DATA_TRANSFER_ERROR);
    drop(guest);
    world.stop();
}

#[test]
fn memory_that_goes_in_the_middle_is_a_fatal_status_until_it_is_back() {
    let world = World::new();
    let mut guest = Guest::ready(&world);
    guest.make_queue(1);
    for _ in 0..4 {
        guest.submit(1, Sqe::flush(1));
    }
    guest.client.dma_unmap(MEMORY, MEMORY_BYTES).expect("an answer");
    guest.set_register(0x1008, 5);
    guest.wait_register(0x1C, 1 | 2);
    guest.set_register(0x14, ENABLE & !1);
    guest.lend();
    guest.enable();
    guest.make_queue(1);
    assert!(guest.carry_out(1, Sqe::flush(1)).status.status.is_success());
    drop(guest);
    let (counters, _) = world.stop();
    assert_eq!(counters.fatals, 1);
}
