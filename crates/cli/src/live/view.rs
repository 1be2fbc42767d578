//! A change as lines: a screenful on a terminal, one line without.

use super::sample::{Change, TargetChange, as_f64};
use console::Style;
use ocssd_measure::profile::{rate_word, time_word};

/// How busy a unit was, from nothing to all the time.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Shades of it: blue, green, yellow, red of the 256 colours that terminals have.
const SHADES: [u8; 4] = [33, 40, 220, 196];
/// Columns of the curve of throughput.
const HISTORY: usize = 60;

/// What is said above everything.
#[derive(Clone, Debug, Default)]
pub struct Heading {
    /// What is done.
    pub what: String,
    /// How long it has taken and may take, in words.
    pub time: String,
}

fn latency(nanos: Option<u64>) -> String {
    nanos.map_or_else(|| "-".to_owned(), |nanos| time_word(as_f64(nanos)))
}

/// One line: for logs, and where there is no terminal.
pub fn line(heading: &Heading, change: &Change) -> String {
    let mut words = vec![
        heading.what.clone(),
        heading.time.clone(),
        format!("{:.0} IOPS", change.iops),
        rate_word(change.bytes_per_second),
        format!("p50 {}", latency(change.p50_ns)),
        format!("p99 {}", latency(change.p99_ns)),
    ];
    if !change.busy.is_empty() {
        words.push(format!("units {:.0} % busy", 100.0 * mean(&change.busy)));
    }
    words.extend(change.targets.iter().filter_map(target));
    words.retain(|word| !word.is_empty());
    words.join("; ")
}

fn mean(shares: &[f64]) -> f64 {
    shares.iter().sum::<f64>() / as_f64(u64::try_from(shares.len()).expect("few units")).max(1.0)
}

/// What a target says of collection and buffer; nothing if it has neither.
fn target(one: &TargetChange) -> Option<String> {
    let lines = one.lines_free?;
    let mut text = format!("{}: {lines} lines free", one.name);
    if let (Some(victims), Some(gc), Some(user)) = (one.victims, one.gc_sectors, one.user_sectors) {
        text += &format!(", GC {victims} lines, {gc} sectors moved for {user} written");
    }
    text += &one.amplification.map_or_else(String::new, |ratio| format!(", amplification {ratio:.2}"));
    if let Some([unwritten, unreadable, cached]) = one.buffer {
        text += &format!(", buffer {unwritten} to write + {unreadable} unreadable + {cached} cached units");
    }
    Some(text)
}

/// A screenful of at most `width` columns and `height` lines; `history` are throughputs, the newest last.
pub fn screen(
    heading: &Heading,
    change: &Change,
    history: &[f64],
    (width, height): (usize, usize),
    is_coloured: bool,
) -> Vec<String> {
    let bold = paint(Style::new().bold(), is_coloured);
    let mut lines = vec![bold.apply_to(cut(&heading.what, width)).to_string(), cut(&heading.time, width)];
    let (rate, bytes) = (format!("{:.0} IOPS", change.iops), rate_word(change.bytes_per_second));
    let (p50, p99) = (latency(change.p50_ns), latency(change.p99_ns));
    lines.push(cut(&format!("{rate:>14}   {bytes:>12}   p50 {p50:>9}   p99 {p99:>9}"), width));
    lines.push(cut(&format!("IOPS  {}", spark(history)), width));
    for one in change.targets.iter().filter_map(target) {
        lines.extend(wrapped(&one, width));
    }
    let room = height.saturating_sub(lines.len() + 1);
    lines.extend(units(change, (width, room), is_coloured));
    lines.truncate(height.saturating_sub(1).max(1));
    lines
}

fn paint(style: Style, is_coloured: bool) -> Style {
    style.force_styling(is_coloured)
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

/// A sentence in lines, broken at commas.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in text.split(", ") {
        let last = lines.last_mut().expect("one line at least");
        let joint = if last.is_empty() { "" } else { ", " };
        if !last.is_empty() && last.chars().count() + joint.len() + part.chars().count() > width {
            lines.push(format!("  {part}"));
        } else {
            last.push_str(joint);
            last.push_str(part);
        }
    }
    lines.into_iter().map(|line| cut(&line, width)).collect()
}

