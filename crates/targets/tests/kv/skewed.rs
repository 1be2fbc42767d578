//! Values that are stored again soon, among others that stay: which victims garbage collection should choose.

use crate::rig::Rig;
use ocssd_base::Prng;
use ocssd_lightnvm::Status;

/// Percent of what fits that is stored.
const PERCENT: u64 = 90;
/// One key in so many is hot.
const HOT_ONE_IN: u32 = 10;
/// Times as many chunks as other tests have.
const TIMES: u32 = 8;

fn fill(key: u32, round: u32) -> u8 {
    u8::try_from((u64::from(key) * 31 + u64::from(round) * 7) % 251 + 1).expect("below 256")
}

/// Bytes of records written for each byte stored, once it is steady; of ten stores so many are of hot keys.
fn amplification(victim: &'static str, hot_stores: u64) -> f64 {
    let mut rig = Rig::larger(TIMES, &[("victim", victim), ("over_provisioning_percent", "30")]);
    let keys = rig.values_in(PERCENT);
    let mut prng = Prng::new(7);
    let mut rounds = vec![0; usize::try_from(keys).expect("few")];
    for key in 0..keys {
        assert_eq!(rig.store(key, fill(key, 0)), Status::SUCCESS, "key {key}");
    }
    let counts =
        |rig: &Rig| ["user_written_bytes", "gc_written_bytes", "stored_bytes"].map(|name| rig.count(name));
    let (mut before, stores) = (counts(&rig), 12 * keys);
    for nth in 0..stores {
        if nth == stores / 2 {
            before = counts(&rig);
        }
        let hot = prng.below(10) < hot_stores;
        let most = if hot { keys / HOT_ONE_IN } else { keys };
        let one = u32::try_from(prng.below(u64::from(most))).expect("few");
        // Hot keys stand among the others.
        let key = if hot { one * HOT_ONE_IN } else { one };
        let round = &mut rounds[usize::try_from(key).expect("few")];
        *round += 1;
        assert_eq!(rig.store(key, fill(key, *round)), Status::SUCCESS, "key {key}");
    }
    for (key, &round) in (0..).zip(&rounds) {
        let (status, content) = rig.retrieve(key);
        let is_newest = content.iter().all(|&byte| byte == fill(key, round));
        assert!(status.is_success() && is_newest, "key {key}: {status}");
    }
    let after = counts(&rig);
    let of = |nth: usize| f64::from(u32::try_from(after[nth] - before[nth]).expect("below 4 GB"));
    (of(0) + of(1)) / of(2)
}

#[test]
fn cost_benefit_writes_less_where_a_tenth_of_the_keys_gets_most_stores() {
    for (load, hot_stores, greedy_is_better) in [("nine of ten to a tenth", 9, false), ("all alike", 0, true)]
    {
        let (greedy, cost_benefit) =
            (amplification("greedy", hot_stores), amplification("cost-benefit", hot_stores));
        println!("{load}: {greedy:.3} with greedy, {cost_benefit:.3} with cost-benefit");
        assert_eq!(greedy < cost_benefit, greedy_is_better, "{load}: {greedy:.3} and {cost_benefit:.3}");
        assert!((1.1..2.0).contains(&greedy) && (1.1..2.0).contains(&cost_benefit), "{load}");
    }
}
