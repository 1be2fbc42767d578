//! Tables of texts, and every chart's numbers as one.

use crate::chart::{Axis, ChartSpec, Panel, as_x, exact};
use serde::{Deserialize, Serialize};

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Names of the columns; at least one.
    pub columns: Vec<String>,
    /// Rows, each as long as `columns`. Cells that are numbers are set to the right.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows yet.
    pub fn new(title: &str, columns: &[&str]) -> Self {
        assert!(!columns.is_empty(), "a table has columns");
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { title: title.to_owned(), columns, rows: Vec::new() }
    }

    /// Adds a row. Panics unless it has one cell for each column.
    pub fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.columns.len(), "table `{}`: one cell for each column", self.title);
        self.rows.push(row);
    }

    /// All numbers of a chart, one row per point, in the order of the chart.
    pub fn of_chart(spec: &ChartSpec) -> Self {
        let x = spec.x.caption();
        let mut table = Self::new(
            &format!("Numbers of: {}", spec.title),
            &["panel", "series", "of", &x, "value", "unit"],
        );
        if let Some(colour) = &spec.colour {
            table.columns[4] = spec.y.caption();
            table.columns[5] = colour.caption();
            table.columns.push("note".to_owned());
            spec.panels.iter().for_each(|panel| table.push_cells(spec, panel));
            return table;
        }
        table.columns.extend(["low", "high", "note"].map(str::to_owned));
        for panel in &spec.panels {
            for series in &panel.series {
                for point in &series.points {
                    table.push(vec![
                        panel.title.clone(),
                        series.name.clone(),
                        series.role.word().to_owned(),
                        x_text(spec, point.x),
                        exact(point.y),
                        spec.y_of(panel).unit.clone(),
                        point.low.map(exact).unwrap_or_default(),
                        point.high.map(exact).unwrap_or_default(),
                        point.note.clone(),
                    ]);
                }
            }
        }
        table
    }

    /// The cells of a heat map: column, row, and what the colour says.
    fn push_cells(&mut self, spec: &ChartSpec, panel: &Panel) {
        for series in &panel.series {
            for point in &series.points {
                self.push(vec![
                    panel.title.clone(),
                    series.name.clone(),
                    series.role.word().to_owned(),
                    x_text(spec, point.x),
                    y_text(spec, panel, point.y),
                    point.value.map(exact).unwrap_or_default(),
                    point.note.clone(),
                ]);
            }
        }
    }
}

/// A place on the horizontal axis: the category's name, or the number.
pub(crate) fn x_text(spec: &ChartSpec, x: f64) -> String {
    place_text(&spec.x, x)
}

/// A place on the vertical axis of a panel: the row's name, or the number.
pub(crate) fn y_text(spec: &ChartSpec, panel: &Panel, y: f64) -> String {
    place_text(spec.y_of(panel), y)
}

fn place_text(axis: &Axis, place: f64) -> String {
    let mut names = axis.categories.iter().enumerate();
    let found = names.find(|(index, _)| as_x(*index).total_cmp(&place).is_eq());
    found.map_or_else(|| exact(place), |(_, name)| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Point, Role, Series, Style};

    #[test]
    fn charts_become_tables_with_names_of_categories_and_error_intervals() {
        let points = vec![Point::new(1.0, 116.0).between(114.0, 118.0), Point::new(0.0, 0.5).noted("n")];
        let panel = Panel::new("p").series(Series::new("s", Role::Paper, points));
        let x = Axis::categories("percentile", &["p95", "p99"]);
        let table = Table::of_chart(&ChartSpec::new("t", x, Axis::linear("latency", "us")).panel(panel));
        assert_eq!(table.columns.len(), 9);
        assert_eq!(table.rows[0], ["p", "s", "paper", "p99", "116", "us", "114", "118", ""]);
        assert_eq!(table.rows[1], ["p", "s", "paper", "p95", "0.5", "us", "", "", "n"]);
    }
    #[test]
    fn heat_maps_become_tables_of_columns_rows_and_values() {
        let points = vec![Point::cell(0.0, 1.0, Some(2.5)), Point::cell(0.0, 0.0, None).noted("too few")];
        let panel = Panel::new("p").series(Series::new("s", Role::Ours, points).style(Style::Cells));
        let (x, y) = (Axis::categories("depth", &["1"]), Axis::categories("size", &["4 KiB", "8 KiB"]));
        let table = Table::of_chart(&ChartSpec::cells("t", x, y, Axis::log10("rate", "MB/s")).panel(panel));
        assert_eq!(table.columns, ["panel", "series", "of", "depth", "size", "rate (MB/s)", "note"]);
        assert_eq!(table.rows[0], ["p", "s", "ours", "1", "8 KiB", "2.5", ""]);
        assert_eq!(table.rows[1], ["p", "s", "ours", "1", "4 KiB", "", "too few"]);
    }
}
