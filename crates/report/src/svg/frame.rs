//! The plot area of a panel: where it is, its grid, ticks and labels.

use super::painter::{Anchor, Ink, Painter, SMALL};
use crate::chart::{AxisMap, Tick};
use crate::palette;

/// Height of a line of tick labels.
const LABEL_LINE: f64 = 15.0;

/// A rectangle with its axes.
pub(super) struct Frame<'a> {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// Horizontal axis.
    pub x: &'a AxisMap,
    /// Vertical axis.
    pub y: &'a AxisMap,
}

impl Frame<'_> {
    /// Where a point of data lies on the picture.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + self.width * self.x.place(x), self.y_at(self.y.place(y)))
    }

    /// How high a number lies on the picture.
    pub fn y_of(&self, y: f64) -> f64 {
        self.y_at(self.y.place(y))
    }

    /// The height of bars' feet.
    pub fn base(&self) -> f64 {
        self.y_at(self.y.base())
    }

    fn y_at(&self, place: f64) -> f64 {
        self.top + self.height * (1.0 - place)
    }

    /// The right edge.
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    /// The lower edge.
    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Grid, ticks and their labels; returns the lower end of the labels.
    pub fn draw(&self, painter: &mut Painter, has_categories: bool) -> f64 {
        let mut taken = f64::INFINITY;
        for tick in &self.y.ticks {
            let y = self.y_at(self.y.place(tick.value));
            painter.line("grid", palette::GRID, (self.left, y), (self.right(), y));
            // Names of rows that would touch the one below are left out.
            if y > taken - 11.0 {
                continue;
            }
            taken = y;
            let at = (self.left - 7.0, y + 4.2);
            painter.text(&tick.label, at, SMALL, Ink::Muted, Anchor::End);
        }
        let base = self.base();
        painter.line("axis", palette::MUTED, (self.left, base), (self.right(), base));
        if has_categories { self.draw_categories(painter) } else { self.draw_numbers(painter) }
    }

    /// Tick labels that would touch their neighbour are left out; their tick stays.
    fn draw_numbers(&self, painter: &mut Painter) -> f64 {
        let mut taken = f64::NEG_INFINITY;
        for tick in &self.x.ticks {
            let x = self.left + self.width * self.x.place(tick.value);
            painter.line("axis", palette::MUTED, (x, self.bottom()), (x, self.bottom() + 4.0));
            let half = painter.font.width(&tick.label, SMALL) / 2.0;
            if x - half >= taken + 4.0 {
                let at = (x, self.bottom() + 4.0 + LABEL_LINE);
                painter.text(&tick.label, at, SMALL, Ink::Muted, Anchor::Middle);
                taken = x + half;
            }
        }
        self.bottom() + 4.0 + LABEL_LINE
    }

    /// Names are broken into lines rather than left out.
    fn draw_categories(&self, painter: &mut Painter) -> f64 {
        let step = self.x.place(1.0) - self.x.place(0.0);
        let mut lowest = self.bottom() + LABEL_LINE;
        for Tick { value, label } in &self.x.ticks {
            let x = self.left + self.width * self.x.place(*value);
            let mut y = self.bottom() + 4.0;
            for line in painter.font.wrap(label, SMALL, self.width * step - 4.0) {
                y += LABEL_LINE;
                painter.text(&line, (x, y), SMALL, Ink::Muted, Anchor::Middle);
            }
            lowest = lowest.max(y);
        }
        lowest
    }
}
