//! Colours and marker shapes.
//!
//! Hues: Okabe and Ito, "Color Universal Design" (2008), told apart with every common colour blindness; its yellow and
//! black are replaced, since they vanish on white or read as axis ink. Shapes repeat what hues say, for print in grey.

use crate::verdict::Outcome;

/// Hues on a light page, by index of the series' name. Six of Okabe and Ito's; indigo and grey are chosen.
pub(crate) const LIGHT: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#b5568c", "#c98500", "#3a9bd9", "#4b3f9e", "#5f6670"];

/// The same on a dark page, lighter. Chosen: each has a contrast of at least 4.5 to the page.
pub(crate) const DARK: [&str; 8] =
    ["#58b0ee", "#ff8d4d", "#35c99b", "#e59bc6", "#f2bb3d", "#8fd3fb", "#a99cf2", "#b4bcc6"];

/// Text of the first rank on a light page.
pub(crate) const INK: &str = "#1b1f24";
/// Text of the second rank, axis labels.
pub(crate) const MUTED: &str = "#59636e";
/// Lines behind the data.
pub(crate) const GRID: &str = "#e4e8ec";
/// The page.
pub(crate) const PAGE: &str = "#ffffff";

/// Colour of a result on a light page.
pub(crate) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "#00795a",
        Outcome::Fails => "#b34700",
        Outcome::NotEvaluated => MUTED,
    }
}

/// Colours of a heat map from least to greatest: dark blue over green to yellow, even steps of lightness, told apart with
/// every common colour blindness and in grey. Values of "viridis" (S. van der Walt and N. Smith, 2015, public domain) at
/// ninths, which its authors give to three decimals.
const HEAT: [(f64, f64, f64); 9] = [
    (68.0, 1.0, 84.0),
    (71.0, 45.0, 123.0),
    (59.0, 82.0, 139.0),
    (44.0, 114.0, 142.0),
    (33.0, 145.0, 140.0),
    (40.0, 174.0, 128.0),
    (94.0, 201.0, 98.0),
    (173.0, 220.0, 48.0),
    (253.0, 231.0, 37.0),
];

/// The colour of a heat map at `place` between 0 and 1, and the colour of a text on it.
pub(crate) fn heat(place: f64) -> (String, &'static str) {
    let steps = 8.0;
    let at = place.clamp(0.0, 1.0) * steps;
    let below = (0..8_u8).rev().find(|step| f64::from(*step) <= at).unwrap_or(0);
    let part = at - f64::from(below);
    let (low, high) = (HEAT[usize::from(below)], HEAT[usize::from(below) + 1]);
    let mix = |low: f64, high: f64| low + (high - low) * part;
    let colour =
        format!("rgb({:.0},{:.0},{:.0})", mix(low.0, high.0), mix(low.1, high.1), mix(low.2, high.2));
    // Chosen: where the contrast of white falls below that of black.
    (colour, if place < 0.55 { "#ffffff" } else { "#101418" })
}

/// Corners of the marker of a hue around the origin, for radius 1; none for a circle.
pub(crate) fn corners(hue: usize) -> Vec<(f64, f64)> {
    // Count, angle of the first corner in degrees (0 is right, 90 is down), and radius so that areas look equal.
    let (count, first, radius) = match hue % LIGHT.len() {
        1 => (4, 45.0, 1.2),
        2 => (3, -90.0, 1.35),
        3 => (4, 0.0, 1.3),
        4 => (3, 90.0, 1.35),
        5 => (5, -90.0, 1.15),
        6 => (6, 0.0, 1.1),
        7 => (3, 0.0, 1.35),
        _ => return Vec::new(),
    };
    let corner = |index: i32| {
        let angle = (first + 360.0 * f64::from(index) / f64::from(count)).to_radians();
        (radius * angle.cos(), radius * angle.sin())
    };
    (0..count).map(corner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, WCAG 2.2.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let byte = u8::from_str_radix(&colour[at..at + 2], 16).expect("colours are #rrggbb");
            let part = f64::from(byte) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_colour_stands_out_from_its_page() {
        // WCAG 2.2: 3 for graphics, 4.5 for text.
        for hue in LIGHT {
            assert!(contrast(hue, PAGE) >= 3.0, "{hue}: {}", contrast(hue, PAGE));
        }
        for hue in DARK {
            assert!(contrast(hue, "#14181d") >= 4.5, "{hue}: {}", contrast(hue, "#14181d"));
        }
        for text in [INK, MUTED, outcome(Outcome::Holds), outcome(Outcome::Fails)] {
            assert!(contrast(text, PAGE) >= 4.5, "{text}");
        }
    }

    #[test]
    fn all_hues_and_shapes_differ() {
        for a in 0..LIGHT.len() {
            for b in 0..a {
                assert!(
                    LIGHT[a] != LIGHT[b] && DARK[a] != DARK[b] && corners(a) != corners(b),
                    "{a} and {b}"
                );
            }
        }
    }
}
