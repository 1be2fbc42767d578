//! Puts texts, lines and markers on the picture.

use crate::font::{Font, Text};
use crate::markup::{Markup, px};
use crate::palette;

/// The title of a chart.
pub(super) const HEADING: Text = Text { size: 17.0, is_bold: true };
/// The title of a panel.
pub(super) const PANEL: Text = Text { size: 13.5, is_bold: true };
/// Legend and subtitle.
pub(super) const BODY: Text = Text { size: 13.0, is_bold: false };
/// Axes and annotations.
pub(super) const SMALL: Text = Text { size: 12.0, is_bold: false };

/// Radius of a marker in pixels.
pub(super) const MARKER: f64 = 4.0;

/// The dashes of everything from a paper.
pub(super) const DASHES: &str = "6 4";

/// Rank of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// What is read first.
    First,
    /// What is looked up.
    Muted,
}

impl Ink {
    fn class_and_colour(self) -> (&'static str, &'static str) {
        match self {
            Self::First => ("ink", palette::INK),
            Self::Muted => ("muted", palette::MUTED),
        }
    }
}

/// Which part of a text is at the given place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The picture under construction.
pub(super) struct Painter {
    pub font: Font,
    pub markup: Markup,
}

impl Painter {
    pub fn new() -> Self {
        Self { font: Font::new(), markup: Markup::default() }
    }

    /// One line of text with its baseline at `y`.
    pub fn text(&mut self, text: &str, (x, y): (f64, f64), style: Text, ink: Ink, anchor: Anchor) {
        let (class, colour) = ink.class_and_colour();
        let (x, y, size) = (px(x), px(y), px(style.size));
        let mut attributes =
            vec![("class", class), ("x", &x), ("y", &y), ("font-size", &size), ("fill", colour)];
        if style.is_bold {
            attributes.push(("font-weight", "bold"));
        }
        match anchor {
            Anchor::Start => {}
            Anchor::Middle => attributes.push(("text-anchor", "middle")),
            Anchor::End => attributes.push(("text-anchor", "end")),
        }
        self.markup.newline().element("text", &attributes, text);
    }

    /// A small text on the data, with a rim in the colour of the page, so that lines behind it do not make it unreadable.
    pub fn label(&mut self, text: &str, (x, y): (f64, f64), anchor: Anchor) {
        let (x, y, size) = (px(x), px(y), px(SMALL.size));
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let mut look = vec![("class", "muted rim"), ("x", x.as_str()), ("y", &y), ("font-size", &size)];
        look.extend([("fill", palette::MUTED), ("text-anchor", anchor), ("stroke", palette::PAGE)]);
        look.extend([("stroke-width", "4"), ("stroke-linejoin", "round"), ("paint-order", "stroke")]);
        self.markup.newline().element("text", &look, text);
    }

    /// A straight line of the given class and colour.
    pub fn line(&mut self, class: &str, colour: &str, from: (f64, f64), to: (f64, f64)) {
        self.stroke(&[("class", class), ("stroke", colour)], from, to);
    }

    /// A dotted line across a panel.
    pub fn dotted_line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let look = [("class", "rule"), ("stroke", palette::MUTED), ("stroke-dasharray", "2 3")];
        self.stroke(&look, from, to);
    }

    fn stroke(&mut self, look: &[(&str, &str)], from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (px(from.0), px(from.1), px(to.0), px(to.1));
        let mut attributes = look.to_vec();
        attributes.extend([("x1", x1.as_str()), ("y1", &y1), ("x2", &x2), ("y2", &y2)]);
        self.markup.newline().empty("line", &attributes);
    }

    /// A marker in the current colour; hollow ones are filled with the page, to stay readable over lines.
    pub fn marker(&mut self, hue: usize, is_hollow: bool, (x, y): (f64, f64), radius: f64) {
        let fill = if is_hollow { palette::PAGE } else { "currentColor" };
        let class = if is_hollow { "hollow" } else { "full" };
        let look = [("class", class), ("fill", fill), ("stroke", "currentColor"), ("stroke-width", "1.5")];
        let corners = palette::corners(hue);
        if corners.is_empty() {
            let (x, y, r) = (px(x), px(y), px(radius));
            let mut attributes = look.to_vec();
            attributes.extend([("cx", x.as_str()), ("cy", &y), ("r", &r)]);
            self.markup.empty("circle", &attributes);
            return;
        }
        let at = |(dx, dy): &(f64, f64)| format!("{},{}", px(x + dx * radius), px(y + dy * radius));
        let points = corners.iter().map(at).collect::<Vec<_>>().join(" ");
        let mut attributes = look.to_vec();
        attributes.push(("points", &points));
        self.markup.empty("polygon", &attributes);
    }

    pub fn finish(self) -> String {
        self.markup.finish()
    }
}
