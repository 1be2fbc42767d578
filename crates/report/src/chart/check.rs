//! Refuses charts that cannot be drawn, or only by hiding something.

use super::spec::{Axis, ChartSpec, Panel, Point, Scale, Series, Style};
use thiserror::Error;

/// Why a chart is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("chart `{chart}`: {place}: expected {expected}, found {found}")]
pub struct ChartError {
    /// Title of the chart.
    pub chart: String,
    /// Panel, series or axis.
    pub place: String,
    /// What would be valid.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// Most points of a series. Chosen: beyond it no reader can tell them apart, and a report would not load quickly.
const POINTS_MAX: usize = 20_000;

/// Greatest number. Chosen: a whole 64-bit counter nearly fits, and no axis overflows on its way to round ends.
const SIZE_MAX: f64 = 1e18;

/// Most different names. Chosen: the palette has eight hues, and more lines than that are not told apart.
const NAMES_MAX: usize = 8;

impl ChartSpec {
    /// Checks everything that drawing relies on.
    ///
    /// # Errors
    /// The first thing wrong: an empty title, no panels, more than eight names, a number that is not finite, not above 0
    /// on a logarithmic axis, or outside a given range.
    pub fn check(&self) -> Result<(), ChartError> {
        let at = |place: &str| Place { chart: self, place: place.to_owned() };
        at("title").require(!self.title.is_empty(), "a text", "nothing")?;
        at("panels").require(!self.panels.is_empty(), "at least one", "none")?;
        let names = self.names().len();
        at("series").require((1..=NAMES_MAX).contains(&names), "1 to 8 different names", names)?;
        self.check_axis(&self.x, "x axis")?;
        for panel in &self.panels {
            let axis = self.y_of(panel);
            self.check_axis(axis, "y axis")?;
            if self.colour.is_none() {
                at("y axis").require(axis.categories.is_empty(), "no categories", axis.categories.len())?;
            }
            for series in &panel.series {
                self.check_series(panel, series)?;
            }
            for rule in &panel.rules {
                self.check_number(axis, rule.y, &format!("rule `{}`", rule.label))?;
            }
            for mark in &panel.marks {
                self.check_number(&self.x, mark.x, &format!("mark `{}`", mark.label))?;
            }
        }
        self.check_colours()
    }

    /// Cells and nothing else in a chart with colours, none in any other, and rows and columns to draw them in.
    fn check_colours(&self) -> Result<(), ChartError> {
        let place = Place { chart: self, place: "colours".to_owned() };
        let mut all = self.panels.iter().flat_map(|panel| &panel.series);
        let Some(colour) = &self.colour else {
            let is_none = all.all(|series| series.style != Style::Cells);
            return place.require(is_none, "an axis of colours for cells", "none");
        };
        self.check_axis(colour, "colours")?;
        place.require(all.all(|series| series.style == Style::Cells), "cells only", "another style")?;
        let rows = self.panels.iter().all(|panel| !self.y_of(panel).categories.is_empty());
        place.require(rows, "names of the rows", "none")?;
        let is_even = !self.x.categories.is_empty() || self.x.scale == Scale::Linear;
        place.require(is_even, "columns by name, or on a linear axis", "logarithms")?;
        self.values().try_for_each(|value| self.check_number(colour, value, "colours"))
    }

    fn check_axis(&self, axis: &Axis, place: &str) -> Result<(), ChartError> {
        let place = Place { chart: self, place: place.to_owned() };
        place.require(!axis.label.is_empty(), "a label", "nothing")?;
        let is_category = !axis.categories.is_empty();
        place.require(
            !is_category || axis.scale == Scale::Linear,
            "a linear scale below categories",
            "log",
        )?;
        if let Some((least, greatest)) = axis.range {
            let is_range = least < greatest && [least, greatest].iter().all(|end| end.abs() <= SIZE_MAX);
            let found = &format!("{least} to {greatest}");
            place.require(is_range, "a range within 1e18, the lesser end first", found)?;
            let is_positive = axis.scale == Scale::Linear || least > 0.0;
            place.require(is_positive, "a range above 0 for logarithms", found)?;
        }
        axis.ticks.iter().try_for_each(|tick| self.check_number(axis, *tick, "tick"))
    }

    fn check_series(&self, panel: &Panel, series: &Series) -> Result<(), ChartError> {
        let words = format!("panel `{}`, series `{}` ({})", panel.title, series.name, series.role.word());
        let place = Place { chart: self, place: words.clone() };
        let count = series.points.len();
        place.require((1..=POINTS_MAX).contains(&count), "1 to 20000 points", count)?;
        for point in &series.points {
            self.check_point(panel, point, &words)?;
        }
        Ok(())
    }

    fn check_point(&self, panel: &Panel, point: &Point, words: &str) -> Result<(), ChartError> {
        self.check_number(&self.x, point.x, words)?;
        let place = Place { chart: self, place: words.to_owned() };
        if !self.x.categories.is_empty() {
            let is_index = (0..self.x.categories.len()).any(|index| as_x(index).total_cmp(&point.x).is_eq());
            place.require(is_index, "the index of a category", point.x)?;
        }
        let axis = self.y_of(panel);
        if !axis.categories.is_empty() {
            let is_row = (0..axis.categories.len()).any(|index| as_x(index).total_cmp(&point.y).is_eq());
            place.require(is_row, "the index of a row", point.y)?;
        }
        for y in [Some(point.y), point.low, point.high].into_iter().flatten() {
            self.check_number(axis, y, words)?;
        }
        let is_around =
            point.low.is_none_or(|low| low <= point.y) && point.high.is_none_or(|high| high >= point.y);
        place.require(is_around, "an error interval around the number", point.y)
    }

