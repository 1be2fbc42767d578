//! What came of a campaign, and how far one is.
//!
//! Deliberately not here: how it is shown.

use crate::failure::Failure;
use crate::plan::WorldPlan;
use crate::tally::Tally;
use std::ops::Range;
use std::time::Duration;

/// How far a campaign is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Seeds done.
    pub seeds: u64,
    /// Power cuts of these seeds.
    pub cuts: u64,
    /// Failures among them.
    pub failures: usize,
    /// Since the start.
    pub elapsed: Duration,
}

#[expect(clippy::cast_precision_loss, reason = "rates are for people")]
impl Progress {
    /// Seeds a second.
    #[must_use]
    pub fn seeds_per_second(&self) -> f64 {
        self.seeds as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Power cuts a second.
    #[must_use]
    pub fn cuts_per_second(&self) -> f64 {
        self.cuts as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// A seed that failed.
#[derive(Clone, Debug)]
pub struct Found {
    /// Which.
    pub seed: u64,
    /// Drives drawn before this one.
    pub attempt: u32,
    /// What the seed means.
    pub plan: WorldPlan,
    /// How it failed.
    pub failure: Failure,
}

/// Why a campaign ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Every seed was run.
    Exhausted,
    /// The time was over.
    Time,
    /// Enough failures were found.
    Failures,
    /// Somebody asked for it.
    Interrupted,
}

/// What came of a campaign. All but the two times is the same for the same seeds, however many threads there were.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seeds this is about: all from the first to before the last were run.
    pub seeds: Range<u64>,
    /// Seeds among them for which no drive could carry the target.
    pub unfit: u64,
    /// Why the last of those could not.
    pub unfit_reason: Option<String>,
    /// Failures, lowest seed first.
    pub failures: Vec<Found>,
    /// What was exercised, failing seeds included.
    pub tally: Tally,
    /// Why it ended.
    pub stopped: Stopped,
    /// Since the start.
    pub elapsed: Duration,
    /// Time the threads spent on processors; `None` where the system does not say.
    pub cpu: Option<Duration>,
}
