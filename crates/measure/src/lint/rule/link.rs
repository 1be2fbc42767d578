//! L02: nothing is faster than the link.

use super::Case;
use super::case::float;
use super::case::known_sum;
use super::table::Rule;
use crate::lint::{Cell, Evidence, Judgement, Severity};

pub(super) const RULE: Rule = Rule {
    id: "L02",
    name: "link",
    severity: Severity::Fail,
    holds: "IOPS x block size, and at depth 1 block size / latency, are at most the rate of the link; else fail",
    means: "More bytes came than the drive's link can carry: they came from memory of the host.",
    remedy: "Pass the page cache by (direct=1), and see that what is read is larger than memory. Give the rate of the link as \
             negotiated with --link.",
    needs: "the rate of the link (--link), block size, and IOPS or bandwidth",
    judge,
};

fn judge(case: &Case<'_>, evidence: &Evidence, cell: &Cell) -> Judgement {
    let profile = evidence.own.as_ref().and_then(|run| run.profile.as_ref());
    let known = profile.and_then(|profile| profile.link_bytes_per_second);
    let Some(link) = case.settings.link_bytes_per_second.or(known) else {
        return Judgement::missing("the rate of the link (--link)");
    };
    let block = cell.block_bytes.map(float);
    let by_rate = known_sum(cell, |side| side.iops).zip(block).map(|(iops, block)| iops * block);
    let moved = known_sum(cell, |side| side.bytes_per_second).or(by_rate);
    let typical = cell
        .sides
        .iter()
        .filter_map(|side| side.latency.typical_ns())
        .reduce(|a, b| if a.0 < b.0 { a } else { b });
    let alone = typical.filter(|(nanos, _)| *nanos > 0.0 && cell.outstanding == Some(1)).zip(block);
    let burst = alone.map(|((nanos, word), block)| (block / nanos * 1e9, word));
    match (moved, burst) {
        (Some(rate), _) if rate > link => {
            Judgement::fail(format!("{:.2} GB/s over a link of {:.2} GB/s", rate / 1e9, link / 1e9))
        }
        (_, Some((rate, word))) if rate > link => Judgement::fail(format!(
            "one I/O at a time moves its block within the {word} latency at {:.2} GB/s, over a link of {:.2} GB/s",
            rate / 1e9,
            link / 1e9
        )),
        (None, None) => Judgement::missing("the block size with IOPS, or the bandwidth"),
        _ => Judgement::Pass,
    }
}
