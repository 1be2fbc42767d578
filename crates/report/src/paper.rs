//! The papers' numbers: one CSV file per experiment, checked row by row.
//!
//! The file: a header of one or more key columns, then always `value,unit,error,source,note`. Keys say which number a
//! row is (`pattern`, `threads`); `error` is `7` (in the row's unit), `1%` (of the value), or empty when the source gives
//! no bound. Deliberately not here: files. Callers read them and pass the text.

use crate::chart::Point;
use thiserror::Error;

/// The columns every file ends with.
const FIXED: [&str; 5] = ["value", "unit", "error", "source", "note"];

/// Units a value may have. Chosen: what the experiments use; a new one is added here so that a misspelt one is found.
const UNITS: &[&str] = &["MB/s", "GB/s", "ms", "us", "s", "%", "x", "fraction", "IOPS", "op/s"];

/// How far the true number may be from the value, either way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorBound {
    /// In the unit of the value.
    Absolute(f64),
    /// In percent of the value.
    Percent(f64),
}

/// One published number.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperRow {
    /// Line in the file, from 1.
    pub line: u64,
    /// What number it is, in the order of [`PaperTable::keys`]; never empty texts.
    pub keys: Vec<String>,
    /// The number; finite.
    pub value: f64,
    /// Its unit, one of a fixed list.
    pub unit: String,
    /// Its error, when the source gives one.
    pub error: Option<ErrorBound>,
    /// Where it is from: table, figure, text, formula.
    pub source: String,
    /// Anything else a reader must know; often empty.
    pub note: String,
}

impl PaperRow {
    /// Half the width of the error interval in the unit of the value; nothing when no bound is known.
    pub fn error_absolute(&self) -> Option<f64> {
        self.error.map(|error| match error {
            ErrorBound::Absolute(bound) => bound,
            ErrorBound::Percent(percent) => self.value.abs() * percent / 100.0,
        })
    }
}

/// Why a file of numbers is refused. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PaperError {
    /// The text is not CSV.
    #[error(
        "line {line}: expected comma-separated values, found {found}: fix the quoting or the number of fields"
    )]
    NotCsv {
        /// Line.
        line: u64,
        /// What the reader says.
        found: String,
    },
    /// The header is not keys followed by the fixed columns.
    #[error(
        "line 1: expected key columns (a-z, 0-9, _; each once) and then value,unit,error,source,note, found `{found}`"
    )]
    Header {
        /// The header.
        found: String,
    },
    /// A cell does not hold what its column is for.
    #[error("line {line}: column `{column}`: expected {expected}, found `{found}`")]
    Cell {
        /// Line.
        line: u64,
        /// Column.
        column: String,
        /// What would be valid.
        expected: String,
        /// The cell.
        found: String,
    },
    /// The same keys twice from the same source.
    #[error(
        "line {line}: the keys {keys} and their source are also on line {first}: keep one, or add a key column"
    )]
    Duplicate {
        /// The second of the two.
        line: u64,
        /// The first of the two.
        first: u64,
        /// The keys.
        keys: String,
    },
    /// A header without rows.
    #[error("expected at least one row below the header, found none: add the numbers")]
    NoRows,
}

/// All numbers of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperTable {
    keys: Vec<String>,
    rows: Vec<PaperRow>,
}

