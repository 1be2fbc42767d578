//! Tests of the pool.

use super::*;

fn pool(payload: Payload) -> Buffers {
    Buffers::new(PayloadFormat::new(payload, &Geometry::example(1, 1, 1, 8, 8)))
}

#[test]
fn a_returned_buffer_is_used_again_and_sizes_are_kept_apart() {
    let mut pool = pool(Payload::Stamp);
    let small = pool.take(1);
    let large = pool.take(300);
    assert_eq!((pool.data(small, 0, 1).len(), pool.data(large, 10, 2).len()), (16, 32));
    assert_eq!(pool.addresses(large).len(), 300);
    pool.give_back(small);
    assert_ne!(pool.take(2), small);
    assert_eq!(pool.take(1), small);
}

#[test]
fn a_reclaimed_pool_is_taken_again_in_the_same_order() {
    let mut pool = pool(Payload::Stamp);
    let take = |pool: &mut Buffers| [pool.take(1), pool.take_whole(2), pool.take(1), pool.take(3)];
    let first = take(&mut pool);
    assert_eq!(pool.in_use(), 4);
    pool.reclaim();
    assert_eq!(pool.in_use(), 0);
    assert_eq!(take(&mut pool), first);
}

#[test]
fn whole_and_plain_buffers_of_stamps_are_kept_apart() {
    let mut pool = pool(Payload::Stamp);
    let (plain, whole) = (pool.take(2), pool.take_whole(2));
    assert_eq!((pool.is_whole(plain), pool.is_whole(whole)), (false, true));
    pool.give_back(plain);
    pool.give_back(whole);
    assert_eq!((pool.take_whole(2), pool.take(2)), (whole, plain));
    assert_eq!(pool.parts_mut(plain).whole, []);
}

#[test]
fn whole_bytes_are_copied_between_buffers_whatever_payload_is() {
    for payload in [Payload::Stamp, Payload::Bytes] {
        let mut pool = pool(payload);
        let (from, to) = (pool.take_whole(2), pool.take_whole(1));
        pool.whole_mut(from, 0, 2)[4000..4200].fill(5);
        pool.copy_whole((from, 3999), (to, 10), 202);
        let copied = &pool.whole(to, 0, 1)[10..212];
        assert_eq!((copied[0], copied[201], &copied[1..201]), (0, 0, &[5; 200][..]));
    }
}

#[test]
fn whole_bytes_lie_beside_the_stamps() {
    let mut pool = pool(Payload::Stamp);
    let whole = pool.take_whole(3);
    pool.data_mut(whole, 0, 3).fill(1);
    pool.whole_mut(whole, 1, 1).fill(7);
    assert_eq!(pool.data(whole, 0, 3), [1; 48]);
    assert_eq!((pool.whole(whole, 0, 1), pool.whole(whole, 2, 1)), (&[0; 4096][..], &[0; 4096][..]));
    assert_eq!(pool.whole(whole, 1, 1), [7; 4096]);
    let parts = pool.parts_mut(whole);
    assert_eq!((parts.data.len(), parts.oob.len(), parts.whole.len()), (48, 48, 3 * 4096));
}

#[test]
fn only_the_first_sectors_of_a_buffer_may_be_whole() {
    let mut stamps = pool(Payload::Stamp);
    let front = stamps.take_whole_front(4, 1);
    assert_eq!((stamps.sectors(front), stamps.parts_mut(front).whole.len()), (4, 4096));
    stamps.whole_mut(front, 0, 1).fill(7);
    assert!(stamps.is_whole(front));
    stamps.give_back(front);
    let others = [stamps.take_whole(4), stamps.take_whole_front(4, 0), stamps.take_whole_front(4, 2)];
    assert!(!others.contains(&front), "buffers of other sizes are others");
    assert_eq!((stamps.is_whole(others[1]), others.map(|id| stamps.whole_sectors(id))), (false, [4, 0, 2]));
    assert_eq!(stamps.take_whole_front(4, 1), front);
    let mut bytes = pool(Payload::Bytes);
    let all = bytes.take_whole_front(4, 1);
    assert_eq!(
        (bytes.whole(all, 3, 1).len(), bytes.whole_sectors(all)),
        (4096, 4),
        "with real bytes every buffer is whole"
    );
}

