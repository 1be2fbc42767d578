//! One seed: the first of its drives that the target fits on, and a run there.
//!
//! Deliberately not here: what a seed draws (`swarm`), and what a run does (`run`).

use crate::journal::Keep;
use crate::plan::WorldPlan;
use crate::run::{Ended, Ran, run_until};
use crate::swarm::{Asked, Size, draw_asked};
use ocssd_targets::registry::{self, Kind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Drives drawn for a seed before it is given up (chosen: of those drawn for pblk most are large enough).
pub const ATTEMPTS: u32 = 32;

/// A seed that was run.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// Drives drawn before, all of them too small for the target.
    pub attempt: u32,
    /// What the seed means.
    pub plan: WorldPlan,
    /// What came of it; never `Ended::DoesNotFit`.
    pub ran: Ran,
}

/// No drive drawn for a seed could carry the target: why the last of them could not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit(pub String);

/// Runs those steps of `seed` for which `only` is true, on the first drive the target fits on. Which drive that is does
/// not depend on the steps.
///
/// # Errors
/// If none of the [`ATTEMPTS`] drives carries the target.
pub fn run_seed(
    kind: &Kind,
    size: Size,
    seed: u64,
    only: &dyn Fn(usize) -> bool,
    keep: Keep,
) -> Result<Simulated, Unfit> {
    run_asked(kind, &Asked::of(kind, size, &[]), seed, only, keep, &Arc::default())
}

/// As [`run_seed`], of the worlds that are asked for, until `is_over` is set.
///
/// # Errors
/// As [`run_seed`].
pub fn run_asked(
    kind: &Kind,
    asked: &Asked<'_>,
    seed: u64,
    only: &dyn Fn(usize) -> bool,
    keep: Keep,
    is_over: &Arc<AtomicBool>,
) -> Result<Simulated, Unfit> {
    let mut reason = String::new();
    for attempt in 0..ATTEMPTS {
        let plan = draw_asked(seed, attempt, asked);
        assert_options_are_read(asked, &plan);
        let ran = run_until(&plan, kind, only, keep, Arc::clone(is_over));
        match ran.ended {
            Ended::DoesNotFit(sentence) => reason = sentence,
            Ended::Well | Ended::Failed(_) | Ended::Stopped => return Ok(Simulated { attempt, plan, ran }),
        }
    }
    Err(Unfit(reason))
}

/// A target that refuses an option looks like a drive it does not fit on, and its worlds would be passed over without a word.
///
/// # Panics
/// If the target cannot read an option that was drawn.
fn assert_options_are_read(asked: &Asked<'_>, plan: &WorldPlan) {
    let check = |kind: &str, options: &[(String, String)]| {
        let drawn = options.iter().filter(|option| !asked.fixed.contains(option));
        let read = registry::check_options(kind, &drawn.cloned().collect::<Vec<_>>());
        assert!(read.is_ok(), "target {kind} was drawn an option it does not have: {read:?}");
    };
    for options in std::iter::once(&plan.options).chain(&plan.later_options) {
        check(asked.target, options);
    }
    for beside in &plan.beside {
        check(&beside.kind, &beside.options);
    }
}

/// The first drive of `seed` the target fits on: how many were drawn before, and what the seed means there.
///
/// # Errors
/// As [`run_seed`].
pub fn fitting(kind: &Kind, asked: &Asked<'_>, seed: u64) -> Result<(u32, WorldPlan), Unfit> {
    let Simulated { attempt, plan, .. } =
        run_asked(kind, asked, seed, &|_| false, Keep::Nothing, &Arc::default())?;
    Ok((attempt, plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_on_the_same_drive_whatever_steps_are_left_out() {
        let kind = registry::find("pblk").expect("a kind");
        for seed in 0..6 {
            let whole = run_seed(kind, Size::Tiny, seed, &|_| true, Keep::Nothing).expect("it fits");
            let none = run_seed(kind, Size::Tiny, seed, &|_| false, Keep::Nothing).expect("it fits");
            assert_eq!(whole.attempt, none.attempt, "seed {seed}");
            assert_eq!(whole.plan.to_string(), none.plan.to_string(), "seed {seed}");
            assert_eq!(none.ran.tally.of("requests.writes"), 0, "seed {seed} wrote without a step");
        }
    }

    #[test]
    fn a_target_that_fits_nowhere_says_why() {
        let kind = Kind::new("large", "fits nowhere", |_, _| Err("it needs more".to_owned()));
        let unfit = run_seed(&kind, Size::Tiny, 0, &|_| true, Keep::Nothing).expect_err("it fits nowhere");
        assert_eq!(unfit, Unfit("target large: it needs more".to_owned()));
    }
}
