//! What no sound guest does: a status that says so, or the end of its connection; never more than that.

use super::{check_clean, world};
use crate::vhost_user_blk::guest::{FREE, Guest, INDIRECT, MEMORY_BYTES, NEXT, SIZE, WRITE};
use crate::vhost_user_blk::request::{Header, kind};

const DATA: u64 = 0x4_0000;
const END: u64 = 1 << 20;

const _: () = assert!(MEMORY_BYTES == 1 << 20);

/// A request of these segments ends with an error, and the device goes on.
fn check_error(kind: u32, sector: u64, readable: &[(u64, u32)], writable: &[(u64, u32)]) {
    let (mut guest, mut dispatcher, mut disks) = world();
    let head = guest.ask(kind, sector, readable, writable);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!(guest.status(head), 1, "{kind} {sector} {readable:?} {writable:?}");
    assert_eq!(guest.came_back(0), Some((head, 1)));
    assert!(disks.log.is_empty(), "something was done");
    let next = guest.ask(kind::IN, 0, &[], &[(DATA, 512)]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!((guest.status(next), dispatcher.stats.errors), (0, 1));
    check_clean(&guest, &dispatcher);
}

/// A chain that a guest lays ends its connection with a sentence that has this in it.
fn check_end(expected: &str, lay: impl FnOnce(&mut Guest)) {
    let (mut guest, mut dispatcher, mut disks) = world();
    lay(&mut guest);
    let protocol_error = guest.settle(&mut dispatcher, &mut disks).expect_err(expected);
    assert!(protocol_error.sentence.contains(expected), "{protocol_error}");
    assert_eq!((dispatcher.open_jobs(), dispatcher.pool.lent()), (0, 0));
}

#[test]
fn addresses_and_lengths_beyond_memory_are_errors() {
    let inside = (DATA, 512);
    check_error(kind::IN, 0, &[], &[(END, 512)]);
    check_error(kind::IN, 0, &[], &[inside, (END - 511, 512)]);
    check_error(kind::OUT, 0, &[(u64::MAX - 100, 512)], &[]);
    check_error(kind::OUT, 0, &[inside, (u64::MAX, 512)], &[]);
    check_error(kind::IN, 0, &[], &[(DATA, u32::MAX - 100)]);
    check_error(kind::IN, 0, &[], &[(DATA, 1 << 31), (DATA, 1 << 30)]);
    check_error(kind::OUT, 0, &[(DATA, 33 << 20)], &[]);
    check_error(kind::DISCARD, 0, &[(END, 16)], &[]);
    check_error(kind::DISCARD, 0, &[(DATA, 1 << 30)], &[]);
    check_error(kind::IN, u64::MAX, &[], &[inside]);
    check_error(kind::OUT, 4096, &[inside], &[]);
    check_error(kind::IN, 0, &[], &[(DATA, 511)]);
    check_error(kind::IN, 0, &[inside], &[]);
    check_error(kind::GET_ID, 0, &[], &[]);
}

#[test]
fn a_header_that_is_short_or_not_there_is_an_error() {
    for header in [(DATA, 15), (END, 16), (DATA, 0)] {
        let (mut guest, mut dispatcher, mut disks) = world();
        let head = guest.chain(0, &[header], &[(FREE, 1)]);
        guest.settle(&mut dispatcher, &mut disks).unwrap();
        assert_eq!((guest.get(FREE, 1)[0], guest.came_back(0)), (1, Some((head, 1))), "{header:?}");
        check_clean(&guest, &dispatcher);
    }
}

#[test]
fn what_may_be_read_behind_what_may_be_written_is_an_error() {
    let (mut guest, mut dispatcher, mut disks) = world();
    guest.put(DATA, &Header { kind: kind::OUT, sector: 0 }.encode());
    let table = guest.at(0);
    guest.descriptor(table, 0, (DATA, 16), NEXT, 1);
    guest.descriptor(table, 1, (DATA + 64, 1), NEXT | WRITE, 2);
    guest.descriptor(table, 2, (DATA, 512), 0, 0);
    guest.offer(0, 0);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!((guest.get(DATA + 64, 1), guest.came_back(0)), (vec![1], Some((0, 1))));
    assert!(disks.log.is_empty());
}

#[test]
fn unknown_requests_are_unsupported() {
    let (mut guest, mut dispatcher, mut disks) = world();
    let head = guest.ask(77, 0, &[(DATA, 512)], &[(DATA, 512)]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!((guest.status(head), dispatcher.stats.errors), (2, 1));
    check_clean(&guest, &dispatcher);
}

#[test]
fn chains_without_an_end_or_a_status_end_the_connection() {
    check_end("no byte for its status", |guest| {
        guest.chain(0, &[(DATA, 16)], &[]);
    });
    check_end("no byte for its status", |guest| {
        guest.chain(0, &[(DATA, 16)], &[(END, 1)]);
    });
    check_end("no byte for its status", |guest| {
        guest.chain(0, &[(DATA, 16)], &[(u64::MAX, 2)]);
    });
    check_end("Torn", |guest| {
        // A loop.
        guest.descriptor(guest.at(0), 0, (DATA, 16), NEXT, 1);
        guest.descriptor(guest.at(0), 1, (DATA, 16), NEXT, 0);
        guest.offer(0, 0);
    });
    check_end("Torn", |guest| {
        guest.descriptor(guest.at(0), 0, (DATA, 16), NEXT, SIZE);
        guest.offer(0, 0);
    });
    check_end("Torn", |guest| guest.offer(0, SIZE));
    check_end("Torn", |guest| guest.offer(0, u16::MAX));
    check_end("Torn", |guest| {
        // Together longer than 2^32 bytes.
        guest.descriptor(guest.at(0), 0, (DATA, u32::MAX), NEXT, 1);
        guest.descriptor(guest.at(0), 1, (DATA, u32::MAX), WRITE, 0);
        guest.offer(0, 0);
    });
}

#[test]
fn tables_that_are_none_end_the_connection() {
    for (address, bytes) in [(DATA, 15), (DATA, 0), (END, 16), (u64::MAX - 8, 32), (DATA, u32::MAX - 15)] {
        check_end("Torn", |guest| {
            guest.descriptor(guest.at(0), 0, (address, bytes), INDIRECT, 0);
            guest.put(DATA, &[0xFF; 64]);
            guest.offer(0, 0);
        });
    }
    check_end("Torn", |guest| {
        // A table within a table.
        guest.descriptor(guest.at(0), 0, (DATA, 32), INDIRECT, 0);
        guest.descriptor(DATA, 0, (DATA, 32), INDIRECT, 0);
        guest.offer(0, 0);
    });
    check_end("Endless", |guest| {
        guest.descriptor(guest.at(0), 0, (DATA, 16 * 2000), INDIRECT, 0);
        (0..2000).for_each(|index| guest.descriptor(DATA, index, (0, 0), NEXT, index + 1));
        guest.offer(0, 0);
    });
}

#[test]
fn an_index_that_jumps_ends_the_connection() {
    check_end("further ahead", |guest| guest.claim(0, SIZE + 1));
    check_end("further ahead", |guest| guest.claim(1, u16::MAX));
}

#[test]
fn memory_that_goes_takes_nothing_with_it() {
    let (mut guest, mut dispatcher, mut disks) = world();
    guest.ask(kind::IN, 0, &[], &[(DATA, 512)]);
    guest.ask(kind::OUT, 8, &[(DATA, 512)], &[]);
    guest.device.take(&mut dispatcher).unwrap();
    guest.device.memory.clear();
    disks.take(&mut dispatcher);
    while disks.carry_out(0, &mut dispatcher) {}
    while let Some(done) = dispatcher.poll_done() {
        guest.device.on_done(done, &mut dispatcher);
    }
    check_clean(&guest, &dispatcher);
    let gone = guest.device.take(&mut dispatcher).expect_err("there is no ring any more");
    assert!(gone.sentence.contains("cannot be read"), "{gone}");
}

#[test]
fn the_same_descriptors_may_be_offered_twice_and_are_two_requests() {
    let (mut guest, mut dispatcher, mut disks) = world();
    let head = guest.ask(kind::IN, 0, &[], &[(DATA, 512)]);
    guest.offer(0, head);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!([guest.came_back(0), guest.came_back(0)], [Some((head, 513)); 2]);
    check_clean(&guest, &dispatcher);
}
