//! L14: nothing else happened.

use super::Case;
use super::case::float;
use super::table::Rule;
use crate::lint::{Attested, Cell, Clock, Evidence, Judgement, Severity, SideKind};

/// I/Os at the disk over I/Os asked for (the upper limit of profiling rule L07).
const MORE: f64 = 1.05;
/// Blocks up to this size reach every disk whole (chosen: the smallest `max_sectors_kb` that is common, 128).
const WHOLE_BYTES: u64 = 128 << 10;

pub(super) const RULE: Rule = Rule {
    id: "L14",
    name: "environment",
    severity: Severity::Warn,
    holds: "temperature, throttling, power state and link did not change, and nothing else used the device",
    means: "The number is of this moment, or of another program too.",
    remedy: "Record temperature and throttle counters before and after, stop what else runs, and measure again.",
    needs: "temperatures and throttle counters, which no format here has; other reads show in the disk's counters",
    judge,
};

fn judge(_case: &Case<'_>, evidence: &Evidence, cell: &Cell) -> Judgement {
    if evidence.own.as_ref().is_some_and(|run| run.clock == Some(Clock::Virtual)) {
        return Judgement::not_about("a virtual drive in virtual time has no surroundings");
    }
    if let Some(sentence) = evidence.own.as_ref().and_then(|run| others(run.profile.as_ref()?.attested?)) {
        return Judgement::warn(sentence);
    }
    let is_comparable = evidence.cells.iter().all(|one| {
        one.ramp == Some(false)
            && one.block_bytes.is_some_and(|bytes| bytes <= WHOLE_BYTES)
            && one.verifies == Some(false)
    });
    if let Some(disk) = evidence.disk.filter(|_| is_comparable && cell.direct == Some(true)) {
        let sides =
            evidence.cells.iter().flat_map(|one| &one.sides).filter(|side| side.kind == SideKind::Read);
        let asked: u64 = sides.filter_map(|side| side.ios).fold(0, u64::saturating_add);
        if asked > 0 && float(disk.read_ios) > MORE * float(asked) {
            return Judgement::warn(format!(
                "the disk did {} reads, the jobs asked for {asked}",
                disk.read_ios
            ));
        }
    }
    Judgement::missing("temperature, throttle counters, power state and link width before and after")
}

/// What a profile's disk did for others than the profile, if that is more than a little.
fn others(seen: Attested) -> Option<String> {
    let (process, disk) = (seen.process?, seen.disk?);
    let more = |disk: u64, own: u64| own > 0 && float(disk) > MORE * float(own);
    let is_shared =
        more(disk.read_bytes, process.read_bytes) || more(disk.written_bytes, process.written_bytes);
    is_shared.then(|| {
        format!(
            "others used the disk: it read {:.2} and wrote {:.2} of what this process moved",
            float(disk.read_bytes) / float(process.read_bytes.max(1)),
            float(disk.written_bytes) / float(process.written_bytes.max(1))
        )
    })
}
