//! Any mix of overlapping requests gives what a naive model says, and every queue has an end.

use super::model::{LARGEST, Model};
use ocssd_base::Prng;
use ocssd_lightnvm::block::BlockOp;
use ocssd_lightnvm::{Status, Target};
use ocssd_targets::small_blocks::REQUESTS_MAX;

fn draw(prng: &mut Prng, blocks: u64, longest: u64) -> (BlockOp, u64, u32) {
    let op = match prng.below(100) {
        0..30 => BlockOp::Read,
        30..80 => BlockOp::Write { fua: prng.below(8) == 0 },
        80..88 => BlockOp::WriteZeroes,
        88..95 => BlockOp::Discard,
        _ => return (BlockOp::Flush, 0, 0),
    };
    // Half of them begin with a sector.
    let count = 1 + prng.below(longest);
    let block = prng.below(blocks - count + 1);
    let block = if prng.below(2) == 0 { block / 8 * 8 } else { block };
    (op, block, u32::try_from(count).expect("small"))
}

fn run(seed: u64, sectors: usize, longest: u64, depth: usize, inner_depth: usize) -> Model {
    let label = format!("seed {seed}, {sectors} sectors, up to {longest} blocks, depth {depth}");
    let mut model = Model::new(sectors, inner_depth, depth, &label, seed);
    let mut prng = Prng::new(seed).split("requests");
    for _ in 0..500 {
        let most = usize::try_from(prng.below(u64::try_from(depth).expect("few"))).expect("few");
        model.drain_to(most);
        let (op, block, count) = draw(&mut prng, model.blocks(), longest);
        assert!(model.send(op, block, count), "{label}: no room");
    }
    model.drain_to(0);
    model.check_content();
    model
}

#[test]
fn overlapping_requests_of_any_alignment_do_what_the_model_says() {
    let (mut merges, mut waits, mut refused) = (0, 0, 0);
    for seed in 0..8 {
        let model = run(seed, 6, 30, 20, 3);
        let stats = model.target.stats();
        merges += stats.rmw_requests;
        waits += stats.order_waits;
        refused += model.disk.borrow().refused;
        assert!(model.failed.is_empty(), "seed {seed}: {:?}", model.failed);
    }
    assert!(
        merges > 1000 && waits > 1000 && refused > 500,
        "{merges} merges, {waits} waits, {refused} refused"
    );
}

#[test]
fn requests_longer_than_a_copy_do_what_the_model_says() {
    for seed in 0..4 {
        let model = run(seed, 100, u64::from(LARGEST), 60, 8);
        let stats = *model.target.stats();
        assert!(stats.copied_sectors > 2000 && stats.straight_sectors > 2000, "seed {seed}: {stats:?}");
    }
}

#[test]
fn more_merges_than_buffers_wait_and_end() {
    let mut model = Model::new(64, 7, 400, "400 merges at once", 1);
    for round in 0..400 {
        assert!(model.send(BlockOp::Write { fua: false }, round % 60 * 8 + 5, 6), "request {round}");
    }
    assert_eq!(model.in_flight(), 400);
    model.drain_to(0);
    model.check_content();
    assert_eq!((model.target.stats().rmw_requests, model.target.stats().rmw_read_sectors), (400, 800));
}

#[test]
fn a_full_target_refuses_and_takes_more_after_a_reply() {
    let places = usize::try_from(REQUESTS_MAX).expect("few");
    let mut model = Model::new(8, 3, places + 1, "full", 1);
    for number in 0..u64::from(REQUESTS_MAX) {
        assert!(model.send(BlockOp::Write { fua: false }, number % 60, 3), "request {number}");
    }
    assert!(!model.send(BlockOp::Read, 0, 1), "one more than there are places");
    assert!(!model.send(BlockOp::Flush, 0, 0), "nor a flush");
    model.drain_to(places - 1);
    assert!(model.send(BlockOp::Read, 0, 1), "there is room again");
    model.drain_to(0);
    model.check_content();
}

#[test]
fn whole_sectors_go_straight_through_in_one_piece() {
    let mut model = Model::new(64, 64, 8, "whole sectors", 1);
    for (op, block, count) in [
        (BlockOp::Write { fua: true }, 8, 256),
        (BlockOp::WriteZeroes, 16, 8),
        (BlockOp::Discard, 32, 64),
        (BlockOp::Read, 0, 300),
    ] {
        assert!(model.send(op, block, count));
        model.drain_to(0);
    }
    let asked: Vec<_> =
        model.disk.borrow().asked.iter().map(|request| (request.op, request.block, request.count)).collect();
    let expected = [
        (BlockOp::Write { fua: true }, 1, 32),
        (BlockOp::WriteZeroes, 2, 1),
        (BlockOp::Discard, 4, 8),
        (BlockOp::Read, 0, 38),
    ];
    assert_eq!(asked, expected);
    let stats = model.target.stats();
    assert_eq!((stats.copied_sectors, stats.straight_sectors, stats.rmw_requests), (0, 70, 0));
}

#[test]
fn edges_are_merged_and_the_middle_is_not_copied_where_it_lies_on_the_buffers_sectors() {
    let mut model = Model::new(64, 64, 8, "an edge behind", 1);
    assert!(model.send(BlockOp::Write { fua: true }, 8, 19));
    model.drain_to(0);
    let stats = *model.target.stats();
    assert_eq!((stats.straight_sectors, stats.copied_sectors, stats.rmw_written_sectors), (2, 0, 1));
    let asked = model.disk.borrow().asked.clone();
    let durable = asked.iter().filter(|request| request.op == BlockOp::Write { fua: true }).count();
    assert_eq!((asked.len(), asked[0].op, durable), (3, BlockOp::Read, 2), "{asked:?}");
    model.check_content();
}

#[test]
fn what_stands_beside_discarded_sectors_stays_and_is_counted() {
    let mut model = Model::new(8, 8, 8, "discard", 1);
    assert!(model.send(BlockOp::Write { fua: false }, 0, 64));
    model.drain_to(0);
    assert!(model.send(BlockOp::Discard, 3, 20));
    assert!(model.send(BlockOp::Discard, 33, 3), "nothing whole");
    model.drain_to(0);
    model.check_content();
    assert_eq!(model.target.stats().discard_ignored_blocks, 5 + 7 + 3);
    assert_eq!(model.target.counters().last().map(|counter| counter.name), Some("discard_ignored_blocks"));
}

#[test]
fn a_shutdown_comes_last_and_nothing_after_it() {
    let mut model = Model::new(8, 2, 40, "shutdown", 3);
    for block in 0..30 {
        assert!(model.send(BlockOp::Write { fua: false }, block, 5));
    }
    assert!(model.send(BlockOp::Shutdown, 0, 0));
    assert!(model.send(BlockOp::Read, 0, 1), "it is taken, to be refused");
    assert!(model.send(BlockOp::Shutdown, 0, 0));
    model.drain_to(0);
    let refused: Vec<_> = model.failed.iter().map(|(request, status)| (request.op, *status)).collect();
    let expected = [BlockOp::Read, BlockOp::Shutdown].map(|op| (op, Status::NAMESPACE_NOT_READY));
    assert_eq!(refused, expected);
    let disk = model.disk.borrow();
    assert_eq!(disk.asked.last().map(|request| request.op), Some(BlockOp::Shutdown));
    drop(disk);
    model.check_content();
    model.target.check();
}
