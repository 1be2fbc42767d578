//! L07: the I/O reached the device.

use super::Case;
use super::case::float;
use super::table::Rule;
use crate::lint::{Cell, DiskCounters, Evidence, Judgement, Severity, SideKind};

/// Bytes at the disk over bytes asked for (profiling rule L07).
const RATIO: (f64, f64) = (0.98, 1.05);
/// fio reads the disk's counters every 250 ms and not at the very end (fio `DISK_UTIL_MSEC`); seen with 3.33.
const COUNTER_AGE_SECS: f64 = 0.25;
/// Shortest run the counters say anything about (chosen: their age is then an eighth).
const RUN_SECS_MIN: f64 = 2.0;

pub(super) const RULE: Rule = Rule {
    id: "L07",
    name: "direct",
    severity: Severity::Fail,
    holds: "direct I/O was asked for, and the disk saw 0.98 to 1.05 of the bytes asked for, or where fio \
            prints no sectors, no fewer I/Os",
    means: "The page cache took the writes or answered the reads. Asking for direct I/O is not enough: some file systems buffer \
            all the same.",
    remedy: "Set direct=1, measure the raw device or a file system that obeys, and run long enough (2 s) for the counters.",
    needs: "the option direct; to attest it, what the kernel counted on the disk (disk_util)",
    judge,
};

fn judge(_case: &Case<'_>, evidence: &Evidence, cell: &Cell) -> Judgement {
    match cell.direct {
        None => return Judgement::missing("whether I/O was direct, and what the kernel counted on the disk"),
        Some(false) => {
            return Judgement::fail(
                "I/O was buffered: the page cache may have answered (direct=1 is not set)",
            );
        }
        Some(true) if evidence.own.is_some() => return judge_own(evidence),
        Some(true) => {}
    }
    let Some(disk) = evidence.disk else {
        return Judgement::missing(
            "what the kernel counted on the disk (disk_util): direct I/O was asked for, not attested",
        );
    };
    if evidence.cells.iter().any(|one| one.ramp != Some(false)) {
        return Judgement::missing("what the disk did after ramp_time: its counters include it");
    }
    // Groups run one after the other, their jobs together.
    let mut by_group = std::collections::BTreeMap::new();
    for one in &evidence.cells {
        let longest = by_group.entry(one.group).or_insert(0.0_f64);
        *longest = longest.max(one.runtime_secs.unwrap_or_default());
    }
    let seconds: f64 = by_group.values().sum();
    if seconds < RUN_SECS_MIN {
        return Judgement::missing("a run of 2 s or more: fio reads the disk's counters every 250 ms");
    }
    attest(evidence, &disk, RATIO.0 - COUNTER_AGE_SECS / seconds)
}

/// Share of a file in the page cache that is still none (chosen: what a file system reads of it for itself).
const RESIDENT_MAX: f64 = 0.01;

/// A virtual drive has no page cache above it; a profile of a real one says what the system saw.
fn judge_own(evidence: &Evidence) -> Judgement {
    let profile = evidence.own.as_ref().and_then(|run| run.profile.as_ref());
    let Some(seen) = profile.and_then(|profile| profile.attested) else { return Judgement::Pass };
    if let Some(share) = seen.resident_share.filter(|share| *share > RESIDENT_MAX) {
        return Judgement::fail(format!("{:.0} % of the file is in the page cache", 100.0 * share));
    }
    let ratio = |moved: u64, asked: u64| float(moved) / float(asked.max(1));
    let reads = (seen.asked.read_bytes > 0).then(|| match (seen.process, seen.disk) {
        (Some(process), _) => {
            let ratio = ratio(process.read_bytes, seen.asked.read_bytes);
            Some((ratio >= RATIO.0 && ratio <= RATIO.1, "reads: this process moved", ratio))
        }
        (None, Some(disk)) => {
            let ratio = ratio(disk.read_bytes, seen.asked.read_bytes);
            Some((ratio >= RATIO.0, "reads: the disk moved", ratio))
        }
        (None, None) => None,
    });
    // A process is charged for buffered writes too, so only the disk, or an empty page cache, says that they were direct.
    let writes = (seen.asked.written_bytes > 0).then(|| match (seen.disk, seen.process) {
        (Some(disk), _) => {
            let ratio = ratio(disk.written_bytes, seen.asked.written_bytes);
            Some((ratio >= RATIO.0, "writes: the disk moved", ratio))
        }
        (None, Some(process)) if seen.resident_share.is_some() => {
            let ratio = ratio(process.written_bytes, seen.asked.written_bytes);
            Some((ratio >= RATIO.0 && ratio <= RATIO.1, "writes: this process moved", ratio))
        }
        _ => None,
    });
    for side in [reads, writes].into_iter().flatten() {
        match side {
            None => return Judgement::missing("what the kernel counted for the process or on the disk"),
            Some((false, what, ratio)) => {
                return Judgement::fail(format!("{what} {ratio:.2} of the bytes asked for"));
            }
            Some((true, ..)) => {}
        }
    }
    Judgement::Pass
}

/// Compares the disk's counters with all jobs of the file: the counters are not kept by job.
fn attest(evidence: &Evidence, disk: &DiskCounters, least: f64) -> Judgement {
    let total = |kind: SideKind, of: fn(&crate::lint::Side) -> Option<u64>| -> u64 {
        evidence
            .cells
            .iter()
            .flat_map(|cell| &cell.sides)
            .filter(|side| side.kind == kind)
            .filter_map(of)
            .fold(0, u64::saturating_add)
    };
    for (kind, ios, bytes) in [
        (SideKind::Read, disk.read_ios.saturating_add(disk.read_merges), disk.read_bytes),
        (SideKind::Write, disk.write_ios.saturating_add(disk.write_merges), disk.write_bytes),
    ] {
        let (asked_ios, asked_bytes) = (total(kind, |side| side.ios), total(kind, |side| side.bytes));
        if asked_ios == 0 {
            continue;
        }
        let word = kind.word();
        match bytes.map(|bytes| float(bytes) / float(asked_bytes.max(1))) {
            Some(ratio) if ratio < least || ratio > RATIO.1 => {
                return Judgement::fail(format!("{word}: the disk moved {ratio:.2} of the bytes asked for"));
            }
            None if float(ios) < least * float(asked_ios) => {
                return Judgement::fail(format!("{word}: the disk saw {ios} of {asked_ios} asked for"));
            }
            _ => {}
        }
    }
    Judgement::Pass
}
