//! How much is taken before any of it is durable, and what is told of it meanwhile.

use crate::rig::Rig;
use ocssd_lightnvm::Admission;
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::log_structured::{LogAnswer, LogOp};

#[test]
fn two_of_the_longest_flushes_wait_and_one_more_is_taken_and_then_none() {
    let mut rig = Rig::new();
    let most = rig.limits().flush_bytes_max;
    for page in 0..3 {
        let op = rig.flush_of(&[(page, most)], Durability::AtFlush);
        assert_eq!(rig.offer(op), Admission::Taken, "{page} were taken before");
        rig.check();
    }
    let op = rig.flush_of(&[(3, 1)], Durability::AtFlush);
    assert_eq!(rig.offer(op), Admission::Full, "three are waiting");
    assert_eq!(rig.offer(LogOp::Sync), Admission::Taken, "what is no flush takes no memory");
    rig.go_on();
    assert_eq!(rig.offer(op), Admission::Taken, "there is room again");
    rig.go_on();
    (0..3).for_each(|page| rig.assert_found(page, most));
    rig.assert_found(3, 1);
}

#[test]
fn pages_are_counted_as_requests_see_them_whether_they_are_durable_or_not() {
    let mut rig = Rig::new();
    rig.flush(&[(1, 100), (2, 200), (3, 300)]);
    let books = |rig: &mut Rig, expected: (u64, u64)| {
        rig.check();
        assert_eq!((rig.count("pages"), rig.count("page_bytes")), expected);
    };
    books(&mut rig, (3, 600));
    // One is deleted, one is another length, one is new, one never was there; none of it is on its way to media yet.
    for (pages, expected) in [
        (&[(1, 0)][..], (2, 500)),
        (&[(2, 250), (4, 1_000)], (3, 1_550)),
        (&[(9, 0)], (3, 1_550)),
        (&[(1, 50)], (4, 1_600)),
        (&[(4, 0), (1, 0)], (2, 550)),
    ] {
        let op = rig.flush_of(pages, Durability::AtFlush);
        assert_eq!(rig.offer(op), Admission::Taken, "{pages:?}");
        books(&mut rig, expected);
    }
    assert_eq!(rig.offer(LogOp::Sync), Admission::Taken);
    rig.go_on();
    books(&mut rig, (2, 550));
    assert_eq!(rig.ask(LogOp::Stat).answer, LogAnswer::Stat { pages: 2, live_bytes: 550 });
    rig.assert_found(2, 250);
    rig.assert_found(3, 300);
}