    fn check_number(&self, axis: &Axis, number: f64, words: &str) -> Result<(), ChartError> {
        let place = Place { chart: self, place: words.to_owned() };
        let is_sane = number.is_finite() && number.abs() <= SIZE_MAX;
        place.require(is_sane, "finite numbers of at most 1e18", number)?;
        let is_positive = axis.scale == Scale::Linear || number >= 1.0 / SIZE_MAX;
        place.require(is_positive, "numbers above 0 (at least 1e-18) on a logarithmic axis", number)?;
        let is_inside = axis.range.is_none_or(|(least, greatest)| (least..=greatest).contains(&number));
        place.require(is_inside, "numbers inside the range of the axis", number)
    }
}

/// The place of a category on its axis.
pub(crate) fn as_x(index: usize) -> f64 {
    f64::from(u32::try_from(index).expect("a chart has few categories"))
}

/// Where a check looks.
struct Place<'a> {
    chart: &'a ChartSpec,
    place: String,
}

impl Place<'_> {
    fn require(
        &self,
        holds: bool,
        expected: &str,
        found: impl std::fmt::Display + Copy,
    ) -> Result<(), ChartError> {
        if holds {
            return Ok(());
        }
        Err(ChartError {
            chart: self.chart.title.clone(),
            place: self.place.clone(),
            expected: expected.to_owned(),
            found: found.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::Role;
    use super::*;

    fn chart(y: Axis, points: Vec<Point>) -> ChartSpec {
        let panel = Panel::new("p").series(Series::new("s", Role::Ours, points));
        ChartSpec::new("t", Axis::linear("x", ""), y).panel(panel)
    }

    fn cells(y: Axis, colour: Axis, value: f64) -> ChartSpec {
        let points = vec![Point::cell(1.0, 1.0, Some(value)), Point::cell(2.0, 1.0, None)];
        let series = Series::new("s", Role::Ours, points).style(Style::Cells);
        ChartSpec::cells("t", Axis::linear("x", ""), y, colour).panel(Panel::new("p").series(series))
    }

    #[test]
    fn what_cannot_be_drawn_honestly_is_refused() {
        let one = || vec![Point::new(1.0, 1.0)];
        let many = (0..9).fold(Panel::new("p"), |panel, index| {
            panel.series(Series::new(&index.to_string(), Role::Ours, vec![Point::new(1.0, 1.0)]))
        });
        let linear = || Axis::linear("y", "");
        let cases = [
            (chart(linear(), vec![]), "1 to 20000 points"),
            (chart(linear(), vec![Point::new(1.0, f64::NAN)]), "finite"),
            (chart(linear(), vec![Point::new(f64::INFINITY, 1.0)]), "finite"),
            (chart(linear(), vec![Point::new(1.0, 2e18)]), "at most 1e18"),
            (chart(Axis::log2("y", ""), vec![Point::new(1.0, 1e-19)]), "above 0"),
            (chart(Axis::log10("y", ""), vec![Point::new(1.0, 0.0)]), "above 0"),
            (chart(linear().range(0.0, 0.5), one()), "inside the range"),
            (chart(linear().range(1.0, 1.0), one()), "lesser end first"),
            (chart(Axis::log2("y", "").range(0.0, 2.0), one()), "above 0"),
            (chart(linear(), vec![Point::new(1.0, 1.0).between(1.5, 2.0)]), "error interval"),
            (chart(Axis::linear("", ""), one()), "a label"),
            (chart(Axis::categories("y", &["a"]), one()), "no categories"),
            (ChartSpec::new("t", linear(), linear()), "at least one"),
            (ChartSpec::new("t", linear(), linear()).panel(many), "8 different names"),
            (ChartSpec { x: Axis::categories("x", &["a"]), ..chart(linear(), one()) }, "index of a category"),
            (ChartSpec { colour: Some(linear()), ..chart(linear(), one()) }, "cells only"),
            (cells(linear(), Axis::log10("c", ""), 1.0), "names of the rows"),
            (cells(Axis::categories("y", &["a"]), Axis::log10("c", ""), 1.0), "index of a row"),
            (cells(Axis::categories("y", &["a", "b"]), Axis::log10("c", ""), 0.0), "above 0"),
            (ChartSpec { colour: None, ..cells(linear(), linear(), 1.0) }, "an axis of colours for cells"),
            (
                ChartSpec {
                    x: Axis::log2("x", ""),
                    ..cells(Axis::categories("y", &["a", "b"]), linear(), 1.0)
                },
                "on a linear axis",
            ),
        ];
        for (spec, expected) in cases {
            let error = spec.check().expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(chart(linear(), one()).check(), Ok(()));
        assert_eq!(cells(Axis::categories("y", &["a", "b"]), linear(), 1.0).check(), Ok(()));
    }
}
