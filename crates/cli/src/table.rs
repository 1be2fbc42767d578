//! Aligned tables for people, and JSON for programs, from the same rows.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::Value;
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

/// A table without frames; numbers (cells that start with a digit) are aligned right. An empty header is left out.
pub fn print(header: &[&str], rows: &[Vec<String>]) {
    line(&text(header, rows));
}

/// The same as text.
pub fn text(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    if header.iter().any(|name| !name.is_empty()) {
        table.set_header(header);
    }
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let numeric = |row: &Vec<String>| {
            row.get(index).is_some_and(|cell| cell.starts_with(|c: char| c.is_ascii_digit()))
        };
        if !rows.is_empty() && rows.iter().all(numeric) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
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
