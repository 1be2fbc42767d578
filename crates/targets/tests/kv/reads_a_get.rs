//! How many reads of the media a retrieve takes: one of its record, and one of its page of the index if that is not in memory.

use crate::rig::Rig;
use ocssd_base::Prng;
use ocssd_lightnvm::Status;

/// Keys on media; each takes one record.
const KEYS: u32 = 900;
/// Retrieves of each case.
const RETRIEVES: u32 = 400;

/// Of keys at random, again and again: how many retrieves took one read, and how many two.
fn reads_of(options: &[(&'static str, &'static str)], seed: u64) -> [u32; 2] {
    let (mut rig, mut random) = (Rig::new(options), Prng::new(seed));
    // Behind them are others, so that no buffer unit and no window of the drive has what is retrieved.
    for key in 0..KEYS + 100 {
        assert_eq!(rig.store(key, 1), Status::SUCCESS, "seed {seed}: key {key}");
    }
    assert_eq!(rig.flush(), Status::SUCCESS);
    let mut took = [0, 0];
    for _ in 0..RETRIEVES {
        let key = u32::try_from(random.below(u64::from(KEYS))).expect("a key");
        let count = |rig: &Rig| rig.count("retrieve_reads") + rig.count("retrieve_index_reads");
        let before = count(&rig);
        assert_eq!(rig.retrieve(key).0, Status::SUCCESS, "seed {seed}: key {key}");
        match count(&rig) - before {
            1 => took[0] += 1,
            2 => took[1] += 1,
            other => panic!("seed {seed}: key {key} took {other} reads"),
        }
    }
    took
}

#[test]
fn a_retrieve_takes_one_read_if_the_index_is_in_memory_and_two_at_most_if_not() {
    for seed in 0..3 {
        assert_eq!(reads_of(&[], seed), [RETRIEVES, 0], "seed {seed}: all of the index is in memory");
        let [one, two] = reads_of(&[("index_cache_bytes", "0"), ("index_page_bytes", "266")], seed);
        assert!(two > RETRIEVES / 2, "seed {seed}: {one} found their page in memory, {two} did not");
    }
}