/// A curve in a line, from nothing to its greatest number.
fn spark(history: &[f64]) -> String {
    let shown = &history[history.len().saturating_sub(HISTORY)..];
    let most = shown.iter().copied().fold(0.0, f64::max);
    shown.iter().map(|&value| LEVELS[level(if most > 0.0 { value / most } else { 0.0 })]).collect()
}

/// A place among [`LEVELS`]; anything but nothing is seen.
fn level(share: f64) -> usize {
    (1..LEVELS.len())
        .rev()
        .find(|&level| share * 8.0 > as_f64(u64::try_from(level - 1).expect("below 9")))
        .unwrap_or(0)
}

/// The units of each group in a row, or in several if the terminal is narrow.
fn units(change: &Change, (width, room): (usize, usize), is_coloured: bool) -> Vec<String> {
    if change.busy.is_empty() || change.groups == 0 {
        return Vec::new();
    }
    let each = change.busy.len().div_ceil(usize::try_from(change.groups).expect("a drive has few groups"));
    let title = format!(
        "parallel units, {:.0} % busy: a row is a group, from idle ' ' to always busy '█'",
        100.0 * mean(&change.busy)
    );
    let mut lines = vec![cut(&title, width)];
    let row = width.saturating_sub(4).max(1);
    for (group, shares) in change.busy.chunks(each.max(1)).enumerate() {
        for (part, shares) in shares.chunks(row).enumerate() {
            let name = if part == 0 { format!("{group:>3} ") } else { "    ".to_owned() };
            let fields: String = shares.iter().map(|&share| field(share, is_coloured)).collect();
            lines.push(name + &fields);
        }
    }
    if lines.len() > room && room > 1 {
        let left = lines.len() - room + 1;
        lines.truncate(room - 1);
        lines.push(format!("    and {left} rows more"));
    }
    lines
}

fn field(share: f64, is_coloured: bool) -> String {
    let level = level(share);
    let shade = SHADES[(level.saturating_sub(1) / 2).min(SHADES.len() - 1)];
    paint(Style::new().color256(shade), is_coloured).apply_to(LEVELS[level]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Nanos;

    fn change() -> Change {
        Change {
            time: Nanos::from_secs(1),
            iops: 12_345.0,
            bytes_per_second: 50e6,
            p50_ns: Some(81_000),
            p99_ns: None,
            busy: vec![0.0, 0.5, 1.0, 0.01],
            groups: 2,
            targets: vec![TargetChange {
                name: "pblk".to_owned(),
                lines_free: Some(9),
                victims: Some(2),
                gc_sectors: Some(300),
                user_sectors: Some(1000),
                amplification: Some(1.3),
                buffer: Some([1, 2, 3]),
            }],
        }
    }

    fn heading() -> Heading {
        Heading { what: "run 3 of 9".to_owned(), time: "4 s gone".to_owned() }
    }

    #[test]
    fn a_line_has_everything() {
        let expected = "run 3 of 9; 4 s gone; 12345 IOPS; 50.0 MB/s; p50 81.0 us; p99 -; units 38 % busy; pblk: 9 lines free, \
                        GC 2 lines, 300 sectors moved for 1000 written, amplification 1.30, buffer 1 to write + 2 unreadable + 3 \
                        cached units";
        assert_eq!(line(&heading(), &change()), expected);
        let real = Change { busy: Vec::new(), groups: 0, targets: Vec::new(), ..change() };
        assert_eq!(
            line(&heading(), &real),
            "run 3 of 9; 4 s gone; 12345 IOPS; 50.0 MB/s; p50 81.0 us; p99 -"
        );
    }

    #[test]
    fn a_screen_fits_any_terminal() {
        for width in [1, 20, 40, 80, 300] {
            for height in [1, 3, 6, 24] {
                let lines = screen(&heading(), &change(), &[1.0, 2.0, 0.0], (width, height), false);
                assert!(lines.len() <= height.max(1), "{width} x {height}: {lines:?}");
                if width >= 20 {
                    assert!(
                        lines.iter().all(|line| line.chars().count() <= width),
                        "{width} x {height}: {lines:?}"
                    );
                }
            }
        }
        let lines = screen(&heading(), &change(), &[1.0, 2.0, 0.0], (120, 24), false);
        assert!(
            lines.iter().any(|line| line == "  0  ▄") && lines.iter().any(|line| line == "  1 █▁"),
            "{lines:?}"
        );
        assert!(lines.contains(&"IOPS  ▄█ ".to_owned()), "{lines:?}");
    }
}