impl PaperTable {
    /// Reads and checks a whole file.
    ///
    /// # Errors
    /// The first thing wrong, with its line.
    pub fn load(text: &str) -> Result<Self, PaperError> {
        let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
        let header: Vec<String> =
            reader.headers().map_err(|error| not_csv(&error))?.iter().map(str::to_owned).collect();
        let keys = check_header(&header)?;
        let mut rows: Vec<PaperRow> = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| not_csv(&error))?;
            let row = read_row(&keys, &record)?;
            let first = rows.iter().find(|other| other.keys == row.keys && other.source == row.source);
            if let Some(first) = first {
                let keys = row.keys.join("/");
                return Err(PaperError::Duplicate { line: row.line, first: first.line, keys });
            }
            rows.push(row);
        }
        if rows.is_empty() { Err(PaperError::NoRows) } else { Ok(Self { keys, rows }) }
    }

    /// Names of the key columns, in the order of the file.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// All rows, in the order of the file; at least one.
    pub fn rows(&self) -> &[PaperRow] {
        &self.rows
    }

    /// The key `name` of `row`. Panics when the file has no such column: `name` is the program's, not the file's.
    pub fn key<'a>(&self, row: &'a PaperRow, name: &str) -> &'a str {
        let index = self.keys.iter().position(|key| key == name);
        let index = index.unwrap_or_else(|| panic!("no key column `{name}` among {:?}", self.keys));
        &row.keys[index]
    }

    /// The rows whose keys have all the given values, in the order of the file.
    pub fn select(&self, keys: &[(&str, &str)]) -> Vec<&PaperRow> {
        let matches = |row: &&PaperRow| keys.iter().all(|(name, value)| self.key(row, name) == *value);
        self.rows.iter().filter(matches).collect()
    }

    /// The number with the given keys, if exactly one row has them.
    pub fn value(&self, keys: &[(&str, &str)]) -> Option<f64> {
        match self.select(keys)[..] {
            [row] => Some(row.value),
            _ => None,
        }
    }

    /// The values of a key column, each once, in the order of the file: the names of series or panels.
    pub fn distinct(&self, name: &str) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        for row in &self.rows {
            let value = self.key(row, name);
            if !found.contains(&value) {
                found.push(value);
            }
        }
        found
    }

    /// The selected rows as points of a chart over the numeric key column `x`, in the order of the file.
    ///
    /// # Errors
    /// A row whose `x` is not a number.
    pub fn points(&self, keys: &[(&str, &str)], x: &str) -> Result<Vec<Point>, PaperError> {
        let point = |row: &PaperRow| {
            let at = number(row.line, x, self.key(row, x))?;
            let mut point = Point::new(at, row.value);
            if let Some(error) = row.error_absolute() {
                point = point.between(row.value - error, row.value + error);
            }
            Ok(point.noted(&row.note))
        };
        self.select(keys).into_iter().map(point).collect()
    }
}

fn not_csv(error: &csv::Error) -> PaperError {
    let line = error.position().map_or(1, csv::Position::line);
    PaperError::NotCsv { line, found: error.to_string() }
}

