//! Steps: requests, and everything that happens to them.
//!
//! Deliberately not here: what a request is (`block::Mix`).

use super::{Draw, Size, disk};
use crate::plan::{Cut, Step};
use ocssd_base::Nanos;
use ocssd_drive::image::FileFaults;
use ocssd_flash::{Config, FaultKind};

/// Most bits that flip while a target is not mounted (chosen: so many that one of its records is hit as a rule).
const FLIPS_MAX: u32 = 16;

/// Steps of a run in a tiny world (chosen: some hundred power cuts).
const REQUESTS_TINY: u32 = 400;

/// Steps of a long run (chosen: a tiny drive's chunks are reset some fifty times in it).
const REQUESTS_LONG: u32 = 3_000;

/// How likely each kind of step is, in thousandths; the rest are requests.
struct Weights {
    quiesce: u64,
    idle: u64,
    cut: u64,
    remount: u64,
    flip: u64,
    fault: u64,
    audit: u64,
    rest: u64,
    /// Requests that wait for a turn of the loop, in percent.
    turns: u64,
    /// Cuts that are followed by another during the mount, in percent.
    again: u64,
}

fn weights(draw: &mut Draw, size: Size, has_faults: bool) -> Weights {
    let mut weight = |percent: u64, most: u32| {
        if draw.percent(percent) { u64::from(draw.between(1, most)) } else { 0 }
    };
    match size {
        Size::Tiny => Weights {
            quiesce: weight(50, 20),
            idle: weight(50, 20),
            cut: 40 + weight(80, 260),
            remount: weight(30, 10),
            flip: 0,
            fault: 0,
            audit: 0,
            rest: 0,
            turns: weight(70, 100),
            again: weight(60, 50),
        },
        Size::Any => Weights {
            quiesce: weight(50, 20),
            idle: weight(50, 30),
            cut: weight(80, 20),
            remount: weight(50, 6),
            flip: if has_faults { weight(30, 10) } else { 0 },
            fault: if has_faults { weight(60, 30) } else { 0 },
            audit: weight(50, 3),
            rest: 0,
            turns: weight(70, 100),
            again: weight(70, 70),
        },
    }
}

/// All steps of a run.
pub(super) fn draw(draw: &mut Draw, size: Size, config: &Config) -> Vec<Step> {
    let has_faults = draw.percent(50) && size == Size::Any;
    let weights = weights(draw, size, has_faults);
    let count = match size {
        Size::Tiny => REQUESTS_TINY,
        Size::Any => draw.one_of(&[100, 400, 1500]),
    };
    let mut steps: Vec<Step> = (0..count).map(|_| step(draw, &weights, Some(config))).collect();
    steps.push(Step::Audit);
    steps
}

/// True of a step after which media still hold what was written to them.
pub(super) fn keeps_content(step: &Step) -> bool {
    match step {
        Step::Flip { .. }
        | Step::Rest { .. }
        | Step::Shelf { .. }
        | Step::Stray { .. }
        | Step::Death { .. }
        | Step::Disk(_) => false,
        Step::Fault { kind, .. } => !matches!(kind, FaultKind::UnrecoveredRead | FaultKind::Failed(..)),
        _ => true,
    }
}

/// Steps of a run in which chunks are to be reset often.
pub(super) fn draw_long(draw: &mut Draw) -> Vec<Step> {
    let mut weight = |percent: u64, most: u32| {
        if draw.percent(percent) { u64::from(draw.between(1, most)) } else { 0 }
    };
    let weights = Weights {
        quiesce: weight(50, 5),
        idle: weight(50, 5),
        cut: weight(50, 4),
        remount: weight(50, 3),
        flip: 0,
        fault: 0,
        audit: 3 + weight(50, 3),
        rest: 0,
        turns: 100,
        again: weight(60, 50),
    };
    let mut steps: Vec<Step> = (0..REQUESTS_LONG).map(|_| step(draw, &weights, None)).collect();
    steps.push(Step::Audit);
    steps
}

/// Steps of a run in which bits flip all the time.
pub(super) fn draw_rotting(draw: &mut Draw) -> Vec<Step> {
    let mut weight = |percent: u64, most: u32| {
        if draw.percent(percent) { u64::from(draw.between(1, most)) } else { 0 }
    };
    let weights = Weights {
        quiesce: weight(50, 20),
        idle: weight(50, 20),
        cut: weight(60, 60),
        remount: weight(60, 20),
        flip: weight(60, 100),
        fault: 0,
        audit: weight(50, 10),
        rest: 20 + weight(60, 80),
        turns: weight(70, 100),
        again: weight(60, 50),
    };
    let mut steps: Vec<Step> = (0..REQUESTS_TINY).map(|_| step(draw, &weights, None)).collect();
    steps.push(Step::Audit);
    steps
}

