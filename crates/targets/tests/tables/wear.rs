//! Tables that stay for long keep their chunks from being reset; once they are deleted these chunks catch up with the others.

use crate::rig::{CHUNK_BYTES, Rig};

/// Percent of what fits that stays.
const COLD_PERCENT: u64 = 50;
/// Tables of it.
const COLD: u64 = 12;
/// Tables beside, each a chunk long and written anew again and again.
const HOT: u64 = 6;
/// Times that they are, beside what stays.
const ROUNDS: u64 = 900;
/// The first name of a hot table.
const FIRST_HOT: u64 = 1_000;
/// Names for all of them, and for one beside.
const OPTIONS: [(&str, &str); 2] = [("tables_max", "19"), ("spare_percent", "5")];

fn rounds(rig: &mut Rig, from: u64, count: u64) {
    for round in from..from + count {
        for nth in 0..HOT {
            let name = FIRST_HOT + nth;
            if round > 0 {
                rig.delete(name);
            }
            rig.table(name, 0, CHUNK_BYTES);
        }
    }
    rig.flush();
}

/// Tables that stay.
fn fill(rig: &mut Rig) {
    let bytes = rig.limits().capacity_bytes * COLD_PERCENT / 100 / COLD;
    let bytes = u32::try_from(bytes).expect("a small drive");
    assert!(bytes > 5 * CHUNK_BYTES, "{bytes} bytes of a table are few chunks");
    (0..COLD).for_each(|name| rig.table(name, 0, bytes));
}

#[test]
fn chunks_that_were_kept_for_long_are_worn_first_once_they_are_free() {
    let mut rig = Rig::new(&OPTIONS);
    fill(&mut rig);
    rounds(&mut rig, 0, ROUNDS);
    let apart = rig.spread();
    (0..COLD).for_each(|name| rig.delete(name));
    rounds(&mut rig, ROUNDS, 2 * ROUNDS);
    let (spread, lag) = (rig.spread(), rig.count("wear_lag"));
    println!("{COLD} tables stayed: {apart} resets apart, and {spread} once they were deleted; known {lag}");
    assert!(apart > 20, "what stays is not reset: {apart}");
    assert!(spread <= 4, "{spread} resets apart, {apart} before");
    assert_eq!(u64::from(spread), lag, "the target counts as the drive does");
}

#[test]
fn how_worn_chunks_are_is_known_after_power_cuts() {
    let mut rig = Rig::new(&[OPTIONS[0], OPTIONS[1], ("checkpoint_log_bytes", "65536")]);
    fill(&mut rig);
    rounds(&mut rig, 0, ROUNDS);
    let apart = rig.spread();
    rig = rig.cut();
    (0..COLD).for_each(|name| rig.check_begin(name));
    let lag = rig.count("wear_lag");
    assert!(lag * 10 > u64::from(apart) * 8, "the mount knows {lag} of {apart} resets");
    (0..COLD).for_each(|name| rig.delete(name));
    for part in 0..6 {
        rounds(&mut rig, ROUNDS + part * 350, 350);
        rig = rig.cut();
    }
    let spread = rig.spread();
    println!("{apart} resets apart, and {spread} once what stayed was deleted, with power cuts");
    assert!(spread <= 8, "{spread} resets apart, {apart} before");
}
