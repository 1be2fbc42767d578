//! The one font, its bytes inside the program, and how wide texts are in it.

use ttf_parser::Face;

/// Name that SVG asks for first. The rest is what browsers fall back to; [`SLACK`] covers their wider letters.
pub(crate) const FAMILY: &str = "Noto Sans, DejaVu Sans, Segoe UI, Helvetica, Arial, sans-serif";

/// Regular and bold, as TrueType files. Noto Sans, SIL Open Font License.
pub(crate) const FILES: [&[u8]; 2] = [notosans::REGULAR_TTF, notosans::BOLD_TTF];

/// Room for a browser's other font. Measured: DejaVu Sans is 3 to 8 % wider than Noto Sans on our labels.
const SLACK: f64 = 1.08;

/// Measures texts.
pub(crate) struct Font {
    regular: Face<'static>,
    bold: Face<'static>,
}

/// How a text is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Text {
    /// Height of the font in pixels.
    pub size: f64,
    /// Whether it is bold.
    pub is_bold: bool,
}

impl Font {
    /// Parses the two files. Cost: some microseconds.
    pub fn new() -> Self {
        let face =
            |bytes| Face::parse(bytes, 0).expect("the font is part of the program and a test parses it");
        Self { regular: face(FILES[0]), bold: face(FILES[1]) }
    }

    /// Width in pixels, generously.
    pub fn width(&self, text: &str, style: Text) -> f64 {
        let face = if style.is_bold { &self.bold } else { &self.regular };
        // Chosen: what the font does not have is counted as a full square, as East Asian letters are.
        let em = face.units_per_em();
        let advance =
            |c: char| face.glyph_index(c).and_then(|glyph| face.glyph_hor_advance(glyph)).unwrap_or(em);
        let units: f64 = text.chars().map(|c| f64::from(advance(c))).sum();
        units / f64::from(em) * style.size * SLACK
    }

    /// Breaks a text at spaces into lines of at most `width` pixels; a longer word is broken within.
    pub fn wrap(&self, text: &str, style: Text, width: f64) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut line = String::new();
        for word in words(text) {
            let word = word.as_str();
            let joined = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if self.width(&joined, style) <= width {
                line = joined;
                continue;
            }
            if !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            for c in word.chars() {
                line.push(c);
                if self.width(&line, style) > width && line.chars().count() > 1 {
                    line.pop();
                    lines.push(std::mem::replace(&mut line, c.to_string()));
                }
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
        lines
    }
}

/// The words of a text; a percent sign stays with its number.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(last) if word.starts_with('%') => *last += &format!(" {word}"),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Text = Text { size: 12.0, is_bold: false };

    #[test]
    fn the_font_has_what_reports_write() {
        let font = Font::new();
        for c in ('!'..='~').chain("×µ±≤≥–°".chars()) {
            assert!(font.regular.glyph_index(c).is_some() && font.bold.glyph_index(c).is_some(), "{c}");
        }
    }

    #[test]
    fn longer_and_bolder_texts_are_wider() {
        let font = Font::new();
        assert!(font.width("MB/s", PLAIN) < font.width("MB/s MB/s", PLAIN));
        assert!(font.width("MB/s", PLAIN) < font.width("MB/s", Text { is_bold: true, ..PLAIN }));
        assert!(font.width("汉", PLAIN) >= 12.0, "letters the font lacks still take room");
    }

    #[test]
    fn wrapped_lines_fit_and_lose_nothing() {
        let font = Font::new();
        let text =
            "random writes fall from 2026 MB/s at 18 threads to 1336_and_a_word_that_is_far_too_long MB/s";
        let lines = font.wrap(text, PLAIN, 120.0);
        assert!(lines.iter().all(|line| font.width(line, PLAIN) <= 120.0), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        assert!(font.wrap("", PLAIN, 120.0).is_empty());
    }
}