/// Steps of a run in which sectors are lost all the time.
pub(super) fn draw_losing(draw: &mut Draw) -> Vec<Step> {
    let mut weight = |percent: u64, most: u32| {
        if draw.percent(percent) { u64::from(draw.between(1, most)) } else { 0 }
    };
    let weights = Weights {
        quiesce: weight(50, 20),
        idle: weight(50, 20),
        cut: weight(30, 8),
        remount: weight(30, 8),
        flip: 0,
        fault: 0,
        audit: 10 + weight(50, 20),
        rest: 0,
        turns: weight(70, 100),
        again: weight(60, 50),
    };
    let mut steps: Vec<Step> = (0..2 * REQUESTS_TINY).map(|_| step(draw, &weights, None)).collect();
    steps.push(Step::Audit);
    steps
}

/// Steps of a run in which the power goes all the time, and little is waited for in between.
pub(super) fn draw_cutting(draw: &mut Draw) -> Vec<Step> {
    let mut weight = |percent: u64, most: u32| {
        if draw.percent(percent) { u64::from(draw.between(1, most)) } else { 0 }
    };
    let weights = Weights {
        quiesce: 0,
        idle: weight(30, 10),
        cut: 30 + weight(60, 60),
        remount: weight(30, 10),
        flip: 0,
        fault: 0,
        audit: 0,
        rest: 0,
        turns: 40 + weight(60, 60),
        again: weight(30, 30),
    };
    let mut steps: Vec<Step> = (0..2 * REQUESTS_TINY).map(|_| step(draw, &weights, None)).collect();
    steps.push(Step::Audit);
    steps
}

/// Steps of a run on a disk that fails now and then.
pub(super) fn draw_on_disk(draw: &mut Draw) -> Vec<Step> {
    let mut weight = |percent: u64, most: u32| {
        if draw.percent(percent) { u64::from(draw.between(1, most)) } else { 0 }
    };
    let weights = Weights {
        quiesce: weight(50, 20),
        idle: weight(50, 20),
        cut: 20 + weight(80, 100),
        remount: weight(50, 20),
        flip: 0,
        fault: 0,
        audit: weight(50, 20),
        rest: 0,
        turns: weight(70, 100),
        again: weight(60, 50),
    };
    let (changes, heals) = (u64::from(draw.between(2, 8)), u64::from(draw.between(20, 60)));
    let mut one = || match (draw.percent(changes), draw.percent(heals)) {
        (true, true) => Step::Disk(FileFaults::default()),
        (true, false) => Step::Disk(disk::faults(draw)),
        (false, _) => step(draw, &weights, None),
    };
    let mut steps: Vec<Step> = (0..REQUESTS_TINY).map(|_| one()).collect();
    steps.push(Step::Audit);
    steps
}

fn step(draw: &mut Draw, weights: &Weights, config: Option<&Config>) -> Step {
    let mut left = draw.0.below(1000);
    let mut is = |weight: u64| match left.checked_sub(weight) {
        Some(rest) => {
            left = rest;
            false
        }
        None => {
            left = u64::MAX;
            true
        }
    };
    if is(weights.quiesce) {
        Step::Quiesce
    } else if is(weights.idle) {
        Step::Idle { time: Nanos(draw.one_of(&[1_000, 100_000, 10_000_000, 3_000_000_000])) }
    } else if is(weights.cut) {
        Step::Cut(cut(draw, weights))
    } else if is(weights.remount) {
        Step::Remount
    } else if is(weights.flip) {
        Step::Flip { place: draw.raw(), bit: draw.raw() }
    } else if is(weights.fault) {
        fault(draw, config.expect("faults are drawn for a drive"))
    } else if is(weights.audit) {
        Step::Audit
    } else if is(weights.rest) {
        Step::Rest { flips: (0..draw.between(1, FLIPS_MAX)).map(|_| (draw.raw(), draw.raw())).collect() }
    } else {
        Step::Request { draw: draw.raw(), turn: draw.percent(weights.turns) }
    }
}

fn cut(draw: &mut Draw, weights: &Weights) -> Cut {
    let mut again = Vec::new();
    while again.len() < 4 && draw.percent(weights.again) {
        let most = draw.one_of(&[2, 20, 200]);
        again.push(u64::from(draw.between(0, most)));
    }
    let most = draw.one_of(&[1, 8, 60]);
    Cut {
        events: u64::from(draw.between(0, most)),
        gap_millionths: draw.between(0, 999_999),
        seed: draw.raw(),
        again,
    }
}

fn fault(draw: &mut Draw, config: &Config) -> Step {
    let mut kinds = vec![
        FaultKind::WriteNextUnit,
        FaultKind::EarlyClose,
        FaultKind::HighEcc,
        FaultKind::ResetFailure,
        FaultKind::LatencySpike,
    ];
    // Where the drive's rates say that media lose nothing, nothing is lost by order either.
    if config.faults.unrecovered_read > 0 {
        kinds.push(FaultKind::UnrecoveredRead);
    }
    Step::Fault { kind: draw.one_of(&kinds), chunk: draw.raw(), times: draw.between(1, 4) }
}
