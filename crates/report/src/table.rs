//! Tables of texts, and every chart's numbers as one.

use crate::chart::{ChartSpec, as_x, exact};
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
}

/// A place on the horizontal axis: the category's name, or the number.
pub(crate) fn x_text(spec: &ChartSpec, x: f64) -> String {
    let mut names = spec.x.categories.iter().enumerate();
    let found = names.find(|(index, _)| as_x(*index).total_cmp(&x).is_eq());
    found.map_or_else(|| exact(x), |(_, name)| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Panel, Point, Role, Series};

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
}
