//! Aligned tables for people, and JSON for programs, from the same rows.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::Value;

/// A table without frames; numbers (cells that start with a digit) are aligned right.
pub fn print(header: &[&str], rows: &[Vec<String>]) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let numeric = |row: &Vec<String>| row.get(index).is_some_and(|cell| cell.starts_with(|c: char| c.is_ascii_digit()));
        if !rows.is_empty() && rows.iter().all(numeric) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    println!("{}", table.trim_fmt());
}

/// JSON, indented.
pub fn print_json(value: &Value) {
    println!("{value:#}");
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
