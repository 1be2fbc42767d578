//! A profile beside other numbers: a datasheet's, or another profile's.

use super::cell::Cell;
use super::datasheet::Datasheet;
use super::explain::{in_order, rate_word};
use super::record::{CellRecord, Profile};
use super::statistics::Mean;
use serde_json::Value;

/// One line of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRow {
    /// What is compared.
    pub what: String,
    /// Ours and theirs, in words.
    pub ours: String,
    /// The second of these.
    pub theirs: String,
    /// Ours over theirs.
    pub ratio: f64,
    /// How to read it.
    pub remark: String,
}

/// A comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// With what.
    pub title: String,
    /// The lines.
    pub rows: Vec<ComparedRow>,
    /// What to know before reading it.
    pub remarks: Vec<String>,
}

/// Beside a datasheet.
#[must_use]
pub fn with_datasheet(profile: &Profile, sheet: &Datasheet) -> Comparison {
    let mut rows = Vec::new();
    for quoted in sheet.quoted() {
        let number = |record: &CellRecord| {
            if quoted.is_rate { record.bytes_per_second.value } else { record.iops.value }
        };
        let of_kind = profile.cells.iter().filter(|record| quoted.is_of(record.cell));
        let Some(best) = of_kind.reduce(|a, b| if number(b) > number(a) { b } else { a }) else { continue };
        let word = |value: f64| if quoted.is_rate { rate_word(value) } else { format!("{value:.0} IOPS") };
        rows.push(ComparedRow {
            what: quoted.what.to_owned(),
            ours: format!("{} ({})", word(number(best)), best.cell.label()),
            theirs: word(quoted.number),
            ratio: number(best) / quoted.number,
            remark: remark(profile, best.cell),
        });
    }
    let mut remarks = vec![format!(
        "{} {}: vendors quote \"up to\", on the whole drive, with deep queues. Source: {}.",
        sheet.drive, sheet.capacity, sheet.source
    )];
    remarks.extend((!sheet.remark.is_empty()).then(|| format!("{}.", sheet.remark)));
    Comparison { title: format!("beside the datasheet of {} {}", sheet.drive, sheet.capacity), rows, remarks }
}

/// What sets a cell apart from what a sheet means.
fn remark(profile: &Profile, cell: Cell) -> String {
    let steady = profile.rounds.as_ref().is_some_and(super::record::RoundsRecord::is_steady);
    if cell.writes() && !steady {
        "ours is a burst: the sheet's number is what lasts".to_owned()
    } else if cell.depth < 32 {
        "ours is of a shallower queue".to_owned()
    } else {
        "comparable as far as the range that was used allows".to_owned()
    }
}

/// A profile that was saved, as far as comparing needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// What it was of.
    pub name: String,
    /// Cell names with their means of IOPS and latency in nanoseconds.
    pub cells: Vec<(String, Mean, Mean)>,
}

/// What a result of `ocssd profile` says, read from its JSON.
///
/// # Errors
/// A sentence, if it is no such result.
pub fn read_saved(name: &str, text: &str) -> Result<Saved, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("{name} is not JSON: {error}"))?;
    let cells = value["ocssd"]["profile"]["cells"].as_array();
    let cells = cells
        .ok_or_else(|| format!("{name} is no result of `ocssd profile`: it has no ocssd.profile.cells"))?;
    let mean = |value: &Value| {
        let count = value["count"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
        Some(Mean { value: value["mean"].as_f64()?, half_width: value["half_width"].as_f64(), count })
    };
    let cells = cells
        .iter()
        .map(|cell| {
            let name = cell["name"].as_str()?.to_owned();
            Some((name, mean(&cell["iops"])?, mean(&cell["latency_ns"])?))
        })
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| format!("{name}: a cell has no name, iops or latency_ns"))?;
    Ok(Saved { name: name.to_owned(), cells })
}

impl Saved {
    /// Another profile of this program.
    #[must_use]
    pub fn of(name: &str, profile: &Profile) -> Self {
        let cells =
            profile.cells.iter().map(|record| (record.cell.name(), record.iops, record.mean_ns)).collect();
        Self { name: name.to_owned(), cells }
    }
}

/// Beside another profile: cell by cell, and whether they differ by more than their intervals.
#[must_use]
pub fn with_saved(profile: &Profile, saved: &Saved) -> Comparison {
    let mut rows = Vec::new();
    for record in in_order(profile) {
        let name = record.cell.name();
        let Some((_, iops, _)) = saved.cells.iter().find(|(other, ..)| *other == name) else { continue };
        let remark = match record.iops.differs(iops) {
            Some(true) => "differs: the 95 % intervals do not meet",
            Some(false) => "not told apart",
            None => "one of them was measured once: no interval",
        };
        let word = |mean: &Mean| {
            let width = mean.percent().map_or_else(String::new, |percent| format!(" +-{percent:.1} %"));
            format!("{:.0} IOPS{width}", mean.value)
        };
        rows.push(ComparedRow {
            what: record.cell.label(),
            ours: word(&record.iops),
            theirs: word(iops),
            ratio: record.iops.value / iops.value,
            remark: remark.to_owned(),
        });
    }
    let remarks = vec![
        "Of many cells one in twenty would differ by chance; look for what differs in a whole curve."
            .to_owned(),
    ];
    Comparison { title: format!("beside {}", saved.name), rows, remarks }
}
