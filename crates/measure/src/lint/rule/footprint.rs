//! L09: more than fits into caches.

use super::Case;
use super::case::float;
use super::case::has;
use super::table::Rule;
use crate::lint::{Cell, Evidence, Judgement, OwnRun, Severity, SideKind};

/// Reads span this many times the device's memory, writes this many times its cache (profiling rule L09).
const READ_FACTOR: u64 = 4;
const WRITE_FACTOR: u64 = 2;
/// Share of sectors that a virtual drive's cache may answer (chosen: it moves no percentile up to p90 by more than a rank).
const CACHED_SHARE: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    id: "L09",
    name: "footprint",
    severity: Severity::Label,
    holds: "reads span 4 times the device's memory, writes move 2 times its cache; of a virtual drive, its \
            cache answers under 5 %",
    means: "The device's own memory may have answered: this is a burst, not what lasts.",
    remedy: "Use a larger range and write longer, or label the number `burst`. --dram and --cache say how much the device has.",
    needs: "the option size for reads (memory is guessed as 1 GiB without --dram); --cache for writes",
    judge,
};

fn judge(case: &Case<'_>, evidence: &Evidence, cell: &Cell) -> Judgement {
    let is_real = |run: &OwnRun| run.profile.as_ref().is_some_and(|profile| profile.attested.is_some());
    if let Some(run) = evidence.own.as_ref().filter(|run| !is_real(run)) {
        return match run.sectors_read {
            _ if !has(cell, SideKind::Read) => {
                Judgement::missing("the size of the drive's cache and what it took")
            }
            None => Judgement::missing("the counters of the drive"),
            Some((all, cached)) if float(cached) > CACHED_SHARE * float(all) => Judgement::label(format!(
                "burst: the drive's cache answered {:.0} % of the sectors read",
                100.0 * float(cached) / float(all)
            )),
            Some(_) => Judgement::Pass,
        };
    }
    let reads = has(cell, SideKind::Read).then(|| judge_reads(case, cell));
    let writes = has(cell, SideKind::Write).then(|| judge_writes(case, cell));
    let judged: Vec<Judgement> = [reads, writes].into_iter().flatten().collect();
    let finding = judged.iter().find(|one| matches!(one, Judgement::Finding(..)));
    let unknown = judged.iter().find(|one| matches!(one, Judgement::NotJudged(_)));
    finding
        .or(unknown)
        .or(judged.first())
        .cloned()
        .unwrap_or_else(|| Judgement::not_about("neither reads nor writes"))
}

fn judge_reads(case: &Case<'_>, cell: &Cell) -> Judgement {
    let Some(span) = cell.footprint_bytes else {
        return Judgement::missing("how much was read from (the option size, or the column footprint_bytes)");
    };
    let dram = case.settings.dram_bytes;
    if span < dram.saturating_mul(READ_FACTOR) {
        Judgement::label(format!(
            "burst: reads span {}, less than {READ_FACTOR} times a memory of {}",
            gib(span),
            gib(dram)
        ))
    } else {
        Judgement::Pass
    }
}

fn judge_writes(case: &Case<'_>, cell: &Cell) -> Judgement {
    let Some(cache) = case.settings.cache_bytes else {
        return Judgement::missing("the device's write cache (--cache)");
    };
    let side = cell.sides.iter().find(|side| side.kind == SideKind::Write);
    match side.and_then(|side| side.bytes) {
        None => Judgement::missing("how much was written"),
        Some(bytes) if bytes < cache.saturating_mul(WRITE_FACTOR) => Judgement::label(format!(
            "burst: {} written, less than {WRITE_FACTOR} times a cache of {}",
            gib(bytes),
            gib(cache)
        )),
        Some(_) => Judgement::Pass,
    }
}

fn gib(bytes: u64) -> String {
    format!("{:.2} GiB", float(bytes) / f64::from(1_u32 << 30))
}
