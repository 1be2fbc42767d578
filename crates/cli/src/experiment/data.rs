//! Our numbers: rows of the same shape as the papers', so that the same reader takes both.

use ocssd_report::{PaperError, PaperTable};
use std::cell::RefCell;
use std::rc::Rc;

/// Who says so, in the column `source`.
const SOURCE: &str = "this program";

/// Rows measured so far. A clone has the same rows, those to come too: the lab keeps one of what is interrupted.
#[derive(Clone, Default)]
pub struct Data {
    keys: &'static [&'static str],
    rows: Rc<RefCell<Vec<Vec<String>>>>,
}

impl Data {
    /// No rows yet, of these keys.
    pub fn new(keys: &'static [&'static str]) -> Self {
        Self { keys, rows: Rc::default() }
    }

    /// True if nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.rows.borrow().is_empty()
    }

    /// Adds a number: its keys in order, its value and unit, and what was counted beside it.
    ///
    /// # Panics
    /// If there is not one text for each key.
    pub fn push(&mut self, keys: &[&str], value: f64, unit: &str, note: &str) {
        assert_eq!(keys.len(), self.keys.len(), "one text for each key");
        let mut row: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        row.extend([rounded(value), unit.to_owned(), String::new(), SOURCE.to_owned(), note.to_owned()]);
        self.rows.borrow_mut().push(row);
    }

    /// As CSV, header first.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let fixed = ["value", "unit", "error", "source", "note"];
        let header: Vec<&str> = self.keys.iter().copied().chain(fixed).collect();
        writer.write_record(header).expect("memory takes what is written");
        for row in self.rows.borrow().iter() {
            writer.write_record(row).expect("rows are equally long and go to memory");
        }
        let bytes = writer.into_inner().expect("memory can be flushed");
        String::from_utf8(bytes).expect("texts were UTF-8 before")
    }

    /// As the reader of the papers' numbers sees it.
    ///
    /// # Errors
    /// A key or a unit that no file of numbers may have, or the same keys twice.
    pub fn to_table(&self) -> Result<PaperTable, PaperError> {
        PaperTable::load(&self.to_csv())
    }
}

/// Five digits: more than any of these measurements is good for.
fn rounded(value: f64) -> String {
    assert!(value.is_finite(), "a measurement is a number, found {value}");
    let magnitude = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    let scale = 10_f64.powf(4.0 - magnitude);
    format!("{}", (value * scale).round() / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_back_as_a_papers_numbers() {
        let mut data = Data::new(&["device", "percentile"]);
        data.push(&["a", "99"], 1_234.567_8, "us", "counted 1, \"2\"");
        data.push(&["a", "99.9"], 0.000_123_456_7, "ms", "");
        let table = data.to_table().expect("our own rows");
        assert_eq!(table.value(&[("device", "a"), ("percentile", "99")]), Some(1234.6));
        assert_eq!(table.rows()[0].note, "counted 1, \"2\"");
        assert_eq!(table.rows()[1].value, 0.000_123_46);
    }

    #[test]
    fn a_row_twice_is_refused() {
        let mut data = Data::new(&["device"]);
        data.push(&["a"], 1.0, "us", "");
        data.push(&["a"], 2.0, "us", "");
        assert!(data.to_table().is_err());
    }
}
