//! Canaries: bugs planted on purpose, each of which the simulator must find, as those of `pblk`.
//!
//! Only in builds with the feature `canaries`, and only in instances with the option `canary=NAME`. Deliberately not here: how
//! soon each is found (`docs/simulate.md`).

use super::options::Options;
use crate::planted::planted_in;

/// A planted bug: what it does, and the real defect it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// The end of a line is written without a barrier before it: a commit record ahead of what it names.
    LineWithoutBarrier,
    /// The end of a line is written while its last data are in flight.
    EndTooEarly,
    /// At mount a line that was being written is taken for one without blocks: what it names is not looked for.
    OpenLineIgnored,
    /// At mount the first place that names a block has it, not the last: replay in the wrong order.
    OldestWins,
    /// A sector that cannot be read is not noted at its request, which ends well: a status that nobody keeps.
    FailureForgotten,
    /// Lines that died are reset without a barrier: reset before what superseded them is durable.
    ResetWithoutBarrier,
}

planted_in!(Options, Canary);

#[cfg(feature = "canaries")]
impl Canary {
    /// Every canary with its name, as `canary=NAME` takes it.
    pub const ALL: &[(Self, &str)] = &[
        (Self::LineWithoutBarrier, "line-without-barrier"),
        (Self::EndTooEarly, "end-too-early"),
        (Self::OpenLineIgnored, "open-line-ignored"),
        (Self::OldestWins, "oldest-wins"),
        (Self::FailureForgotten, "failure-forgotten"),
        (Self::ResetWithoutBarrier, "reset-without-barrier"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bug_is_planted_unless_asked_for() {
        assert!(!Options::default().has_canary(Canary::OldestWins));
    }

    #[cfg(feature = "canaries")]
    #[test]
    fn every_canary_is_called_by_its_name() {
        let mut options = Options::default();
        for &(canary, name) in Canary::ALL {
            assert_eq!(options.set("canary", name), Ok(()));
            assert!(options.has_canary(canary), "{name}");
        }
        let error = options.set("canary", "polly").expect_err("no such canary");
        assert!(error.contains("oldest-wins"), "{error}");
    }
}
