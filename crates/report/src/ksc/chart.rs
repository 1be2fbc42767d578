//! The picture of both tables: throughput over threads, one line for each size of the write buffer.

use super::grid::{BUFFERS_MIB, Cell, Grid, Pattern, THREADS};
use crate::chart::{Axis, ChartSpec, Panel, Point, Role, Series};

/// One panel for each pattern, the paper's numbers with their digitising error beside ours.
///
/// `error_mb_per_second` is the error of the paper's numbers: 7 for reads, 11 for writes. Cells that are missing are left
/// out; a grid without any cell of a pattern gives a panel without its lines.
pub fn chart(title: &str, paper: &Grid, ours: &Grid, error_mb_per_second: f64) -> ChartSpec {
    let threads = Axis::log2("threads", "").ticks(&THREADS.map(f64::from));
    let mut spec = ChartSpec::new(title, threads, Axis::linear("throughput", "MB/s"))
        .subtitle("One hue for each size of the write buffer.")
        .source(&format!("Paper: KSC'17, digitised, error {error_mb_per_second} MB/s."));
    for pattern in Pattern::ALL {
        let mut panel = Panel::new(pattern.word());
        for buffer_mib in BUFFERS_MIB {
            for (role, grid, error) in [(Role::Paper, paper, error_mb_per_second), (Role::Ours, ours, 0.0)] {
                let points = points(grid, pattern, buffer_mib, error);
                if !points.is_empty() {
                    panel = panel.series(Series::new(&format!("{buffer_mib} MiB"), role, points));
                }
            }
        }
        spec = spec.panel(panel);
    }
    spec
}

/// As [`chart`], with a panel for each size of the write buffer and a line for each pattern: where the sizes differ little,
/// their lines are told apart so.
pub fn chart_by_buffer(title: &str, paper: &Grid, ours: &Grid, error_mb_per_second: f64) -> ChartSpec {
    let threads = Axis::log2("threads", "").ticks(&THREADS.map(f64::from));
    let mut spec = ChartSpec::new(title, threads, Axis::linear("throughput", "MB/s"))
        .subtitle("One panel for each size of the write buffer.")
        .source(&format!("Paper: KSC'17, digitised, error {error_mb_per_second} MB/s."));
    for buffer_mib in BUFFERS_MIB {
        let mut panel = Panel::new(&format!("{buffer_mib} MiB"));
        for pattern in Pattern::ALL {
            for (role, grid, error) in [(Role::Paper, paper, error_mb_per_second), (Role::Ours, ours, 0.0)] {
                let points = points(grid, pattern, buffer_mib, error);
                if !points.is_empty() {
                    panel = panel.series(Series::new(pattern.word(), role, points));
                }
            }
        }
        spec = spec.panel(panel);
    }
    spec
}

/// The cells of one line that are set.
fn points(grid: &Grid, pattern: Pattern, buffer_mib: u32, error: f64) -> Vec<Point> {
    let point = |threads: u32| {
        let value = grid.get(Cell { pattern, buffer_mib, threads })?;
        let point = Point::new(f64::from(threads), value);
        Some(if error > 0.0 { point.between(value - error, value + error) } else { point })
    };
    THREADS.into_iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_drawn_and_nothing_else() {
        let mut ours = Grid::default();
        let cell = Cell { pattern: Pattern::Random, buffer_mib: 64, threads: 18 };
        ours.insert(cell, 2000.0).expect("a throughput");
        let mut paper = ours.clone();
        paper.insert(Cell { threads: 36, ..cell }, 2100.0).expect("a throughput");
        let chart = chart("t", &paper, &ours, 11.0);
        assert_eq!(chart.check(), Ok(()));
        assert!(chart.panels[0].series.is_empty(), "nothing sequential was measured");
        let [published, measured] = &chart.panels[1].series[..] else { panic!("{:?}", chart.panels[1]) };
        assert_eq!(
            (published.role, published.points.len(), published.points[1].high),
            (Role::Paper, 2, Some(2111.0))
        );
        assert_eq!((measured.role, &measured.points[..]), (Role::Ours, &[Point::new(18.0, 2000.0)][..]));
        assert_eq!(published.name, measured.name);
        let chart = chart_by_buffer("t", &paper, &ours, 11.0);
        assert_eq!(chart.check(), Ok(()));
        let drawn: Vec<(&str, usize)> =
            chart.panels.iter().map(|panel| (panel.title.as_str(), panel.series.len())).collect();
        assert_eq!(drawn, [("32 MiB", 0), ("64 MiB", 2), ("128 MiB", 0), ("256 MiB", 0)]);
    }
}
