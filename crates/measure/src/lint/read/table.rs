//! Published numbers as a table: CSV, or a JSON list of objects, with the same columns. An empty field is unknown.

use serde_json::Value;

use super::document::kind;
use super::error::ReadProblem;
use super::size;
use crate::lint::evidence::thousandths;
use crate::lint::{Cell, Evidence, Format, Order, Side, SideKind};

/// The columns; besides these `p<percent>_us`, as `p99.9_us`. `docs/lint.md` explains them.
const COLUMNS: [&str; 20] = [
    "name",
    "series",
    "workload",
    "read_percent",
    "order",
    "block_bytes",
    "depth",
    "engine",
    "direct",
    "open_loop",
    "mapped",
    "footprint_bytes",
    "iops",
    "bandwidth_bytes_per_second",
    "bandwidth_unit",
    "latency_mean_us",
    "latency_is_whole",
    "samples",
    "cpu_percent",
    "runtime_s",
];

/// Whether the first line could be a header of ours.
pub(super) fn is_table(text: &str) -> bool {
    let header = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
    header.split(',').any(|column| column.trim().trim_matches('"') == "name")
}

/// Reads CSV; lines that begin with `#` are comments.
pub(super) fn from_csv(name: &str, text: &str) -> Result<Evidence, ReadProblem> {
    let broken = |error: csv::Error| ReadProblem::BrokenTable(error.to_string());
    let mut reader =
        csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(broken)?.clone();
    let mut cells = Vec::new();
    for (index, record) in reader.records().enumerate() {
        let record = record.map_err(broken)?;
        let fields =
            header.iter().zip(record.iter()).map(|(column, field)| (column.to_owned(), field.to_owned()));
        cells.push(cell(index + 1, fields)?);
    }
    evidence(name, cells)
}

/// Reads a list of objects.
pub(super) fn from_rows(name: &str, rows: &[Value]) -> Result<Evidence, ReadProblem> {
    let mut cells = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let Some(object) = row.as_object() else {
            return Err(ReadProblem::OtherJson(format!("a list with {} in it", kind(row))));
        };
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        cells.push(cell(index + 1, object.iter().map(|(column, value)| (column.clone(), text(value))))?);
    }
    evidence(name, cells)
}

fn evidence(name: &str, cells: Vec<Cell>) -> Result<Evidence, ReadProblem> {
    if cells.is_empty() {
        return Err(ReadProblem::NoRows);
    }
    let name = name.to_owned();
    Ok(Evidence { name, format: Format::Table, cells, disk: None, own: None, notes: Vec::new() })
}

fn cell(row: usize, fields: impl Iterator<Item = (String, String)>) -> Result<Cell, ReadProblem> {
    let mut cell = Cell {
        name: format!("row {row}"),
        group: u64::try_from(row).expect("a row number"),
        workload: "row".to_owned(),
        ..Cell::default()
    };
    let mut side = Side::new(SideKind::All);
    for (column, text) in fields {
        let is_known = COLUMNS.contains(&column.as_str()) || percentile(&column).is_some();
        if !is_known {
            let known = format!("{}, p<percent>_us", COLUMNS.join(", "));
            return Err(ReadProblem::UnknownColumn { found: column, known });
        }
        if !text.is_empty() {
            set(&mut cell, &mut side, &column, &text).map_err(|expected| ReadProblem::BadValue {
                row,
                column,
                expected,
                found: text,
            })?;
        }
    }
    side.kind = match cell.read_percent {
        Some(100.0) => SideKind::Read,
        Some(0.0) => SideKind::Write,
        _ => SideKind::All,
    };
    cell.sides = vec![side];
    Ok(cell)
}

/// The percentile a column is of.
fn percentile(column: &str) -> Option<u64> {
    let percent: f64 = column.strip_prefix('p')?.strip_suffix("_us")?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then(|| thousandths(percent))?
}

/// Writes one field; the error is what was expected.
fn set(cell: &mut Cell, side: &mut Side, column: &str, text: &str) -> Result<(), &'static str> {
    let number = || {
        let value: Option<f64> = text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
        value.map(Some).ok_or("a number of 0 or more, without separators")
    };
    let bytes = || size::bytes(text).map(Some).ok_or("a whole number, if need be with k, m, g or t");
    let is_so = || match text {
        "yes" | "true" | "1" => Ok(Some(true)),
        "no" | "false" | "0" => Ok(Some(false)),
        _ => Err("yes or no"),
    };
    match column {
        "name" => cell.name = text.to_owned(),
        "series" => cell.series = Some(text.to_owned()),
        "workload" => cell.workload = format!("row {text}"),
        "read_percent" => {
            cell.read_percent = number()?.filter(|percent| *percent <= 100.0);
            cell.read_percent.ok_or("a number from 0 to 100")?;
        }
        "order" => cell.order = Some(order(text)?),
        "block_bytes" => cell.block_bytes = bytes()?,
        "depth" => cell.outstanding = bytes()?,
        "engine" => cell.engine = Some(text.to_owned()),
        "direct" => cell.direct = is_so()?,
        "open_loop" => cell.open_loop = is_so()?,
        "mapped" => cell.mapped = is_so()?,
        "footprint_bytes" => cell.footprint_bytes = bytes()?,
        "iops" => side.iops = number()?,
        "bandwidth_bytes_per_second" => side.bytes_per_second = number()?,
        "bandwidth_unit" => cell.bandwidth_unit = Some(text.to_owned()),
        "latency_mean_us" => side.latency.mean_ns = number()?.map(|micros| micros * 1_000.0),
        "latency_is_whole" => side.latency.is_whole = is_so()?,
        "samples" => side.latency.samples = bytes()?,
        "cpu_percent" => cell.cpu_percent = number()?,
        "runtime_s" => (cell.runtime_secs, side.runtime_secs) = (number()?, number()?),
        _ => {
            let key = percentile(column).expect("the column was checked");
            let micros = number()?.expect("a number is no unknown one");
            let empty =
                crate::lint::Percentiles { is_of_clat: false, values: std::collections::BTreeMap::new() };
            side.latency.percentiles.get_or_insert(empty).values.insert(key, micros * 1_000.0);
        }
    }
    Ok(())
}

fn order(text: &str) -> Result<Order, &'static str> {
    match text {
        "random" => Ok(Order::Random),
        "sequential" => Ok(Order::Sequential),
        _ => Err("random or sequential"),
    }
}
