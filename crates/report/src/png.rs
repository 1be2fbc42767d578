//! A chart as PNG: the SVG drawn with the font inside the program, so that no machine's fonts matter.

use crate::chart::{ChartError, ChartSpec};
use crate::{font, svg};
use resvg::{tiny_skia, usvg};
use thiserror::Error;

/// Why there is no picture.
#[derive(Debug, Error)]
pub enum PngError {
    /// The chart itself is refused.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// The picture would be empty or too large.
    #[error("expected a picture of 1 to 16384 pixels a side, found {width} x {height}: change the scale")]
    Size {
        /// Pixels across.
        width: f64,
        /// Pixels down.
        height: f64,
    },
    /// The library that draws or packs refused our own SVG: a defect here.
    #[error("the chart `{chart}` could not be drawn: {reason}")]
    Draw {
        /// Title.
        chart: String,
        /// What the library says.
        reason: String,
    },
}

/// Most pixels a side. Chosen: 16384 squared is 1 GiB of colours.
const SIDE_MAX: f64 = 16_384.0;

/// Draws a chart `scale` times as large as its SVG; 2 is right for screens of today.
///
/// # Errors
/// The chart is refused, or `scale` makes no picture.
pub fn render(spec: &ChartSpec, scale: f64) -> Result<Vec<u8>, PngError> {
    let text = svg::render(spec, svg::Width::Page)?;
    let refuse = |reason: String| PngError::Draw { chart: spec.title.clone(), reason };
    let mut options = usvg::Options { font_family: "Noto Sans".to_owned(), ..usvg::Options::default() };
    for file in font::FILES {
        options.fontdb_mut().load_font_data(file.to_vec());
    }
    let tree = usvg::Tree::from_str(&text, &options).map_err(|error| refuse(error.to_string()))?;
    let (width, height) = (f64::from(tree.size().width()) * scale, f64::from(tree.size().height()) * scale);
    let too_large = || PngError::Size { width, height };
    let (across, down) = (pixels(width).ok_or_else(too_large)?, pixels(height).ok_or_else(too_large)?);
    let mut pixmap = tiny_skia::Pixmap::new(across, down).ok_or_else(too_large)?;
    // Sizes up to 16384 are exact in single precision; a scale need not be.
    let factor = f32_of(scale);
    resvg::render(&tree, tiny_skia::Transform::from_scale(factor, factor), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|error| refuse(error.to_string()))
}

/// The whole number of pixels that covers a length.
fn pixels(length: f64) -> Option<u32> {
    if !(1.0..=SIDE_MAX).contains(&length) {
        return None;
    }
    // Counting up is slow but exact, and needs no cast.
    (1..=16_384_u32).find(|count| f64::from(*count) >= length.floor())
}

/// The nearest number in single precision; scales are small.
fn f32_of(scale: f64) -> f32 {
    scale.to_string().parse().expect("the text of a double is a number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Panel, Point, Role, Series};

    fn chart() -> ChartSpec {
        let points = vec![Point::new(2.0, 10.0), Point::new(4.0, 20.0)];
        let panel = Panel::new("").series(Series::new("32 MB", Role::Ours, points));
        ChartSpec::new("throughput", Axis::log2("threads", ""), Axis::linear("throughput", "MB/s"))
            .panel(panel)
    }

    #[test]
    fn pictures_have_the_scaled_size_and_the_same_bytes_each_time() {
        let png = render(&chart(), 0.5).expect("the chart is valid");
        assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
        // The first chunk of a PNG is IHDR: length, name, width, height.
        assert_eq!(png[16..20], 480_u32.to_be_bytes());
        assert_eq!(png, render(&chart(), 0.5).expect("the chart is valid"));
    }

    #[test]
    fn texts_are_drawn_without_fonts_of_the_machine() {
        let plain = render(&chart(), 0.5).expect("the chart is valid");
        let other = ChartSpec { title: "latency___".to_owned(), ..chart() };
        assert_ne!(plain, render(&other, 0.5).expect("the chart is valid"), "the title makes a difference");
    }

    #[test]
    fn impossible_sizes_and_charts_are_refused() {
        for scale in [0.0, -1.0, f64::NAN, 1e9] {
            assert!(matches!(render(&chart(), scale), Err(PngError::Size { .. })), "{scale}");
        }
        let empty = ChartSpec { panels: vec![], ..chart() };
        assert!(matches!(render(&empty, 1.0), Err(PngError::Chart(_))));
    }
}
