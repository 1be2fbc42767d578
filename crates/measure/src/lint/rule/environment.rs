//! L14: nothing else happened.

use super::Case;
use super::case::float;
use super::table::Rule;
use crate::lint::{Attested, Cell, Clock, Evidence, Judgement, Severity, SideKind};
use crate::storage::Surroundings;

/// I/Os at the disk over I/Os asked for (the upper limit of profiling rule L07).
const MORE: f64 = 1.05;
/// Blocks up to this size reach every disk whole (chosen: the smallest `max_sectors_kb` that is common, 128).
const WHOLE_BYTES: u64 = 128 << 10;

/// Change of a disk's temperature that is more than its day (chosen: half of the way from idle to where drives slow down).
const MILLICELSIUS_MAX: u64 = 20_000;
/// Share of processor time that others may have had (chosen: a tenth of what L04 lets two runs differ by).
const STOLEN_MAX: f64 = 0.01;

pub(super) const RULE: Rule = Rule {
    id: "L14",
    name: "environment",
    severity: Severity::Warn,
    holds: "temperature, throttling and link did not change, and nothing else used the device or the processors",
    means: "The number is of this moment, or of another program too.",
    remedy: "Record temperature and throttle counters before and after, stop what else runs, and measure again.",
    needs: "temperature, throttle counters and link before and after, which profiles of real drives have where the kernel shows \
            them; other reads show in the disk's counters",
    judge,
};

fn judge(_case: &Case<'_>, evidence: &Evidence, cell: &Cell) -> Judgement {
    if evidence.own.as_ref().is_some_and(|run| run.clock == Some(Clock::Virtual)) {
        return Judgement::not_about("a virtual drive in virtual time has no surroundings");
    }
    if let Some(sentence) = evidence.own.as_ref().and_then(|run| others(run.profile.as_ref()?.attested?)) {
        return Judgement::warn(sentence);
    }
    let around = evidence.own.as_ref().and_then(|run| run.profile.as_ref()?.surroundings.as_ref());
    if let Some((before, after)) = around {
        return match (changed(before, after), unknown(before, after)) {
            (Some(sentence), _) => Judgement::warn(sentence),
            (None, missing) if missing.is_empty() => Judgement::Pass,
            (None, missing) => Judgement::missing(format!("{} before and after", missing.join(", "))),
        };
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
    Judgement::missing("temperature, throttle counters and link before and after")
}

/// What changed around the device, in a sentence.
fn changed(before: &Surroundings, after: &Surroundings) -> Option<String> {
    let celsius = |millicelsius: i64| millicelsius / 1000;
    if let Some((from, to)) = before.disk_millicelsius.zip(after.disk_millicelsius)
        && from.abs_diff(to) > MILLICELSIUS_MAX
    {
        return Some(format!("the disk's temperature went from {} to {} °C", celsius(from), celsius(to)));
    }
    if let Some((from, to)) = before.throttles.zip(after.throttles).filter(|(from, to)| to > from) {
        return Some(format!("processors were slowed down for their heat {} times", to - from));
    }
    if before.link != after.link {
        let word = |link: &Option<String>| link.clone().unwrap_or_else(|| "unknown".to_owned());
        return Some(format!("the disk's link was {} and became {}", word(&before.link), word(&after.link)));
    }
    let ((stolen, all), (stolen_after, all_after)) = before.stolen.zip(after.stolen)?;
    let (stolen, all) = (stolen_after.saturating_sub(stolen), all_after.saturating_sub(all));
    let share = float(stolen) / float(all.max(1));
    (share > STOLEN_MAX).then(|| {
        format!("other virtual machines had the processors for {:.1} % of the time (steal)", 100.0 * share)
    })
}

/// What is not known of it.
fn unknown(before: &Surroundings, after: &Surroundings) -> Vec<&'static str> {
    let facts = [
        ("temperature", before.disk_millicelsius.is_some() && after.disk_millicelsius.is_some()),
        ("throttle counters", before.throttles.is_some() && after.throttles.is_some()),
        ("link", before.link.is_some() && after.link.is_some()),
    ];
    facts.into_iter().filter(|(_, known)| !known).map(|(name, _)| name).collect()
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
