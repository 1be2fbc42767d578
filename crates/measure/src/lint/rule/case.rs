//! All evidence at once, for rules that compare.

use crate::lint::{Cell, Evidence, Settings, Side, SideKind};

/// What a rule may look at besides the cell it judges.
pub(in crate::lint) struct Case<'a> {
    files: &'a [Evidence],
    /// What the user added.
    pub(super) settings: &'a Settings,
}

impl<'a> Case<'a> {
    pub(in crate::lint) fn new(files: &'a [Evidence], settings: &'a Settings) -> Self {
        Self { files, settings }
    }

    /// All cells that ran the same workload as `cell`, itself included; mix and depth may differ. None if the workload is not
    /// known. Cells that ran at the same time as it are left out: they share the drive with it and are no second measurement.
    pub(super) fn relatives(&self, cell: &'a Cell) -> Vec<&'a Cell> {
        let is_related = |evidence: &Evidence, other: &Cell| {
            let is_beside =
                evidence.cells.iter().any(|one| std::ptr::eq(one, cell)) && other.group == cell.group;
            !cell.workload.is_empty()
                && other.workload == cell.workload
                && other.order == cell.order
                && other.block_bytes == cell.block_bytes
                && cell.block_bytes.is_some()
                && (!is_beside || std::ptr::eq(other, cell))
        };
        self.files
            .iter()
            .flat_map(|evidence| evidence.cells.iter().filter(move |other| is_related(evidence, other)))
            .collect()
    }
}

/// I/Os per second of all directions.
pub(super) fn iops(cell: &Cell) -> Option<f64> {
    known_sum(cell, |side| side.iops)
}

/// The mean latency over all directions, each I/O counted once, in nanoseconds.
pub(super) fn mean_latency_ns(cell: &Cell) -> Option<f64> {
    let outstanding = known_sum(cell, |side| Some(side.iops? * side.latency.mean_ns?));
    match cell.sides.as_slice() {
        [one] => one.latency.mean_ns,
        _ => outstanding.zip(iops(cell)).filter(|(_, iops)| *iops > 0.0).map(|(sum, iops)| sum / iops),
    }
}

/// Sums a number over directions, if there is any and all have it.
pub(super) fn known_sum(cell: &Cell, of: impl Fn(&Side) -> Option<f64>) -> Option<f64> {
    if cell.sides.is_empty() {
        return None;
    }
    cell.sides.iter().map(of).sum()
}

/// The mix in words.
pub(super) fn is_mixed(cell: &Cell) -> bool {
    cell.read_percent.is_some_and(|percent| percent > 0.0 && percent < 100.0)
}

/// Whether the cell has I/O of this kind.
pub(super) fn has(cell: &Cell, kind: SideKind) -> bool {
    cell.sides.iter().any(|side| side.kind == kind) || (kind != SideKind::Trim && is_mixed(cell))
}

/// A count as a float; limits here are percents.
#[expect(clippy::cast_precision_loss, reason = "counts are compared to a percent")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}
