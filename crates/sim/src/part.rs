//! Parts of a plan that can be left out as a whole, beside its steps: rates of faults, wear, power cuts during mounts.
//!
//! A failing run is easier to read without those that had no part in it. Deliberately not here: the drive and the target's
//! options, without which a seed's requests would be others.

use crate::plan::{Step, WorldPlan};
use crate::stale_reports::Untrue;
use std::fmt;
use std::str::FromStr;

/// Cycles from which on chunks do not wear out in a run (chosen: the longest resets a chunk some hundred times).
const ENDURANCE_LONG: u32 = 1000;

/// A part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanPart {
    /// The power goes again during the mounts that follow a power cut.
    MountCuts,
    /// Later mounts have other options.
    OptionChanges,
    /// Chunks are bad from the start.
    FactoryBad,
    /// Reads fail.
    UnrecoveredRead,
    /// Sectors have many bit errors.
    HighEcc,
    /// Write units fail.
    WriteNextUnit,
    /// Chunks are closed early.
    EarlyClose,
    /// Resets fail.
    ResetFailure,
    /// Operations take long.
    LatencySpike,
    /// Chunks wear out after a few cycles.
    WearOut,
    /// Commands fail as such.
    FailedCommands,
    /// Sectors cannot be read in one try.
    TransientRead,
    /// Resets stay half done at power cuts.
    HalfReset,
    /// Torn units take others along.
    PairedLoss,
    /// Reads return another sector.
    MisdirectedRead,
    /// Chunk reports are behind.
    StaleReports,
    /// Chunk reports are too low.
    LowReports,
    /// Chunk reports are garbled.
    GarbledReports,
    /// Chunk reports are too low, and hide all of other chunks.
    HiddenReports,
}

impl PlanPart {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::MountCuts,
        Self::OptionChanges,
        Self::FactoryBad,
        Self::UnrecoveredRead,
        Self::HighEcc,
        Self::WriteNextUnit,
        Self::EarlyClose,
        Self::ResetFailure,
        Self::LatencySpike,
        Self::WearOut,
        Self::FailedCommands,
        Self::TransientRead,
        Self::HalfReset,
        Self::PairedLoss,
        Self::MisdirectedRead,
        Self::StaleReports,
        Self::LowReports,
        Self::GarbledReports,
        Self::HiddenReports,
    ];

    /// Its name, as it is given on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MountCuts => "mount-cuts",
            Self::OptionChanges => "option-changes",
            Self::FactoryBad => "factory-bad",
            Self::UnrecoveredRead => "unrecovered-read",
            Self::HighEcc => "high-ecc",
            Self::WriteNextUnit => "write-next-unit",
            Self::EarlyClose => "early-close",
            Self::ResetFailure => "reset-failure",
            Self::LatencySpike => "latency-spike",
            Self::WearOut => "wear-out",
            Self::FailedCommands => "failed-commands",
            Self::TransientRead => "transient-read",
            Self::HalfReset => "half-reset",
            Self::PairedLoss => "paired-loss",
            Self::MisdirectedRead => "misdirected-read",
            Self::StaleReports => "stale-reports",
            Self::LowReports => "low-reports",
            Self::GarbledReports => "garbled-reports",
            Self::HiddenReports => "hidden-reports",
        }
    }

    /// Leaves it out of a plan. False if the plan was without it.
    fn leave_out(self, plan: &mut WorldPlan) -> bool {
        let (faults, wear) = (&mut plan.config.faults, &mut plan.config.wear);
        let rate = |rate: &mut u32| std::mem::take(rate) > 0;
        match self {
            Self::MountCuts => leave_out_mount_cuts(&mut plan.steps),
            Self::OptionChanges => !std::mem::take(&mut plan.later_options).is_empty(),
            Self::FactoryBad => rate(&mut faults.factory_bad),
            Self::UnrecoveredRead => {
                let fresh = rate(&mut faults.unrecovered_read);
                rate(&mut faults.unrecovered_read_worn) || fresh
            }
            Self::HighEcc => {
                let fresh = rate(&mut faults.high_ecc);
                rate(&mut faults.high_ecc_worn) || fresh
            }
            Self::WriteNextUnit => rate(&mut faults.write_next_unit),
            Self::EarlyClose => rate(&mut faults.early_close),
            Self::ResetFailure => rate(&mut faults.reset_failure),
            Self::LatencySpike => rate(&mut faults.latency_spike),
            Self::WearOut => {
                let is_short = wear.endurance < ENDURANCE_LONG;
                wear.endurance = wear.endurance.max(ENDURANCE_LONG);
                is_short
            }
            Self::FailedCommands => {
                let rates = [
                    &mut faults.failed_read,
                    &mut faults.failed_write,
                    &mut faults.failed_reset,
                    &mut faults.failed_flush,
                ];
                rates.into_iter().map(rate).fold(false, |any, one| any | one)
            }
            Self::TransientRead => rate(&mut faults.transient_read),
            Self::HalfReset => rate(&mut faults.half_reset),
            Self::PairedLoss => rate(&mut faults.paired_loss),
            Self::MisdirectedRead => rate(&mut faults.misdirected_read),
            Self::StaleReports => leave_out_reports(&mut plan.steps, Untrue::Stale),
            Self::LowReports => leave_out_reports(&mut plan.steps, Untrue::Low),
            Self::GarbledReports => leave_out_reports(&mut plan.steps, Untrue::Garbled),
            Self::HiddenReports => leave_out_reports(&mut plan.steps, Untrue::Hidden),
        }
    }
}

fn leave_out_mount_cuts(steps: &mut [Step]) -> bool {
    let mut any = false;
    for step in steps {
        if let Step::Cut(cut) = step {
            any |= !std::mem::take(&mut cut.again).is_empty();
        }
    }
    any
}

fn leave_out_reports(steps: &mut [Step], untrue: Untrue) -> bool {
    let mut any = false;
    for step in steps {
        if let Step::StaleReports { how, share, .. } = step
            && *how == untrue
        {
            any |= std::mem::take(share) > 0;
        }
    }
    any
}

impl WorldPlan {
    /// The same plan without `part`; `None` if it has no such part.
    #[must_use]
    pub fn without(&self, part: PlanPart) -> Option<Self> {
        let mut plan = self.clone();
        part.leave_out(&mut plan).then_some(plan)
    }
}

impl fmt::Display for PlanPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PlanPart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|part| part.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("\"{text}\" is no part of a plan; those that can be left out are {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{Size, draw};

    #[test]
    fn a_part_that_was_left_out_is_not_there_to_be_left_out_again() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut plan = draw(seed, 0, Size::Any, "pblk");
            for part in PlanPart::ALL {
                let Some(less) = plan.without(part) else { continue };
                assert_eq!(
                    less.steps.len(),
                    plan.steps.len(),
                    "seed {seed}, {part}: a step changed its number"
                );
                assert!(less.without(part).is_none(), "seed {seed}: {part} is still there");
                seen.insert(part);
                plan = less;
            }
            assert_eq!(plan.config.check(), Ok(()), "seed {seed}");
            let faults = &plan.config.faults;
            assert_eq!(
                (faults.factory_bad, faults.high_ecc_worn, faults.latency_spike),
                (0, 0, 0),
                "seed {seed}"
            );
        }
        assert_eq!(seen.len(), PlanPart::ALL.len(), "only {seen:?} were drawn");
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for part in PlanPart::ALL {
            assert_eq!(part.to_string().parse(), Ok(part));
        }
        let sentence = "power".parse::<PlanPart>().expect_err("no part");
        assert!(sentence.contains("mount-cuts, option-changes"), "{sentence}");
    }
}
