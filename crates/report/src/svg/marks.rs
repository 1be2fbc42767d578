//! Lines, steps, bars, markers and error intervals.

use super::frame::Frame;
use super::heat;
use super::painter::{Anchor, DASHES, MARKER, Painter, SMALL};
use crate::chart::{ChartSpec, Panel, Point, Role, Series, Style, with_unit};
use crate::markup::px;
use crate::palette;
use crate::table::x_text;

/// Up to this many points each has a marker; beyond, dots as wide as the line. Chosen: markers would touch. Steps say by their
/// corners where points are, and have markers only while these are few.
const MARKERS_MAX: usize = 60;
const STEP_MARKERS_MAX: usize = 12;

/// Lines across the panel, below the data.
pub(super) fn draw_rules(painter: &mut Painter, frame: &Frame<'_>, panel: &Panel) {
    for rule in &panel.rules {
        let y = frame.y_of(rule.y);
        painter.dotted_line((frame.left, y), (frame.right(), y));
    }
}

/// Their labels at the right end, above the data.
pub(super) fn draw_rule_labels(painter: &mut Painter, frame: &Frame<'_>, panel: &Panel) {
    for rule in &panel.rules {
        let y = frame.y_of(rule.y) - 6.0;
        painter.label(&rule.label, (frame.right(), y), Anchor::End);
    }
}

/// Lines upwards with their names beside them, a line lower each, so that near ones do not cover each other.
pub(super) fn draw_marks(painter: &mut Painter, frame: &Frame<'_>, panel: &Panel) {
    for (index, mark) in panel.marks.iter().enumerate() {
        let x = frame.left + frame.width * frame.x.place(mark.x);
        painter.dotted_line((x, frame.top), (x, frame.bottom()));
        let y = frame.top + 12.0 + 14.0 * crate::chart::as_x(index % 4);
        let width = painter.font.width(&mark.label, SMALL);
        let is_right = x + 4.0 + width <= frame.right();
        let (at, anchor) = if is_right { (x + 4.0, Anchor::Start) } else { (x - 4.0, Anchor::End) };
        painter.label(&mark.label, (at, y), anchor);
    }
}

/// All series of a panel: the paper's first, so that ours lie on top.
pub(super) fn draw_series(painter: &mut Painter, frame: &Frame<'_>, spec: &ChartSpec, panel: &Panel) {
    let names = spec.names();
    let bars = BarSlots::new(frame, panel);
    for role in [Role::Paper, Role::Ours] {
        for (index, series) in panel.series.iter().enumerate().filter(|(_, series)| series.role == role) {
            let hue =
                names.iter().position(|name| *name == series.name).expect("names are those of the series");
            let class = format!("series h{hue} {}", role.word());
            let hue_text = hue.to_string();
            let about = [("data-hue", hue_text.as_str()), ("data-role", role.word())];
            let mut attributes = vec![("class", class.as_str()), ("color", palette::LIGHT[hue])];
            attributes.extend(about);
            painter.markup.newline().open("g", &attributes);
            let mut brush = Brush { painter, frame, spec, panel, series, hue };
            match series.style {
                Style::Bars => brush.bars(bars.place(index), bars.width),
                Style::Line => brush.joined(false),
                Style::Steps => brush.joined(true),
                Style::Markers => brush.points(),
                Style::Cells => heat::draw_cells(brush.painter, frame, spec, panel, series),
            }
            painter.markup.newline().close();
        }
    }
}

/// Draws one series.
struct Brush<'a, 'b> {
    painter: &'a mut Painter,
    frame: &'a Frame<'b>,
    spec: &'a ChartSpec,
    panel: &'a Panel,
    series: &'a Series,
    hue: usize,
}

impl Brush<'_, '_> {
    fn joined(&mut self, is_stepped: bool) {
        let mut path = String::new();
        for (index, point) in self.series.points.iter().enumerate() {
            let (x, y) = self.frame.at(point.x, point.y);
            let (x, y) = (px(x), px(y));
            path += &match (index, is_stepped) {
                (0, _) => format!("M{x} {y}"),
                (_, false) => format!("L{x} {y}"),
                (_, true) => format!("H{x}V{y}"),
            };
        }
        let mut look = vec![("class", "line"), ("d", path.as_str()), ("fill", "none")];
        look.extend([("stroke", "currentColor"), ("stroke-width", "2"), ("stroke-linejoin", "round")]);
        if self.series.role == Role::Paper {
            look.push(("stroke-dasharray", DASHES));
        }
        self.painter.markup.newline().empty("path", &look);
        self.points();
    }

