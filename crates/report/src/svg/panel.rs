//! One panel: title, captions, plot, and the sentences below.

use super::frame::Frame;
use super::marks;
use super::painter::{Anchor, Ink, PANEL, Painter, SMALL};
use crate::chart::{AxisMap, ChartSpec, Panel};
use crate::markup::px;
use crate::palette;
use crate::verdict::Outcome;

/// Height of a line of small text.
const LINE: f64 = 16.0;
/// Height of a line of the title.
const TITLE_LINE: f64 = 18.0;

/// Height of a row of a heat map, when there are few (chosen: its name and a number fit).
const ROW: f64 = 22.0;

/// A panel measured, before the width of all tick labels is known.
pub(super) struct PanelLayout<'a> {
    spec: &'a ChartSpec,
    panel: &'a Panel,
    width: f64,
    x: AxisMap,
    y: AxisMap,
    tick_width: f64,
    title: Vec<String>,
}

impl<'a> PanelLayout<'a> {
    /// Measures a panel of the given width.
    pub fn new(painter: &Painter, spec: &'a ChartSpec, panel: &'a Panel, width: f64) -> Self {
        // Panels share the horizontal axis, and the vertical one unless they bring their own.
        let all = || spec.panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points);
        let places = || {
            all()
                .map(|point| point.x)
                .chain(spec.panels.iter().flat_map(|panel| &panel.marks).map(|mark| mark.x))
        };
        let x = if spec.colour.is_some() {
            AxisMap::columns(&spec.x, &all().map(|point| point.x).collect::<Vec<_>>())
        } else {
            AxisMap::horizontal(&spec.x, places())
        };
        let sharing = spec.panels.iter().filter(|other| other.y.is_none());
        let heights: Vec<f64> =
            if panel.y.is_some() { heights(panel).collect() } else { sharing.flat_map(heights).collect() };
        let y = AxisMap::vertical(spec.y_of(panel), heights.into_iter());
        let label_width = |label: &str| painter.font.width(label, SMALL);
        let tick_width = y.ticks.iter().map(|tick| label_width(&tick.label)).fold(0.0, f64::max);
        let title = painter.font.wrap(&panel.title, PANEL, width);
        Self { spec, panel, width, x, y, tick_width, title }
    }

    /// Width of the widest label of the vertical axis.
    pub fn tick_width(&self) -> f64 {
        self.tick_width
    }

    /// Lines of the title.
    pub fn title_lines(&self) -> usize {
        self.title.len()
    }

    /// Draws the panel with its upper left corner at `(x, y)`; returns its lower end.
    ///
    /// `tick_width` and `title_lines` are the greatest of all panels, so that plots stand in line.
    pub fn draw(
        &self,
        painter: &mut Painter,
        (x, y): (f64, f64),
        tick_width: f64,
        title_lines: usize,
    ) -> f64 {
        painter.markup.newline().open("g", &[("class", "panel")]);
        for (index, line) in self.title.iter().enumerate() {
            let baseline = y + 14.0 + TITLE_LINE * crate::chart::as_x(index);
            painter.text(line, (x, baseline), PANEL, Ink::First, Anchor::Start);
        }
        let mut top = y + TITLE_LINE * crate::chart::as_x(title_lines);
        for line in painter.font.wrap(&self.spec.y_of(self.panel).caption(), SMALL, self.width) {
            top += LINE;
            painter.text(&line, (x, top - 3.0), SMALL, Ink::Muted, Anchor::Start);
        }
        let left = x + tick_width + 8.0;
        let width = self.width - tick_width - 8.0 - 10.0;
        // Chosen: flat enough for one screen, tall enough to tell slopes apart.
        let rows = self.spec.y_of(self.panel).categories.len();
        let height = match rows {
            0 => (width * 0.72).clamp(200.0, 330.0),
            rows => (crate::chart::as_x(rows) * ROW).clamp(120.0, 420.0),
        };
        let frame = Frame { left, top: top + 8.0, width, height, x: &self.x, y: &self.y };
        let labels = frame.draw(painter, !self.spec.x.categories.is_empty());
        marks::draw_rules(painter, &frame, self.panel);
        marks::draw_series(painter, &frame, self.spec, self.panel);
        marks::draw_marks(painter, &frame, self.panel);
        marks::draw_rule_labels(painter, &frame, self.panel);
        let bottom = self.draw_caption(painter, &frame, labels);
        let bottom = self.draw_annotations(painter, x, bottom + 6.0);
        painter.markup.close();
        bottom
    }

    fn draw_caption(&self, painter: &mut Painter, frame: &Frame<'_>, labels: f64) -> f64 {
        let mut y = labels + 2.0;
        for line in painter.font.wrap(&self.spec.x.caption(), SMALL, frame.width) {
            y += LINE;
            let middle = frame.left + frame.width / 2.0;
            painter.text(&line, (middle, y), SMALL, Ink::Muted, Anchor::Middle);
        }
        y
    }

    fn draw_annotations(&self, painter: &mut Painter, x: f64, top: f64) -> f64 {
        let mut y = top;
        for annotation in &self.panel.annotations {
            y += 4.0;
            for (index, line) in
                painter.font.wrap(&annotation.text, SMALL, self.width - 20.0).iter().enumerate()
            {
                y += LINE;
                if index == 0 {
                    draw_sign(painter, annotation.outcome, (x + 6.0, y - 4.0));
                }
                painter.text(line, (x + 18.0, y), SMALL, Ink::First, Anchor::Start);
            }
        }
        y
    }
}

/// A tick, a cross, a ring, or a bullet.
fn draw_sign(painter: &mut Painter, outcome: Option<Outcome>, (x, y): (f64, f64)) {
    let (class, colour, path) = match outcome {
        Some(Outcome::Holds) => ("holds", palette::outcome(Outcome::Holds), "m-5 0l4 4l7 -8"),
        Some(Outcome::Fails) => ("fails", palette::outcome(Outcome::Fails), "m-4 -4l8 8m0 -8l-8 8"),
        Some(Outcome::NotEvaluated) => ("muted-line", palette::MUTED, "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0"),
        None => ("muted-line", palette::MUTED, "m-2 0h4"),
    };
    let path = format!("M{} {}{path}", px(x), px(y));
    let look = [("class", class), ("d", &path), ("fill", "none"), ("stroke", colour), ("stroke-width", "2")];
    painter.markup.empty("path", &look);
}

/// Every number the vertical axis must reach.
fn heights(panel: &Panel) -> impl Iterator<Item = f64> {
    let points = panel.series.iter().flat_map(|series| &series.points);
    let numbers = points.flat_map(|point| [Some(point.y), point.low, point.high].into_iter().flatten());
    numbers.chain(panel.rules.iter().map(|rule| rule.y))
}
