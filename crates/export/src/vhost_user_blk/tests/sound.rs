//! What a sound guest asks is done.

use super::{check_clean, world};
use crate::exports::ExportId;
use crate::memory_disk::MemoryDisks;
use crate::vhost_user_blk::guest::Guest;
use crate::vhost_user_blk::request::{FLAG_UNMAP, SectorRange, kind};
use ocssd_lightnvm::TargetId;
use ocssd_lightnvm::block::BlockOp;

/// Where these tests keep data.
const DATA: u64 = 0x4_0000;

fn ranges(list: &[(u64, u32, u32)]) -> Vec<u8> {
    list.iter().flat_map(|&(sector, count, flags)| SectorRange { sector, count, flags }.encode()).collect()
}

#[test]
fn writes_and_reads_go_where_their_descriptors_say() {
    let (mut guest, mut dispatcher, mut disks) = world();
    let data: Vec<u8> = (0..1536_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    guest.put(DATA, &data);
    let write = guest.ask(kind::OUT, 4, &[(DATA, 700), (DATA + 700, 836)], &[]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!((guest.status(write), guest.came_back(0)), (0, Some((write, 1))));
    assert!(disks.disks[0][4 * 512..][..1536] == data[..]);
    let read = guest.ask(kind::IN, 4, &[], &[(DATA + 0x8000, 512), (DATA + 0x9001, 1024)]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!((guest.status(read), guest.came_back(0)), (0, Some((read, 1537))));
    assert!(guest.get(DATA + 0x8000, 512) == data[..512] && guest.get(DATA + 0x9001, 1024) == data[512..]);
    assert_eq!((dispatcher.stats.received_copied_bytes, dispatcher.stats.sent_copied_bytes), (1536, 1536));
    check_clean(&guest, &dispatcher);
}

#[test]
fn long_requests_wait_for_pieces_and_end_once() {
    let (mut guest, mut dispatcher, mut disks) = world();
    disks.disks[0]
        .iter_mut()
        .zip(0_u32..)
        .for_each(|(byte, at)| *byte = u8::try_from(at / 512 % 253).unwrap());
    let bytes = 600 << 10;
    let heads: Vec<u16> = (0..4).map(|round| guest.ask(kind::IN, 8 * round, &[], &[(DATA, bytes)])).collect();
    guest.device.take(&mut dispatcher).unwrap();
    assert!(guest.device.waits_for_room(), "there is one piece of that size");
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    let back: Vec<_> = std::iter::from_fn(|| guest.came_back(0)).collect();
    assert_eq!(back, heads.iter().map(|head| (*head, bytes + 1)).collect::<Vec<_>>());
    assert!(guest.get(DATA, 600 << 10) == disks.disks[0][24 * 512..][..600 << 10]);
    check_clean(&guest, &dispatcher);
}

#[test]
fn headers_may_be_cut_and_tables_may_lie_elsewhere() {
    let (mut guest, mut dispatcher, mut disks) = world();
    disks.disks[0][..512].fill(5);
    guest.put(DATA, &[0; 16]);
    // Header in three parts, payload and status in one.
    let head = guest.chain(0, &[(DATA, 4), (DATA + 4, 0), (DATA + 4, 12)], &[(DATA + 64, 513)]);
    // The same as a table of its own.
    let table = DATA + 0x1000;
    guest.descriptor(table, 0, (DATA, 16), 1, 2);
    guest.descriptor(table, 2, (DATA + 0x2000, 513), 2, 0);
    guest.descriptor(guest.at(1), 7, (table, 48), 4, 0);
    guest.offer(1, 7);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!((guest.came_back(0), guest.came_back(1)), (Some((head, 513)), Some((7, 513))));
    let expected = [vec![5; 512], vec![0]].concat();
    assert!(guest.get(DATA + 64, 513) == expected && guest.get(DATA + 0x2000, 513) == expected);
    check_clean(&guest, &dispatcher);
}

#[test]
fn ranges_are_discarded_and_zeroed_one_by_one() {
    let (mut guest, mut dispatcher, mut disks) = world();
    disks.disks[0].fill(9);
    guest.put(DATA, &ranges(&[(0, 8, 0), (100, 1, 0)]));
    let discard = guest.ask(kind::DISCARD, 0, &[(DATA, 32)], &[]);
    guest.put(DATA + 64, &ranges(&[(8, 4, 0), (16, 1024, FLAG_UNMAP)]));
    let zeroes = guest.ask(kind::WRITE_ZEROES, 0, &[(DATA + 64, 32)], &[]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!((guest.status(discard), guest.status(zeroes)), (0, 0));
    let zero = |range: std::ops::Range<usize>| {
        disks.disks[0][range.start * 512..range.end * 512].iter().all(|b| *b == 0)
    };
    assert!(zero(0..12) && zero(16..1040) && zero(100..101) && disks.disks[0][12 * 512] == 9);
    let ops: Vec<BlockOp> = disks.log.iter().map(|(_, op)| *op).collect();
    let write = BlockOp::Write { fua: false };
    assert_eq!(ops, [BlockOp::Discard, BlockOp::Discard, write, BlockOp::WriteZeroes]);
    assert_eq!((dispatcher.stats.trims, dispatcher.stats.zeroes, dispatcher.stats.errors), (1, 1, 0));
    check_clean(&guest, &dispatcher);
}

#[test]
fn a_flush_is_a_flush_and_a_name_is_told() {
    let (mut guest, mut dispatcher, mut disks) = world();
    let flush = guest.ask(kind::FLUSH, 0, &[], &[]);
    let name = guest.ask(kind::GET_ID, 0, &[], &[(DATA, 20)]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!((guest.status(flush), guest.status(name)), (0, 0));
    assert_eq!(disks.log, [(TargetId(0), BlockOp::Flush)]);
    assert_eq!(guest.get(DATA, 20), b"a-00000006\0\0\0\0\0\0\0\0\0\0");
    let back: Vec<_> = std::iter::from_fn(|| guest.came_back(0)).collect();
    assert!(back.contains(&(name, 21)) && back.contains(&(flush, 1)), "{back:?}");
}

#[test]
fn without_write_back_what_ends_is_durable() {
    let (mut guest, mut dispatcher, mut disks) = world();
    guest.device.writeback = false;
    guest.put(DATA, &ranges(&[(8, 4, FLAG_UNMAP)]));
    guest.ask(kind::OUT, 0, &[(DATA + 512, 512)], &[]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    guest.ask(kind::WRITE_ZEROES, 0, &[(DATA, 16)], &[]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    guest.ask(kind::IN, 0, &[], &[(DATA, 512)]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    let ops: Vec<BlockOp> = disks.log.iter().map(|(_, op)| *op).collect();
    assert_eq!(ops, [BlockOp::Write { fua: true }, BlockOp::WriteZeroes, BlockOp::Flush, BlockOp::Read]);
    assert_eq!(dispatcher.stats.fuas, 2);
}

#[test]
fn a_failure_of_the_target_is_an_error_and_a_read_only_device_changes_nothing() {
    let (mut guest, mut dispatcher, mut disks) = world();
    disks.bad = 3..5;
    let bad = guest.ask(kind::IN, 0, &[], &[(DATA, 4096)]);
    let good = guest.ask(kind::IN, 8, &[], &[(DATA, 4096)]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!((guest.status(bad), guest.status(good), dispatcher.stats.errors), (1, 0, 1));
    check_clean(&guest, &dispatcher);
    let (mut dispatcher, mut disks) = MemoryDisks::new(&[("", 8), ("b-ro", 64)], [4, 1, 1]);
    let mut guest = Guest::new(&dispatcher, ExportId(1));
    let write = guest.ask(kind::OUT, 0, &[(DATA, 512)], &[]);
    let read = guest.ask(kind::IN, 0, &[], &[(DATA, 512)]);
    guest.settle(&mut dispatcher, &mut disks).unwrap();
    assert_eq!((guest.status(write), guest.status(read)), (1, 0));
    assert_eq!(disks.log, [(TargetId(1), BlockOp::Read)]);
}
