//! A profile beside other numbers: a datasheet's, or another profile's. Either may be one that was kept.

use super::cell::Cell;
use super::datasheet::Datasheet;
use super::explain::{place_in_order, rate_word};
use super::record::{Profile, RoundsRecord};
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

/// A profile as far as comparing needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// What it was of.
    pub name: String,
    /// Its cells, in the order of the experiments.
    pub cells: Vec<SavedCell>,
    /// Whether random writes came to rest before cells were measured.
    pub is_steady: bool,
}

/// A cell of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SavedCell {
    /// The cell.
    pub cell: Cell,
    /// I/Os per second.
    pub iops: Mean,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

impl Saved {
    /// What is known of a profile.
    #[must_use]
    pub fn of(name: &str, profile: &Profile) -> Self {
        let one = |record: &super::record::CellRecord| SavedCell {
            cell: record.cell,
            iops: record.iops,
            bytes_per_second: record.bytes_per_second.value,
        };
        let is_steady = profile.rounds.as_ref().is_some_and(RoundsRecord::is_steady);
        Self::new(name, profile.cells.iter().map(one).collect(), is_steady)
    }

    fn new(name: &str, mut cells: Vec<SavedCell>, is_steady: bool) -> Self {
        cells.sort_by_key(|one| place_in_order(one.cell));
        Self { name: name.to_owned(), cells, is_steady }
    }
}

/// What a result of `ocssd profile` says, read from its JSON.
///
/// # Errors
/// A sentence, if it is no such result.
pub fn read_saved(name: &str, text: &str) -> Result<Saved, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("{name} is not JSON: {error}"))?;
    let profile = &value["ocssd"]["profile"];
    let cells = profile["cells"]
        .as_array()
        .ok_or_else(|| format!("{name} is no result of `ocssd profile`: it has no ocssd.profile.cells"))?;
    let one = |cell: &Value| {
        let found = cell["name"].as_str()?.parse().ok()?;
        let iops = &cell["iops"];
        let count = iops["count"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
        let iops = Mean { value: iops["mean"].as_f64()?, half_width: iops["half_width"].as_f64(), count };
        let bytes_per_second = cell["bytes_per_second"]["mean"].as_f64()?;
        Some(SavedCell { cell: found, iops, bytes_per_second })
    };
    let cells: Option<Vec<SavedCell>> = cells.iter().map(one).collect();
    let cells = cells.ok_or_else(|| {
        format!("{name}: each of ocssd.profile.cells must have a cell's name, iops and bytes_per_second, and one has not")
    })?;
    Ok(Saved::new(name, cells, profile["steady"]["is_steady"] == true))
}

/// Beside a datasheet.
#[must_use]
pub fn with_datasheet(profile: &Saved, sheet: &Datasheet) -> Comparison {
    let mut rows = Vec::new();
    for quoted in sheet.quoted() {
        let number = |one: &SavedCell| if quoted.is_rate { one.bytes_per_second } else { one.iops.value };
        let of_kind = profile.cells.iter().filter(|one| quoted.is_of(one.cell));
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
fn remark(profile: &Saved, cell: Cell) -> String {
    if cell.writes() && !profile.is_steady {
        "ours is a burst: the sheet's number is what lasts".to_owned()
    } else if cell.depth < 32 {
        "ours is of a shallower queue".to_owned()
    } else {
        "comparable as far as the range that was used allows".to_owned()
    }
}

/// Beside another profile: cell by cell, and whether they differ by more than their intervals.
#[must_use]
pub fn with_saved(profile: &Saved, other: &Saved) -> Comparison {
    let mut rows = Vec::new();
    for one in &profile.cells {
        let Some(theirs) = other.cells.iter().find(|theirs| theirs.cell == one.cell) else { continue };
        let remark = match one.iops.differs(&theirs.iops) {
            Some(true) => "differs: the 95 % intervals do not meet",
            Some(false) => "not told apart",
            None => "one of them was measured once: no interval",
        };
        let word = |mean: &Mean| {
            let width = mean.percent().map_or_else(String::new, |percent| format!(" ±{percent:.1} %"));
            format!("{:.0} IOPS{width}", mean.value)
        };
        rows.push(ComparedRow {
            what: one.cell.label(),
            ours: word(&one.iops),
            theirs: word(&theirs.iops),
            ratio: one.iops.value / theirs.iops.value,
            remark: remark.to_owned(),
        });
    }
    let mut remarks = vec![
        "Of many cells one in twenty would differ by chance; look for what differs in a whole curve."
            .to_owned(),
    ];
    if rows.is_empty() {
        remarks = vec!["They have no cell in common.".to_owned()];
    }
    if profile.is_steady != other.is_steady {
        remarks.push(
            "Random writes came to rest in one of them only: its writes last, the other's are a burst."
                .to_owned(),
        );
    }
    Comparison { title: format!("beside {}", other.name), rows, remarks }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A result with these cells: name, IOPS, half of the interval.
    fn kept(cells: &[(&str, f64, f64)], is_steady: bool) -> Saved {
        let cells: Vec<Value> = cells
            .iter()
            .map(|(name, iops, half)| {
                serde_json::json!({ "name": name, "iops": { "mean": iops, "half_width": half, "count": 3 },
                    "bytes_per_second": { "mean": iops * 4096.0 } })
            })
            .collect();
        let value = serde_json::json!({ "ocssd": { "profile": { "cells": cells, "steady": { "is_steady": is_steady } } } });
        read_saved("kept.json", &value.to_string()).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn two_kept_profiles_are_compared_where_they_have_the_same_cells() {
        let ours = kept(&[("randread-4k-qd1", 100.0, 5.0), ("randread-4k-qd8", 500.0, 5.0)], true);
        let theirs = kept(&[("randread-4k-qd8", 505.0, 5.0), ("randread-4k-qd1", 200.0, 5.0)], false);
        let compared = with_saved(&ours, &theirs);
        let readings: Vec<&str> = compared.rows.iter().map(|row| row.remark.as_str()).collect();
        assert_eq!(readings, ["differs: the 95 % intervals do not meet", "not told apart"]);
        assert!((compared.rows[0].ratio - 0.5).abs() < 1e-9, "{compared:?}");
        assert!(compared.remarks.iter().any(|remark| remark.contains("one of them only")), "{compared:?}");
        let nothing = with_saved(&ours, &kept(&[("write-1m-qd1", 1.0, 1.0)], true));
        assert_eq!((nothing.rows.len(), nothing.remarks[0].as_str()), (0, "They have no cell in common."));
    }

    #[test]
    fn what_is_no_profile_is_refused_with_a_sentence() {
        for (text, expected) in [
            ("{", "is not JSON"),
            ("{}", "is no result of `ocssd profile`"),
            (r#"{"ocssd":{"profile":{"cells":[{"name":"x"}]}}}"#, "and one has not"),
        ] {
            let error = read_saved("a.json", text).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
    }
}