#[test]
fn a_sector_is_copied_with_its_metadata_and_without_its_neighbours() {
    let mut pool = pool(Payload::Stamp);
    let (from, to) = (pool.take(3), pool.take(2));
    pool.data_mut(from, 1, 2).fill(5);
    pool.oob_mut(from, 1, 2).fill(6);
    pool.copy_sectors(from, 2, to, 0, 1);
    assert_eq!((pool.data(to, 0, 1), pool.data(to, 1, 1)), (&[5; 16][..], &[0; 16][..]));
    assert!(pool.oob(to, 0, 1).iter().all(|&byte| byte == 6));
    assert!(pool.oob(to, 1, 1).iter().all(|&byte| byte == 0));
}

#[test]
fn with_real_bytes_every_buffer_is_whole_and_its_data_are_the_bytes() {
    let mut pool = pool(Payload::Bytes);
    let buffer = pool.take(2);
    assert!(pool.is_whole(buffer));
    pool.whole_mut(buffer, 1, 1).fill(9);
    assert_eq!(pool.data(buffer, 1, 1), [9; 4096]);
    assert_eq!(pool.whole(buffer, 0, 2), pool.data(buffer, 0, 2));
    assert_eq!(pool.parts_mut(buffer).whole, []);
    pool.give_back(buffer);
    assert_eq!(pool.take_whole(2), buffer, "there is one kind of buffer");
}

#[test]
fn small_blocks_of_real_bytes_lie_one_after_the_other() {
    let mut pool = pool(Payload::Bytes);
    let format = pool.format();
    let sectors = [1, 8, 9, 17].map(|blocks| format.sectors_of_blocks(blocks, 512));
    assert_eq!((sectors, format.block_place_bytes(512)), ([1, 1, 2, 3], 512));
    assert_eq!((format.sectors_of_blocks(9, 4096), format.block_place_bytes(4096)), (9, 4096));
    let (a, b) = (pool.take(2), pool.take(2));
    pool.bytes_mut(a, 4096 - 512, 1024).fill(3);
    assert_eq!((pool.data(a, 0, 1)[4095], pool.data(a, 1, 1)[511], pool.data(a, 1, 1)[512]), (3, 3, 0));
    pool.copy_bytes((a, 4096 - 512), (b, 5), 1024);
    assert_eq!((pool.bytes(b, 4, 3), pool.bytes(b, 1028, 2)), (&[0, 3, 3][..], &[3, 0][..]));
    pool.copy_bytes((b, 5), (b, 0), 1024);
    assert_eq!(pool.bytes(b, 0, 2), [3, 3]);
}

#[test]
fn a_stamp_has_a_sectors_place_whatever_the_blocks() {
    let format = pool(Payload::Stamp).format();
    assert_eq!((format.block_place_bytes(512), format.sectors_of_blocks(3, 512)), (STAMP_BYTES, 3));
}

#[test]
fn what_is_wanted_of_a_buffer_is_forgotten_with_its_owner() {
    let mut pool = pool(Payload::Bytes);
    let buffer = pool.take(2);
    assert_eq!(pool.wanted(buffer), None);
    pool.want(buffer, 4_000..4_200);
    assert_eq!(pool.wanted(buffer), Some(4_000..4_200));
    pool.want_all(buffer);
    assert_eq!(pool.wanted(buffer), None);
    pool.want(buffer, 0..1);
    pool.give_back(buffer);
    assert_eq!((pool.take(2), pool.wanted(buffer)), (buffer, None));
}

#[test]
fn a_plain_buffer_of_stamps_has_no_whole_bytes_to_give() {
    let mut pool = pool(Payload::Stamp);
    let plain = pool.take(1);
    let read = std::panic::catch_unwind(|| pool.whole(plain, 0, 1).len());
    assert!(read.is_err(), "stamps were handed out as whole sectors");
}