/// The key columns of a header.
fn check_header(header: &[String]) -> Result<Vec<String>, PaperError> {
    let wrong = || PaperError::Header { found: header.join(",") };
    let (keys, fixed) =
        header.len().checked_sub(FIXED.len()).map(|split| header.split_at(split)).ok_or_else(wrong)?;
    let is_name = |key: &String| {
        !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let is_unique = keys.iter().enumerate().all(|(index, key)| !header[..index].contains(key));
    let is_apart = keys.iter().all(|key| !FIXED.contains(&key.as_str()));
    let is_right = !keys.is_empty() && fixed == FIXED && keys.iter().all(is_name) && is_unique && is_apart;
    if is_right { Ok(keys.to_vec()) } else { Err(wrong()) }
}

fn read_row(keys: &[String], record: &csv::StringRecord) -> Result<PaperRow, PaperError> {
    let line = record.position().map_or(0, csv::Position::line);
    // The reader refuses records that are longer or shorter than the header.
    let cells: Vec<&str> = record.iter().collect();
    let (key_cells, fixed) = cells.split_at(keys.len());
    for (column, cell) in keys.iter().zip(key_cells) {
        require(
            line,
            column,
            cell,
            "a text that is not empty and has no spaces around it",
            is_trimmed(cell),
        )?;
    }
    require(line, "unit", fixed[1], &format!("one of {}", UNITS.join(", ")), UNITS.contains(&fixed[1]))?;
    require(line, "source", fixed[3], "where the number is from", is_trimmed(fixed[3]))?;
    Ok(PaperRow {
        line,
        keys: key_cells.iter().map(|&cell| cell.to_owned()).collect(),
        value: number(line, "value", fixed[0])?,
        unit: fixed[1].to_owned(),
        error: read_error(line, fixed[2])?,
        source: fixed[3].to_owned(),
        note: fixed[4].to_owned(),
    })
}

fn is_trimmed(cell: &str) -> bool {
    !cell.is_empty() && cell.trim() == cell
}

fn read_error(line: u64, cell: &str) -> Result<Option<ErrorBound>, PaperError> {
    if cell.is_empty() {
        return Ok(None);
    }
    let (digits, is_percent) = cell.strip_suffix('%').map_or((cell, false), |digits| (digits, true));
    let bound = number(line, "error", digits)?;
    require(line, "error", cell, "a number above 0, or one with % behind it, or nothing", bound > 0.0)?;
    Ok(Some(if is_percent { ErrorBound::Percent(bound) } else { ErrorBound::Absolute(bound) }))
}

fn number(line: u64, column: &str, cell: &str) -> Result<f64, PaperError> {
    let parsed = cell.parse::<f64>().ok().filter(|value| value.is_finite());
    parsed.ok_or_else(|| cell_error(line, column, cell, "a finite number"))
}

fn require(line: u64, column: &str, cell: &str, expected: &str, holds: bool) -> Result<(), PaperError> {
    if holds { Ok(()) } else { Err(cell_error(line, column, cell, expected)) }
}

fn cell_error(line: u64, column: &str, found: &str, expected: &str) -> PaperError {
    let (column, expected, found) = (column.to_owned(), expected.to_owned(), found.to_owned());
    PaperError::Cell { line, column, expected, found }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "pattern,threads,value,unit,error,source,note\n";

    fn table() -> PaperTable {
        let rows = "random,2,76,MB/s,7,table 2,\nrandom,4,200,MB/s,1%,table 2,\"a, b\"\nsequential,2,69,MB/s,,text,\n";
        PaperTable::load(&format!("{HEADER}{rows}")).expect("the table is valid")
    }

    #[test]
    fn rows_are_found_by_their_keys() {
        let table = table();
        assert_eq!(table.value(&[("pattern", "random"), ("threads", "4")]), Some(200.0));
        assert_eq!(table.value(&[("pattern", "random")]), None, "two rows match");
        assert_eq!(table.distinct("pattern"), ["random", "sequential"]);
        assert_eq!(table.rows().iter().map(|row| row.line).collect::<Vec<_>>(), [2, 3, 4]);
    }

    #[test]
    fn errors_are_absolute_relative_or_unknown() {
        let bounds: Vec<_> = table().rows().iter().map(PaperRow::error_absolute).collect();
        assert_eq!(bounds, [Some(7.0), Some(2.0), None]);
    }

    #[test]
    fn points_carry_error_and_note() {
        let points = table().points(&[("pattern", "random")], "threads").expect("threads are numbers");
        assert_eq!(points[1], Point::new(4.0, 200.0).between(198.0, 202.0).noted("a, b"));
        assert!(table().points(&[], "pattern").is_err());
    }

    #[test]
    fn wrong_files_are_refused_with_their_line() {
        let cases = [
            ("", "line 1: expected key columns"),
            ("value,unit,error,source,note\n1,x,,t,\n", "line 1: expected key columns"),
            ("A,value,unit,error,source,note\n1,1,x,,t,\n", "line 1: expected key columns"),
            ("a,a,value,unit,error,source,note\n1,1,1,x,,t,\n", "line 1: expected key columns"),
            (HEADER, "at least one row"),
            (&format!("{HEADER}random,2,76,MB/s,7,t\n"), "line 2: expected comma-separated"),
            (&format!("{HEADER}random,2,NaN,MB/s,7,t,\n"), "line 2: column `value`"),
            (&format!("{HEADER}random,2,76,MBps,7,t,\n"), "line 2: column `unit`"),
            (&format!("{HEADER}random,2,76,MB/s,-7,t,\n"), "line 2: column `error`"),
            (&format!("{HEADER}random,2,76,MB/s,7,,\n"), "line 2: column `source`"),
            (&format!("{HEADER}random,,76,MB/s,7,t,\n"), "line 2: column `threads`"),
            (&format!("{HEADER}a,2,1,x,,t,\nb,2,1,x,,t,\na,2,3,x,,t,\n"), "line 4: the keys a/2"),
        ];
        for (text, expected) in cases {
            let error = PaperTable::load(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
