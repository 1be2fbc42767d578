//! The legend: a hue and a shape for each name, then what solid and dashed mean.

use super::painter::{Anchor, BODY, DASHES, Ink, MARKER, Painter};
use crate::chart::{ChartSpec, Role};
use crate::markup::px;
use crate::palette;

/// Width of the sample before a text.
const SAMPLE: f64 = 30.0;
/// Height of a row.
const ROW: f64 = 24.0;

/// One entry.
struct Key<'a> {
    text: &'a str,
    /// Hue of a name; none for an entry about a role.
    hue: Option<usize>,
    /// Role the sample is drawn as.
    role: Role,
}

/// Draws the legend at `(x, y)`, in as many rows as `width` needs; returns its lower end.
pub(super) fn draw(painter: &mut Painter, spec: &ChartSpec, (left, top): (f64, f64), width: f64) -> f64 {
    let (mut x, mut y) = (left, top);
    for key in keys(spec) {
        let need = SAMPLE + 6.0 + painter.font.width(key.text, BODY);
        if x > left && x + need > left + width {
            (x, y) = (left, y + ROW);
        }
        draw_key(painter, &key, (x, y), need);
        x += need + 16.0;
    }
    y + ROW + 10.0
}

fn keys(spec: &ChartSpec) -> Vec<Key<'_>> {
    let has = |role| spec.panels.iter().flat_map(|panel| &panel.series).any(|series| series.role == role);
    let solid = if has(Role::Ours) { Role::Ours } else { Role::Paper };
    let names = spec.names().into_iter().enumerate();
    let mut keys: Vec<Key<'_>> = names.map(|(hue, text)| Key { text, hue: Some(hue), role: solid }).collect();
    for (role, text) in [(Role::Ours, "ours: solid"), (Role::Paper, "paper: hollow, dashed")] {
        // Where nothing is from a paper, nobody asks whose numbers these are.
        if has(role) && has(Role::Paper) {
            keys.push(Key { text, hue: None, role });
        }
    }
    keys
}

fn draw_key(painter: &mut Painter, key: &Key<'_>, (x, y): (f64, f64), width: f64) {
    let hue = key.hue.map(|hue| hue.to_string());
    let class = key.hue.map_or_else(|| "key muted".to_owned(), |hue| format!("key h{hue}"));
    let colour = key.hue.map_or(palette::MUTED, |hue| palette::LIGHT[hue]);
    let about = hue.as_ref().map_or(("data-role", key.role.word()), |hue| ("data-hue", hue.as_str()));
    painter.markup.newline().open("g", &[("class", &class), about, ("color", colour)]);
    let (left, top, wide) = (px(x - 4.0), px(y), px(width + 8.0));
    // An area to press; invisible.
    let area = [("x", left.as_str()), ("y", &top), ("width", &wide), ("height", "24"), ("fill-opacity", "0")];
    painter.markup.empty("rect", &area);
    let middle = y + ROW / 2.0;
    let path = format!("M{} {}h{}", px(x), px(middle), px(SAMPLE - 2.0));
    let mut line = vec![("d", path.as_str()), ("stroke", "currentColor"), ("stroke-width", "2")];
    if key.role == Role::Paper {
        line.push(("stroke-dasharray", DASHES));
    }
    painter.markup.empty("path", &line);
    let at = (x + SAMPLE / 2.0 - 1.0, middle);
    painter.marker(key.hue.unwrap_or(0), key.role == Role::Paper, at, MARKER);
    painter.text(key.text, (x + SAMPLE + 6.0, middle + 4.5), BODY, Ink::First, Anchor::Start);
    painter.markup.close();
}
