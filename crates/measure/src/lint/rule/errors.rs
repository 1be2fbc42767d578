//! L17: nothing failed.

use super::Case;
use super::table::Rule;
use crate::lint::{Cell, Evidence, Judgement, Severity};

pub(super) const RULE: Rule = Rule {
    id: "L17",
    name: "errors",
    severity: Severity::Fail,
    holds: "no I/O failed, and the run came to its end (fio's error is 0, our own verdict is neither fail nor interrupted)",
    means: "The job stopped at an error, or what it measured is of other I/Os than were asked for. fio prints its numbers all the \
            same.",
    remedy: "Look at the first error (errno 5 is EIO, 28 ENOSPC, 84 content that did not verify), mend its cause, and run again.",
    needs: "fio's error, or our own verdict; tables do not say",
    judge,
};

fn judge(_case: &Case<'_>, evidence: &Evidence, cell: &Cell) -> Judgement {
    // A profile's verdict is what these rules said of it.
    let own =
        evidence.own.as_ref().filter(|run| run.profile.is_none()).and_then(|run| run.bad_verdict.as_ref());
    if let Some(verdict) = own.filter(|verdict| verdict.starts_with("fail")) {
        return Judgement::fail(format!("the run's own verdict is {verdict}"));
    }
    match (cell.error, cell.survived) {
        (Some(error @ 1..), _) => {
            Judgement::fail(format!("the job ended with error {error} ({})", meaning(error)))
        }
        (_, Some(count @ 1..)) => {
            Judgement::warn(format!("{count} I/Os failed, and the job went on (continue_on_error)"))
        }
        _ if own.is_some_and(|verdict| verdict.starts_with("interrupted")) => {
            Judgement::warn("it was interrupted: the numbers are of a shorter run than was asked for")
        }
        (Some(0), _) => Judgement::Pass,
        (None, _) => Judgement::missing("whether I/Os failed"),
    }
}

/// What jobs end with, in the words of errno(3) on Linux.
const fn meaning(error: u64) -> &'static str {
    match error {
        5 => "EIO: an I/O failed",
        16 => "EBUSY",
        22 => "EINVAL: an I/O that the device does not take",
        28 => "ENOSPC: no room",
        61 => "ENODATA: nothing to read",
        84 => "EILSEQ: content that did not verify",
        110 => "ETIMEDOUT: the latency target was not kept",
        121 => "EREMOTEIO: the device failed an I/O",
        _ => "errno",
    }
}
