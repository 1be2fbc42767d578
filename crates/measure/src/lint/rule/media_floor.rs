//! L03: nothing is faster than the media.

use super::Case;
use super::case::float;
use super::table::Rule;
use crate::lint::{Cell, Clock, Evidence, Judgement, Media, Order, Severity, Side, SideKind};

/// The shortest I/O there can be in nanoseconds: less than a system call (profiling rule L03).
const ANY_FLOOR_NS: f64 = 500.0;
/// A block the floors are for, in bytes; larger ones take longer.
const BLOCK_BYTES: u64 = 4_096;

pub(super) const RULE: Rule = Rule {
    id: "L03",
    name: "media-floor",
    severity: Severity::Fail,
    holds: "a random read of 4 KiB or more takes at least 20 us on NAND, 8 us on low-latency SLC, 4 us on 3D \
            XPoint, and what a virtual drive's description says of its media; any I/O 0.5 us",
    means: "The number is not of the media: memory of the host or the drive answered, or a buffer in the program.",
    remedy: "Use direct I/O, write the whole range first, and read at random over much more than all caches. --media says what \
             the drive has; a target without media (null, memory) fails rightly.",
    needs: "a median or mean latency; for the floor of reads also block size and direction",
    judge,
};

fn judge(case: &Case<'_>, evidence: &Evidence, cell: &Cell) -> Judgement {
    let own_read = evidence.own.as_ref().and_then(|run| run.media_read_ns);
    let (floor_us, media) = match (case.settings.media, own_read) {
        // A virtual drive says what it is made of.
        (None, Some(nanos)) => (float(nanos) / 1e3, "this drive's media"),
        (None | Some(Media::Nand), _) => (20.0, "NAND"),
        (Some(Media::Slc), _) => (8.0, "low-latency SLC"),
        (Some(Media::Xpoint), _) => (4.0, "3D XPoint"),
    };
    let is_virtual = evidence.own.as_ref().is_some_and(|run| run.clock == Some(Clock::Virtual));
    let judged: Vec<Judgement> = cell
        .sides
        .iter()
        .map(|side| match side.kind {
            SideKind::Write if is_virtual => {
                Judgement::not_about("in virtual time a buffer takes writes in no time")
            }
            _ => judge_side(cell, side, floor_us, media),
        })
        .collect();
    let finding = judged.iter().find(|one| matches!(one, Judgement::Finding(..)));
    let unknown = judged.iter().find(|one| matches!(one, Judgement::NotJudged(_)));
    finding.or(unknown).or(judged.first()).cloned().unwrap_or_else(|| Judgement::missing("the latency"))
}

fn judge_side(cell: &Cell, side: &Side, floor_us: f64, media: &str) -> Judgement {
    let Some((nanos, word)) = side.latency.typical_ns() else { return Judgement::missing("the latency") };
    let what = side.kind.word();
    if nanos < ANY_FLOOR_NS {
        return Judgement::fail(format!(
            "{what}: {word} {:.2} us, less than a system call takes",
            nanos / 1e3
        ));
    }
    if side.kind != SideKind::Read {
        return Judgement::Pass;
    }
    match (cell.block_bytes, cell.order) {
        (None, _) => Judgement::missing("the block size"),
        (Some(bytes), _) if bytes < BLOCK_BYTES => {
            Judgement::not_about("blocks below 4 KiB have no floor here")
        }
        (_, Some(Order::Sequential)) => {
            Judgement::not_about("sequential reads may come from what the drive read ahead")
        }
        _ if nanos < floor_us * 1e3 => Judgement::fail(format!(
            "{what}: {word} {:.2} us, below the {floor_us} us of {media}",
            nanos / 1e3
        )),
        _ => Judgement::Pass,
    }
}
