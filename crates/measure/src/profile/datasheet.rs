//! Published numbers of drives, as data.
//!
//! The file names a source for each row, and says so where a number was not verified. What a vendor quotes is the most of a
//! whole drive, written full, with deep queues; a profile sets its deepest cells beside it and says what differs.

use super::cell::Cell;

const DATA: &str = include_str!("datasheets.csv");

/// What a sheet says of a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Datasheet {
    /// The name it is asked for by.
    pub name: String,
    /// The drive.
    pub drive: String,
    /// The model's capacity.
    pub capacity: String,
    /// Sequential reads and writes, in bytes per second.
    pub sequential: [Option<f64>; 2],
    /// Random 4 KiB reads and writes, in I/Os per second.
    pub random: [Option<f64>; 2],
    /// What to know about them.
    pub remark: String,
    /// Where they are from.
    pub source: String,
}

/// All of them.
///
/// # Panics
/// If the file in the program is broken, which a test rules out.
#[must_use]
pub fn datasheets() -> Vec<Datasheet> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(DATA.as_bytes());
    let rows = reader.records().map(|row| row.expect("the program's own table is well formed"));
    rows.map(|row| {
        let text = |index: usize| row.get(index).unwrap_or_default().to_owned();
        let number = |index: usize| text(index).parse().ok();
        Datasheet {
            name: text(0),
            drive: text(1),
            capacity: text(2),
            sequential: [number(3), number(4)],
            random: [number(5), number(6)],
            remark: text(7),
            source: text(8),
        }
    })
    .collect()
}

/// The one called `name`.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn find_datasheet(name: &str) -> Result<Datasheet, String> {
    let all = datasheets();
    let names: Vec<String> = all.iter().map(|sheet| sheet.name.clone()).collect();
    all.into_iter()
        .find(|sheet| sheet.name == name)
        .ok_or_else(|| format!("there is no datasheet \"{name}\"; the names are: {}", names.join(", ")))
}

/// The number a sheet quotes for something, and what that is here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quoted {
    /// What it is called.
    pub what: &'static str,
    /// The number, in I/Os per second or bytes per second.
    pub number: f64,
    /// Whether it is bytes per second.
    pub is_rate: bool,
    /// Cells that come near what the sheet means: the best of them counts.
    pub reads: bool,
    /// Random cells; else those in order.
    pub random: bool,
}

impl Datasheet {
    /// What it quotes.
    #[must_use]
    pub fn quoted(&self) -> Vec<Quoted> {
        let entry = |what, number: Option<f64>, is_rate, reads, random| {
            number.map(|number| Quoted { what, number, is_rate, reads, random })
        };
        let entries = [
            entry("random 4 KiB reads", self.random[0], false, true, true),
            entry("random 4 KiB writes", self.random[1], false, false, true),
            entry("sequential reads", self.sequential[0], true, true, false),
            entry("sequential writes", self.sequential[1], true, false, false),
        ];
        entries.into_iter().flatten().collect()
    }
}

impl Quoted {
    /// Whether a cell is one that is meant.
    #[must_use]
    pub fn is_of(&self, cell: Cell) -> bool {
        let is_random = cell.order == super::cell::Order::Random;
        let percent = if self.reads { 100 } else { 0 };
        cell.read_percent == percent && is_random == self.random && (cell.bytes == 4096 || !self.random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sheet_has_numbers_and_a_source() {
        let all = datasheets();
        assert_eq!(all.len(), 15);
        for sheet in &all {
            assert!(!sheet.quoted().is_empty() && !sheet.source.is_empty(), "{sheet:?}");
        }
        let reported = find_datasheet("d7-p5600").expect("the report's");
        assert_eq!(reported.random, [Some(1.0e6), Some(130_000.0)]);
        assert!(find_datasheet("d7").expect_err("no such").contains("d7-p5600, "));
    }

    #[test]
    fn a_quoted_number_is_held_against_cells_of_its_kind_only() {
        let sheet = find_datasheet("d7-p5600").expect("the report's");
        let writes =
            sheet.quoted().into_iter().find(|quoted| !quoted.reads && quoted.random).expect("quoted");
        assert!(writes.is_of(Cell::random(4096, 0, 32)));
        assert!(!writes.is_of(Cell::random(4096, 50, 32)) && !writes.is_of(Cell::random(8192, 0, 32)));
        assert!(!writes.is_of(Cell::sequential(4096, 0, 32)));
    }
}
