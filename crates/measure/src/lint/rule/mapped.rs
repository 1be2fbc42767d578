//! L08: what is read was written.

use super::Case;
use super::case::has;
use super::table::Rule;
use crate::lint::{Cell, Evidence, Judgement, Severity, SideKind};

pub(super) const RULE: Rule = Rule {
    id: "L08",
    name: "mapped",
    severity: Severity::Fail,
    holds: "what is read was written before: reads were verified, or the source says so",
    means: "A read of blocks nobody wrote is answered from the map, without the media.",
    remedy: "Write the whole range first (fio: a job with rw=write before a stonewall) and read with verify, or sample contents.",
    needs: "verified reads, or the column mapped of a table",
    judge,
};

fn judge(_case: &Case<'_>, _evidence: &Evidence, cell: &Cell) -> Judgement {
    if !has(cell, SideKind::Read) && !cell.sides.is_empty() && cell.read_percent.is_some() {
        return Judgement::not_about("no reads");
    }
    match (cell.own_verify, cell.mapped) {
        (Some((checked, failed)), _) if failed > 0 => {
            Judgement::fail(format!("{failed} of {checked} blocks read were not what was written"))
        }
        (_, Some(false)) => Judgement::fail("reads were of blocks that nobody had written"),
        (Some((1.., _)), _) | (_, Some(true)) => Judgement::Pass,
        _ if cell.verifies == Some(true) => Judgement::Pass,
        _ => Judgement::missing(
            "whether the blocks read had been written before (no format of fio says so without verify)",
        ),
    }
}
