//! Many requests before any of them ends: as many are taken as the target has places for, and few of them read ahead.

use crate::rig::{Rig, key_of};
use ocssd_base::Nanos;
use ocssd_lightnvm::interface::key_value::{KvOp, KvRequest, StoreCondition};
use ocssd_lightnvm::interface::{Content, Durability};
use ocssd_lightnvm::{Admission, Buffers, Out, Status, Tag, TargetId};

/// Requests that wait for something (as pblk takes).
const REQUESTS_MAX: usize = 4_096;
/// Requests behind the first whose pages are read ahead (as many as pages are read at a time).
const AHEAD_MAX: u64 = 64;

/// Offers requests until one is refused, at most so many, and lets the target do nothing: those that were not answered at once.
fn offer(rig: &mut Rig, most: usize, op: impl Fn(u32) -> KvOp) -> (usize, Admission) {
    let mut out = Out::new(rig.host.take_buffers(), 0);
    let (mut taken, mut last) = (0, Admission::Taken);
    for tag in 0..u32::try_from(most).expect("few") {
        let request = KvRequest { tag: Tag(1_000_000 + tag), op: op(tag) };
        last = rig.host.target_mut(TargetId(0)).submit(Nanos(0), &request, &mut out);
        if !last.is_taken() {
            break;
        }
        taken += 1;
    }
    let waiting = taken - out.reply_count();
    out.replies_mut().0.clear();
    rig.host.return_buffers(std::mem::replace(&mut out.buffers, Buffers::new(rig.host.buffers().format())));
    (waiting, last)
}

#[test]
fn as_many_requests_wait_as_there_are_places_whatever_they_wait_for() {
    let mut rig = Rig::new(&[]);
    (0..200).for_each(|key| assert_eq!(rig.store(key, 1), Status::SUCCESS, "key {key}"));
    assert_eq!(rig.flush(), Status::SUCCESS);
    let piece = rig.room();
    let content = Content::Piece(piece);
    // Some wait until they are durable, and the others for the media.
    let (condition, durability) = (StoreCondition::Always, Durability::AtReply);
    let store = |key| KvOp::Store { key: key_of(key), content, condition, durability };
    assert_eq!(offer(&mut rig, 5, store), (5, Admission::Taken));
    let retrieve = |_| KvOp::Retrieve { key: key_of(20), offset: 0, into: content };
    assert_eq!(offer(&mut rig, 2 * REQUESTS_MAX, retrieve), (REQUESTS_MAX - 5, Admission::Full));
}

#[test]
fn pages_of_the_first_requests_that_wait_are_read_ahead_and_no_others() {
    let mut rig = Rig::new(&[("index_cache_bytes", "0"), ("index_page_bytes", "266")]);
    (0..2_400).for_each(|key| assert_eq!(rig.store(key, 1), Status::SUCCESS, "key {key}"));
    assert_eq!(rig.flush(), Status::SUCCESS);
    rig.let_page_leave(0);
    let piece = rig.room();
    let before = rig.count("index_reads");
    // Each is of a page of its own; the first of these keys are on media for long.
    let retrieve =
        |nth: u32| KvOp::Retrieve { key: key_of(nth * 20), offset: 0, into: Content::Piece(piece) };
    let (waiting, last) = offer(&mut rig, 100, retrieve);
    assert_eq!((waiting, last), (100, Admission::Taken));
    assert_eq!(rig.count("index_reads") - before, AHEAD_MAX, "a page for each");
}
