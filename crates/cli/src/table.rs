//! Aligned tables for people, and JSON for programs, from the same rows.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use ocssd_workload::results::fold::COLUMNS;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{ErrorKind, Write, stdout};

/// Writes text to standard output. A reader that has seen enough, as `head`, ends the program without a word.
pub fn show(text: &str) {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            eprintln!(
                "ocssd: the output cannot be written: {error}; free some room or choose another place for it"
            );
            std::process::exit(2);
        }
    }
}

/// Writes a line to standard output, for programs that must go on when nobody reads it any more.
pub fn say(text: &str) {
    let mut out = stdout().lock();
    // Whoever read it has gone, or its disk is full: neither ends a server.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Writes a line to standard output.
pub fn line(text: &str) {
    show(&format!("{text}\n"));
}

/// A table without frames; columns of numbers (cells that start with a digit, or are blank) are aligned right.
/// An empty header is left out.
pub fn print(header: &[&str], rows: &[Vec<String>]) {
    line(&text(header, rows));
}

/// The same as text.
pub fn text(header: &[&str], rows: &[Vec<String>]) -> String {
    arranged(header, rows).set_content_arrangement(ContentArrangement::Disabled).trim_fmt()
}

/// A table whose sentences go on in the next line where they do not fit a terminal; what programs read is in JSON.
pub fn print_folded(header: &[&str], rows: &[Vec<String>]) {
    line(&folded(header, rows));
}

fn folded(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = u16::try_from(COLUMNS).expect("a terminal is narrower");
    arranged(header, rows).set_content_arrangement(ContentArrangement::Dynamic).set_width(width).trim_fmt()
}

fn arranged(header: &[&str], rows: &[Vec<String>]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if header.iter().any(|name| !name.is_empty()) {
        table.set_header(header);
    }
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let is_numeric = |cell: &str| cell.starts_with(|c: char| c.is_ascii_digit());
        let mut cells =
            rows.iter().map(|row| row.get(index).map_or("", String::as_str)).filter(|cell| !cell.is_empty());
        if cells.clone().next().is_some() && cells.all(is_numeric) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Whether a terminal may be sent colours, by the values of `NO_COLOR` (any text forbids them, no-color.org) and `TERM`.
pub fn may_paint(no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    no_color.is_none_or(OsStr::is_empty) && term.is_none_or(|term| term != "dumb")
}

/// JSON, indented.
pub fn print_json(value: &Value) {
    line(&format!("{value:#}"));
}

/// Bytes in the largest decimal unit that keeps the number above one.
#[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
pub fn bytes(count: u64) -> String {
    let units = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let value = count as f64;
    units
        .iter()
        .find(|(_, scale)| value >= *scale)
        .map_or_else(|| format!("{count} B"), |(unit, scale)| format!("{:.2} {unit}", value / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_right_also_where_one_is_missing() {
        let rows =
            [["a", "10", ""], ["b", "5", ""], ["c", "", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(text(&["", "n", "m"], &rows), "     n  m\n a  10\n b   5\n c");
    }

    #[test]
    fn a_sentence_that_does_not_fit_a_terminal_goes_on_in_the_next_line() {
        let about =
            "a drive of which more is to be told than one line has room for, and then some of it again";
        let rows = [["westlake", "2.29 TB", about], ["tiny", "8.39 MB", "small"]];
        let shown =
            folded(&["preset", "capacity", "about"], &rows.map(|row| row.map(str::to_owned).to_vec()));
        assert!(shown.lines().all(|line| line.chars().count() <= COLUMNS), "{shown}");
        assert_eq!(shown.lines().count(), 4, "{shown}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for word in words(about) {
            assert!(words(&shown).contains(&word), "{word} is torn in:\n{shown}");
        }
    }

    #[test]
    fn colours_are_for_terminals_that_have_them_and_users_who_want_them() {
        let may = |no_color: Option<&str>, term: Option<&str>| {
            may_paint(no_color.map(OsStr::new), term.map(OsStr::new))
        };
        assert!(may(None, Some("xterm")) && may(Some(""), None));
        assert!(!may(Some("1"), Some("xterm")) && !may(None, Some("dumb")));
    }
}