    fn points(&mut self) {
        let most = if self.series.style == Style::Steps { STEP_MARKERS_MAX } else { MARKERS_MAX };
        let radius = if self.series.points.len() > most { 1.0 } else { MARKER };
        for point in &self.series.points {
            let at = self.frame.at(point.x, point.y);
            self.open_point(point);
            self.interval(point, at.0, "currentColor");
            self.painter.marker(self.hue, self.series.role == Role::Paper, at, radius);
            self.painter.markup.close();
        }
    }

    fn bars(&mut self, offset: f64, width: f64) {
        let base = self.frame.base();
        for point in &self.series.points {
            let (middle, y) = self.frame.at(point.x, point.y);
            let left = middle + offset;
            self.open_point(point);
            let (x, top, wide) = (px(left), px(y.min(base)), px(width));
            let height = px((y - base).abs());
            let mut look = vec![("class", "bar"), ("x", x.as_str()), ("y", &top), ("width", &wide)];
            look.extend([("height", height.as_str()), ("fill", "currentColor"), ("stroke", "currentColor")]);
            if self.series.role == Role::Paper {
                look.extend([("fill-opacity", "0.15"), ("stroke-dasharray", "4 3"), ("stroke-width", "1.5")]);
            }
            self.painter.markup.empty("rect", &look);
            self.interval(point, left + width / 2.0, palette::INK);
            self.painter.markup.close();
        }
    }

    /// Opens the group of a point, with what a reader sees over it.
    fn open_point(&mut self, point: &Point) {
        let text = self.description(point);
        let markup = &mut self.painter.markup;
        markup.newline().open("g", &[("class", "pt")]).element("title", &[], &text);
    }

    /// The error interval with caps, on bars in the colour of text; nothing when the point has none.
    fn interval(&mut self, point: &Point, x: f64, colour: &str) {
        let low = self.frame.y_of(point.low.unwrap_or(point.y));
        let high = self.frame.y_of(point.high.unwrap_or(point.y));
        if (low - high).abs() < 0.5 {
            return;
        }
        let path = format!("M{} {}h6m-3 0V{}m-3 0h6", px(x - 3.0), px(low), px(high));
        let class = if colour == palette::INK { "interval on-bar" } else { "interval" };
        let look = [("class", class), ("d", path.as_str()), ("fill", "none"), ("stroke", colour)];
        self.painter.markup.empty("path", &look);
    }

    fn description(&self, point: &Point) -> String {
        let axis = self.spec.y_of(self.panel);
        let x = self.x_text(point);
        let mut text = format!("{} ({})\n{x}\n", self.series.name, self.series.role.word());
        text += &format!("{}: {}", axis.label, with_unit(point.y, &axis.unit));
        if let (Some(low), Some(high)) = (point.low, point.high) {
            text += &format!(" ({} to {})", with_unit(low, ""), with_unit(high, &axis.unit));
        }
        if !point.note.is_empty() {
            text += &format!("\n{}", point.note);
        }
        text
    }

    fn x_text(&self, point: &Point) -> String {
        let axis = &self.spec.x;
        let text = x_text(self.spec, point.x);
        let text = if axis.unit.is_empty() { text } else { format!("{text} {}", axis.unit) };
        format!("{}: {text}", axis.label)
    }
}

/// Where the bars of each series stand around their place on the axis.
struct BarSlots {
    /// Index within the panel of each series that has bars.
    series: Vec<usize>,
    /// Width of one bar.
    width: f64,
}

impl BarSlots {
    fn new(frame: &Frame<'_>, panel: &Panel) -> Self {
        let with_bars = panel.series.iter().enumerate().filter(|(_, series)| series.style == Style::Bars);
        let series: Vec<usize> = with_bars.clone().map(|(index, _)| index).collect();
        let points = with_bars.flat_map(|(_, series)| &series.points);
        let mut places: Vec<f64> = points.map(|point| frame.at(point.x, point.y).0).collect();
        places.sort_by(f64::total_cmp);
        let steps = places.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.5);
        // Chosen: a fifth of the room stays free between groups, and a lone bar is not a wall.
        let group = steps.fold(frame.width, f64::min).min(frame.width / 2.0) * 0.8;
        let width = (group / crate::chart::as_x(series.len().max(1))).min(60.0);
        Self { series, width }
    }

    /// Left edge of the bar of a series, from the middle of the group.
    fn place(&self, series: usize) -> f64 {
        let slot = self.series.iter().position(|index| *index == series).expect("only bars are placed");
        self.width * (crate::chart::as_x(slot) - crate::chart::as_x(self.series.len()) / 2.0)
    }
}
