//! Write amplification of the layer against closed forms and against the order known for skewed writes.

use super::layer::{Layer, Setup};
use crate::{Classification, ContinuousLimits, VictimPolicy};

const UNIFORM: Setup = Setup {
    lines: 160,
    limits: ContinuousLimits {
        line_sectors: 256,
        stop_lines: 2,
        target_lines: 4,
        start_lines: 6,
        burst_sectors: 32,
    },
    policy: VictimPolicy::Greedy,
    classification: Classification::UserGc,
    logical_percent: 80,
    hot_percent: 50,
    seed: 0,
};

/// Write amplification and mean free sectors, after `overwrites` times all places and over half as many more.
#[expect(clippy::cast_precision_loss, reason = "the numbers of these tests are small")]
fn settle(setup: Setup, overwrites: u64) -> (f64, f64) {
    let mut layer = Layer::new(setup);
    let physical = u64::from(setup.lines) * setup.limits.line_sectors;
    layer.run(physical * overwrites);
    let (user, gc) = (layer.user, layer.gc);
    let free = layer.run(physical * overwrites / 2);
    assert_eq!(layer.l2p.count_mapped(), layer.valid.total(), "{setup:?}");
    layer.l2p.check();
    layer.valid.check();
    (1.0 + (layer.gc - gc) as f64 / (layer.user - user) as f64, free as f64)
}

/// Write amplification of large-block greedy: `v = exp(-a (1 - v))`, `1 / (1 - v)` (Xiang and Kurkoski 2011).
fn amplification(physical_per_logical: f64) -> f64 {
    let valid = (0..10_000).fold(0.5_f64, |v, _| (-physical_per_logical * (1.0 - v)).exp());
    1.0 / (1.0 - valid)
}

#[test]
fn the_closed_form_gives_the_published_values() {
    for (logical_per_physical, expected) in
        [(0.70, 1.88), (0.769, 2.36), (0.80, 2.69), (0.875, 4.18), (0.89, 4.73)]
    {
        let found = amplification(1.0 / logical_per_physical);
        assert!((found - expected).abs() < 0.01, "{logical_per_physical}: {found}");
    }
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "the numbers of this test are small")]
fn uniform_random_writes_settle_at_the_target_with_the_amplification_of_the_closed_form() {
    let d_choices = VictimPolicy::DChoices { d: 10 };
    for (seed, policy, logical_percent) in
        [(1, VictimPolicy::Greedy, 70), (2, VictimPolicy::Greedy, 80), (3, d_choices, 80)]
    {
        let (found, free) = settle(Setup { policy, logical_percent, seed, ..UNIFORM }, 4);
        // Free lines, users' open line among them, and half of GC's open line hold no data.
        let line = UNIFORM.limits.line_sectors as f64;
        let physical = f64::from(UNIFORM.lines) * line;
        let expected =
            amplification((physical - free - line / 2.0) / (physical * logical_percent as f64 / 100.0));
        let context =
            format!("seed {seed}: {policy} at {logical_percent} %: {found:.3}, expected {expected:.3}");
        println!("{context}; {free} free sectors");
        assert!((found / expected - 1.0).abs() < 0.05, "{context}");
        let target = UNIFORM.limits.target_lines as f64;
        assert!((free / line - target).abs() < 1.0, "{context}: {free} free sectors");
    }
}

#[test]
fn skewed_writes_cost_less_the_better_they_are_parted() {
    // 90 % of writes to 10 % of sectors, six open lines at most. Simulated elsewhere with 1024 lines of 128 sectors at
    // the same capacity: 3.6 for one stream, 1.9 and 1.7 for cost-benefit with two and six.
    let limits = ContinuousLimits {
        line_sectors: 64,
        stop_lines: 5,
        target_lines: 7,
        start_lines: 9,
        burst_sectors: 32,
    };
    let skewed = Setup { lines: 320, limits, hot_percent: 10, seed: 4, ..UNIFORM };
    let cost_benefit = VictimPolicy::CostBenefit;
    let cases = [
        (VictimPolicy::Greedy, Classification::None, 3.1..4.2),
        (cost_benefit, Classification::UserGc, 1.7..2.3),
        (cost_benefit, Classification::SepBit, 1.5..2.1),
    ];
    let found = cases.map(|(policy, classification, bounds)| {
        let (found, free) = settle(Setup { policy, classification, ..skewed }, 12);
        println!("seed 4: {policy}, {classification}: {found:.3}; {free} free sectors");
        assert!(
            bounds.contains(&found),
            "seed 4: {policy}, {classification}: {found:.3}, expected {bounds:?}"
        );
        found
    });
    assert!(found.is_sorted_by(|worse, better| worse > better), "seed 4: {found:?}");
}
