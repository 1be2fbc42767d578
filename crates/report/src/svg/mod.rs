//! A chart as SVG.
//!
//! Colours are attributes, so that the file stands alone; elements carry classes, so that the style sheet of a report
//! can replace them. No ids: several charts may share a page. Layout uses the measured widths of the texts.

mod frame;
mod heat;
mod legend;
mod marks;
mod painter;
mod panel;

use crate::chart::{ChartError, ChartSpec};
use crate::palette;
use painter::{Anchor, BODY, HEADING, Ink, Painter, SMALL};
use panel::PanelLayout;

/// How wide the picture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 960 pixels, panels side by side: pages and slides.
    Page,
    /// 380 pixels, panels below each other: telephones.
    Phone,
}

impl Width {
    /// Pixels. Chosen: a page column, and the narrowest common telephone without its margins.
    pub fn pixels(self) -> f64 {
        match self {
            Self::Page => 960.0,
            Self::Phone => 380.0,
        }
    }

    /// Panels beside each other.
    fn columns(self, panels: usize) -> usize {
        match (self, panels) {
            (Self::Phone, _) => 1,
            (Self::Page, 1..=3) => panels,
            (Self::Page, 4) => 2,
            (Self::Page, _) => 3,
        }
    }
}

/// Space between the picture's edge and everything in it.
const MARGIN: f64 = 16.0;
/// Space between two panels.
const GAP: f64 = 28.0;

/// Draws a chart.
///
/// # Errors
/// What [`ChartSpec::check`] refuses.
pub fn render(spec: &ChartSpec, width: Width) -> Result<String, ChartError> {
    spec.check()?;
    let mut painter = Painter::new();
    let inner = width.pixels() - 2.0 * MARGIN;
    let mut y = heading(&mut painter, spec, inner);
    y = match &spec.colour {
        Some(colour) => heat::draw_bar(&mut painter, spec, colour, (MARGIN, y)),
        None => legend::draw(&mut painter, spec, (MARGIN, y), inner),
    };
    y = panels(&mut painter, spec, width, y);
    for line in painter.font.wrap(&spec.source, SMALL, inner) {
        y += 15.0;
        painter.text(&line, (MARGIN, y), SMALL, Ink::Muted, Anchor::Start);
    }
    Ok(finish(painter, spec, width, y + MARGIN))
}

/// Title and subtitle; returns where the rest begins.
fn heading(painter: &mut Painter, spec: &ChartSpec, inner: f64) -> f64 {
    let mut y = MARGIN;
    for line in painter.font.wrap(&spec.title, HEADING, inner) {
        y += 20.0;
        painter.text(&line, (MARGIN, y), HEADING, Ink::First, Anchor::Start);
    }
    for line in painter.font.wrap(&spec.subtitle, BODY, inner) {
        y += 18.0;
        painter.text(&line, (MARGIN, y), BODY, Ink::Muted, Anchor::Start);
    }
    y + 12.0
}

/// All panels, row by row; returns the lower end of the last row.
fn panels(painter: &mut Painter, spec: &ChartSpec, width: Width, top: f64) -> f64 {
    let columns = width.columns(spec.panels.len());
    let count = crate::chart::as_x(columns);
    let cell = (width.pixels() - 2.0 * MARGIN - GAP * (count - 1.0)) / count;
    let layouts: Vec<PanelLayout<'_>> =
        spec.panels.iter().map(|panel| PanelLayout::new(painter, spec, panel, cell)).collect();
    let left = layouts.iter().map(PanelLayout::tick_width).fold(0.0, f64::max);
    let mut y = top;
    for row in layouts.chunks(columns) {
        let title_lines = row.iter().map(PanelLayout::title_lines).max().unwrap_or(0);
        let mut bottom = y;
        for (index, layout) in row.iter().enumerate() {
            let x = MARGIN + crate::chart::as_x(index) * (cell + GAP);
            bottom = f64::max(bottom, layout.draw(painter, (x, y), left, title_lines));
        }
        y = bottom + 18.0;
    }
    y - 10.0
}

/// Wraps what was drawn into the outermost element, now that the height is known.
fn finish(painter: Painter, spec: &ChartSpec, width: Width, height: f64) -> String {
    let (width, height) = (crate::markup::px(width.pixels()), crate::markup::px(height.ceil()));
    let view_box = format!("0 0 {width} {height}");
    let mut svg = crate::markup::Markup::default();
    svg.open(
        "svg",
        &[
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("viewBox", &view_box),
            ("width", &width),
            ("height", &height),
            ("font-family", crate::font::FAMILY),
            ("role", "img"),
            ("aria-label", &spec.title),
        ],
    );
    svg.newline();
    svg.empty("rect", &[("class", "page"), ("width", &width), ("height", &height), ("fill", palette::PAGE)]);
    svg.raw(&painter.finish()).newline().close().newline();
    svg.finish()
}

#[cfg(test)]
mod tests;
