//! Values that nobody stores again while others are stored all the time: their chunks take their share of wear.

use crate::rig::{Rig, VALUE_BYTES};
use ocssd_lightnvm::Status;

/// Percent of what fits that is stored once.
const COLD_PERCENT: u64 = 60;
/// Keys beside, each stored again and again.
const HOT: u32 = 60;
/// Times.
const ROUNDS: u32 = 2_000;

fn fill(key: u32, round: u32) -> u8 {
    u8::try_from((u64::from(key) * 31 + u64::from(round) * 7) % 251 + 1).expect("below 256")
}

fn check(rig: &mut Rig, keys: std::ops::Range<u32>, round: u32) {
    for key in keys {
        let (status, content) = rig.retrieve(key);
        assert!(status.is_success(), "key {key}: {status}");
        assert_eq!(content, [fill(key, round); VALUE_BYTES as usize], "key {key}");
    }
}

/// What a skewed load left behind.
#[derive(Debug)]
struct Left {
    /// Resets the least worn chunk is behind the most worn one, by the drive.
    spread: u32,
    /// What the target says of that.
    lag: u64,
    moves: u64,
    moved_bytes: u64,
    stored_bytes: u64,
    written_bytes: u64,
}

impl Left {
    fn print(&self, bound: &str) {
        let Self { spread, lag, moves, moved_bytes, stored_bytes, written_bytes } = self;
        println!(
            "bound {bound}: spread {spread}, known {lag}, {moves} chunks of {moved_bytes} bytes moved, {written_bytes} bytes written \
             for {stored_bytes} stored"
        );
    }
}

fn run(options: &[(&'static str, &'static str)], cuts: bool) -> Left {
    let mut rig = Rig::new(options);
    let cold = rig.values_in(COLD_PERCENT);
    for key in 0..cold {
        assert_eq!(rig.store(key, fill(key, 0)), Status::SUCCESS, "key {key}");
    }
    let mut counted = [0; 4];
    let mut round = 0;
    while round < ROUNDS {
        for key in cold..cold + HOT {
            assert_eq!(rig.store(key, fill(key, round)), Status::SUCCESS, "key {key}");
        }
        if cuts && round % 100 == 17 {
            assert_eq!(rig.flush(), Status::SUCCESS);
            counts(&rig, &mut counted);
            rig = rig.cut().expect("it mounts");
            check(&mut rig, 0..cold, 0);
            check(&mut rig, cold..cold + HOT, round);
        }
        round += 1;
    }
    check(&mut rig, 0..cold, 0);
    check(&mut rig, cold..cold + HOT, ROUNDS - 1);
    counts(&rig, &mut counted);
    let [moves, moved_bytes, stored_bytes, written_bytes] = counted;
    let cycles = rig.cycles();
    let (least, most) = (cycles.iter().min().expect("some"), cycles.iter().max().expect("some"));
    Left { spread: most - least, lag: rig.count("wear_lag"), moves, moved_bytes, stored_bytes, written_bytes }
}

fn counts(rig: &Rig, counted: &mut [u64; 4]) {
    let written = ["user_written_bytes", "gc_written_bytes", "index_written_bytes", "checkpoint_bytes"];
    let written: u64 = written.iter().map(|name| rig.count(name)).sum();
    let now = [rig.count("wear_moves"), rig.count("wear_moved_bytes"), rig.count("stored_bytes"), written];
    counted.iter_mut().zip(now).for_each(|(all, now)| *all += now);
}

#[test]
fn cold_values_take_their_share_of_wear_and_keep_what_they_hold() {
    let without = run(&[], false);
    without.print("none");
    assert_eq!((without.moves, without.lag), (0, 0), "nothing was to be moved");
    for (spread, bound) in [("4", 4), ("8", 8)] {
        let with = run(&[("wear_spread", spread)], false);
        with.print(spread);
        // Twice the bound: what is gained while each cold chunk is moved once, and chunks that are open.
        assert!(with.spread <= 2 * bound + 2 && with.moves > 10, "{with:?}");
        assert!(without.spread > 2 * with.spread, "{with:?}, {without:?} without");
    }
}

#[test]
fn what_was_moved_is_there_after_power_cuts_and_wear_goes_on_to_be_levelled() {
    let with = run(&[("wear_spread", "2")], true);
    with.print("2, cuts");
    assert!(with.moves > 20 && with.spread <= 12, "{with:?}");
}

/// Pages of the index lie in chunks of their own, which lag as others do, and records are moved by pages that are read for it.
#[test]
fn wear_is_levelled_with_an_index_on_media_too() {
    for (cache, most) in [("2048", 12), ("8192", 12)] {
        let with = run(&[("wear_spread", "4"), ("index_cache_bytes", cache)], false);
        with.print(&format!("4, {cache} bytes of the index in memory"));
        assert!(with.moves > 100 && with.spread <= most, "{cache}: {with:?}");
    }
    // With next to nothing in memory all pages that change are written, and dead chunks wait for checkpoints all the time.
    let without = run(&[("index_cache_bytes", "0")], false);
    let with = run(&[("wear_spread", "4"), ("index_cache_bytes", "0")], false);
    with.print("4, nothing of the index in memory");
    assert!(with.moves > 80 && with.spread < without.spread, "{with:?}, {without:?} without");
}
