//! Charts as tidy data: one row per point, every column one variable.

use crate::chart::{ChartSpec, exact};
use crate::table::{x_text, y_text};

/// The columns, in order.
const COLUMNS: [&str; 13] = [
    "chart",
    "panel",
    "series",
    "role",
    "x",
    "x_unit",
    "y",
    "unit",
    "low",
    "high",
    "value",
    "value_unit",
    "note",
];

/// All points of all charts as CSV with a header, in the order of the charts.
///
/// `x` is a name on an axis of categories, and so is `y` for the rows of a heat map. `low` and `high` are empty when a point
/// has no error interval; `value` is what the colour of a cell says, and empty of everything else and of blank cells.
pub fn tidy_csv(charts: &[ChartSpec]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |row: &[&str]| writer.write_record(row).expect("rows are equally long and go to memory");
    write(&COLUMNS);
    for chart in charts {
        for panel in &chart.panels {
            for series in &panel.series {
                for point in &series.points {
                    let bound = |bound: Option<f64>| bound.map(exact).unwrap_or_default();
                    let value_unit = chart.colour.as_ref().map_or("", |colour| colour.unit.as_str());
                    write(&[
                        &chart.title,
                        &panel.title,
                        &series.name,
                        series.role.word(),
                        &x_text(chart, point.x),
                        &chart.x.unit,
                        &y_text(chart, panel, point.y),
                        &chart.y_of(panel).unit,
                        &bound(point.low),
                        &bound(point.high),
                        &bound(point.value),
                        value_unit,
                        &point.note,
                    ]);
                }
            }
        }
    }
    let bytes = writer.into_inner().expect("memory can be flushed");
    String::from_utf8(bytes).expect("texts were UTF-8 before")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Panel, Point, Role, Series};

    #[test]
    fn every_point_is_a_row_that_reads_back() {
        let points =
            vec![Point::new(2.0, 76.0).between(69.0, 83.0), Point::new(4.0, 1.5).noted("a, \"b\"\nc")];
        let panel = Panel::new("random").series(Series::new("32 MB", Role::Paper, points));
        let chart =
            ChartSpec::new("t", Axis::log2("threads", ""), Axis::linear("throughput", "MB/s")).panel(panel);
        let text = tidy_csv(&[chart.clone(), chart]);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<Vec<String>> = reader
            .records()
            .map(|row| row.expect("our own CSV").iter().map(str::to_owned).collect())
            .collect();
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[0], ["t", "random", "32 MB", "paper", "2", "", "76", "MB/s", "69", "83", "", "", ""]);
        assert_eq!(rows[1][6..], ["1.5", "MB/s", "", "", "", "", "a, \"b\"\nc"]);
    }
}
