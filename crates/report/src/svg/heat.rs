//! Heat maps: a field for each cell, and the bar that says what colours mean.

use super::frame::Frame;
use super::painter::{Anchor, BODY, Ink, Painter, SMALL};
use crate::chart::{Axis, AxisMap, ChartSpec, Panel, Point, Series, column_step, with_unit};
use crate::font::Text;
use crate::markup::px;
use crate::palette;
use crate::table::{x_text, y_text};

/// Width and height of the bar (chosen: as long as a line of its labels, as high as a text).
const BAR: (f64, f64) = (260.0, 12.0);
/// Pieces of the bar: more are not told apart.
const PIECES: u8 = 52;
/// A number in a cell.
const NUMBER: Text = Text { size: 10.5, is_bold: false };
/// Least width and height of a cell with its number in it (chosen: the number is read, and does not touch its neighbour).
const ROOM: (f64, f64) = (30.0, 13.0);

/// From numbers to places on the bar.
pub(super) fn colours(spec: &ChartSpec, colour: &Axis) -> AxisMap {
    AxisMap::vertical(colour, spec.values())
}

/// Draws the bar at `(x, y)`; returns its lower end.
pub(super) fn draw_bar(painter: &mut Painter, spec: &ChartSpec, colour: &Axis, (x, y): (f64, f64)) -> f64 {
    let map = colours(spec, colour);
    let caption = colour.caption();
    let width = painter.font.width(&caption, BODY);
    painter.text(&caption, (x, y + 14.0), BODY, Ink::First, Anchor::Start);
    let left = x + width + 14.0;
    let step = BAR.0 / f64::from(PIECES);
    for piece in 0..PIECES {
        let (fill, _) = palette::heat((f64::from(piece) + 0.5) / f64::from(PIECES));
        let (at, top) = (px(left + f64::from(piece) * step), px(y + 4.0));
        // A little wider, so that no page shows through between two.
        let (wide, high) = (px(step + 0.6), px(BAR.1));
        let look = [("x", at.as_str()), ("y", &top), ("width", &wide), ("height", &high), ("fill", &fill)];
        painter.markup.empty("rect", &look);
    }
    let mut taken = f64::NEG_INFINITY;
    for tick in &map.ticks {
        let at = left + BAR.0 * map.place(tick.value);
        let half = painter.font.width(&tick.label, SMALL) / 2.0;
        if at - half >= taken + 6.0 {
            painter.text(&tick.label, (at, y + BAR.1 + 18.0), SMALL, Ink::Muted, Anchor::Middle);
            taken = at + half;
        }
    }
    if spec.panels.iter().flat_map(|panel| &panel.series).any(|one| one.points.iter().any(is_blank)) {
        let text = "blank: not measured, or too few samples";
        painter.text(text, (left + BAR.0 + 24.0, y + 14.0), SMALL, Ink::Muted, Anchor::Start);
    }
    y + BAR.1 + 34.0
}

const fn is_blank(point: &Point) -> bool {
    point.value.is_none()
}

/// Draws all cells of a series.
pub(super) fn draw_cells(
    painter: &mut Painter,
    frame: &Frame<'_>,
    spec: &ChartSpec,
    panel: &Panel,
    series: &Series,
) {
    let colour = spec.colour.as_ref().expect("checked: cells have colours");
    let map = colours(spec, colour);
    let columns: Vec<f64> = spec
        .panels
        .iter()
        .flat_map(|panel| &panel.series)
        .flat_map(|one| &one.points)
        .map(|one| one.x)
        .collect();
    let step = column_step(&columns);
    let width = frame.width * (frame.x.place(step) - frame.x.place(0.0));
    let height = frame.height * (frame.y.place(1.0) - frame.y.place(0.0));
    // Fields of many touch: gaps would be wider than they are.
    let gap = if width >= 24.0 && height >= ROOM.1 { 1.0 } else { -0.3 };
    let size = (width - gap, height - gap);
    for point in &series.points {
        let (x, y) = frame.at(point.x, point.y);
        let text = description(spec, panel, colour, point);
        painter.markup.newline().open("g", &[("class", "pt")]).element("title", &[], &text);
        let (left, top) = (px(x - size.0 / 2.0), px(y - size.1 / 2.0));
        let (wide, high) = (px(size.0), px(size.1));
        let mut look = vec![("x", left.as_str()), ("y", &top), ("width", &wide), ("height", &high)];
        let Some(value) = point.value else {
            look.extend([("class", "blank"), ("fill", palette::GRID), ("fill-opacity", "0.5")]);
            painter.markup.empty("rect", &look).close();
            continue;
        };
        let (fill, ink) = palette::heat(map.place(value));
        look.push(("fill", &fill));
        painter.markup.empty("rect", &look);
        if size.0 >= ROOM.0 && size.1 >= ROOM.1 {
            number(painter, &short(value), (x, y + 3.8), ink);
        }
        painter.markup.close();
    }
}

/// A number on its cell, in a colour that is seen on it on any page.
fn number(painter: &mut Painter, text: &str, (x, y): (f64, f64), ink: &str) {
    let (x, y, size) = (px(x), px(y), px(NUMBER.size));
    let look = [("x", x.as_str()), ("y", &y), ("font-size", &size), ("fill", ink), ("text-anchor", "middle")];
    painter.markup.element("text", &look, text);
}

/// Three digits, with k, M or G: what fits into a cell.
fn short(value: f64) -> String {
    const STEPS: [(f64, &str); 4] = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    let (size, letter) = STEPS.into_iter().find(|(size, _)| value.abs() >= *size).unwrap_or((1.0, ""));
    let scaled = value / size;
    let decimals = if scaled.abs() >= 100.0 { 0 } else { usize::from(scaled.abs() < 10.0) };
    format!("{scaled:.decimals$}{letter}")
}

fn description(spec: &ChartSpec, panel: &Panel, colour: &Axis, point: &Point) -> String {
    let row = y_text(spec, panel, point.y);
    let column = x_text(spec, point.x);
    let unit = if spec.x.unit.is_empty() { String::new() } else { format!(" {}", spec.x.unit) };
    let value = point.value.map_or_else(|| "blank".to_owned(), |value| with_unit(value, &colour.unit));
    let mut text = format!("{row}, {}: {column}{unit}\n{}: {value}", spec.x.label, colour.label);
    if !point.note.is_empty() {
        text += &format!("\n{}", point.note);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_cells_are_short() {
        let cases =
            [(0.25, "0.2"), (3.0, "3.0"), (42.4, "42"), (999.0, "999"), (1234.0, "1.2k"), (2.5e7, "25M")];
        for (value, expected) in cases {
            assert_eq!(short(value), expected, "{value}");
        }
    }
}
