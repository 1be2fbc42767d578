//! Our rows beside the paper's: every number both have, how far apart they are, and why.

use ocssd_report::{PaperRow, PaperTable, Table};

/// Farther off than this is told row by row, in percent (chosen: what a digitised figure and one run are good for).
const TOLERANCE_PERCENT: f64 = 10.0;

/// How the note of a row begins if a setting was fitted to it: it shows that the fit is good, and nothing else.
pub const FITTED: &str = "fitted";

/// Says why a number is off, if it is known: our row, and by how many percent.
pub type Why = fn(&PaperTable, &PaperRow, f64) -> Option<String>;

/// How far all our numbers are from the paper's.
pub struct Comparison {
    /// Numbers that both have.
    pub compared: usize,
    /// Of these, more than [`TOLERANCE_PERCENT`] off.
    pub off: usize,
    /// Of those compared, to which a setting was fitted, and of these within [`TOLERANCE_PERCENT`].
    pub fitted: (usize, usize),
    /// The one farthest off: its keys and percent.
    pub largest: Option<(String, f64)>,
    /// The table of those that are off, with reasons.
    pub table: Table,
    /// All of them, in the order of our rows.
    pub numbers: Vec<Compared>,
}

/// A number that both have. Neither is 0.
pub struct Compared {
    /// Its keys.
    pub name: String,
    /// Unit of both.
    pub unit: String,
    /// The paper's.
    pub paper: f64,
    /// Ours.
    pub ours: f64,
    /// Within [`TOLERANCE_PERCENT`], or within what the figure can be read to.
    pub is_near: bool,
    /// A setting was fitted to it.
    pub is_fitted: bool,
}

impl Comparison {
    /// "n of m", with what of it was fitted.
    pub fn count(&self) -> String {
        format!("{} of {}{}", self.compared - self.off, self.compared, self.fit())
    }

    fn fit(&self) -> String {
        let (all, good) = self.fitted;
        if all == 0 { String::new() } else { format!(" ({good} of {all} fitted)") }
    }

    /// One sentence.
    pub fn sentence(&self) -> String {
        let Some((keys, percent)) = &self.largest else {
            return "no number of this run is in the paper".to_owned();
        };
        format!(
            "{} numbers compared with the paper's, {} within {TOLERANCE_PERCENT} %{}; the largest deviation is {percent:+.0} % \
             ({keys})",
            self.compared,
            self.compared - self.off,
            self.fit(),
        )
    }
}

/// Compares every row of ours that has the same keys and unit as one of the paper's.
pub fn compare(paper: &PaperTable, ours: &PaperTable, why: Why) -> Comparison {
    let columns = ["number", "paper", "ours", "unit", "off by", "why"];
    let mut table = Table::new("Numbers more than 10 % off the paper's", &columns);
    let (mut compared, mut off, mut largest) = (0, 0, None::<(String, f64)>);
    let mut fitted = (0, 0);
    let mut numbers = Vec::new();
    for row in ours.rows() {
        let keys: Vec<(&str, &str)> =
            ours.keys().iter().map(String::as_str).zip(row.keys.iter().map(String::as_str)).collect();
        let Some(published) = published(paper, &keys, row) else { continue };
        let percent = (row.value / published.value - 1.0) * 100.0;
        compared += 1;
        let name = row.keys.join(" ");
        if largest.as_ref().is_none_or(|(_, most)| percent.abs() > most.abs()) {
            largest = Some((name.clone(), percent));
        }
        // What the figure can be read to is no deviation.
        let readable = published.error_absolute().unwrap_or(0.0);
        let is_near = percent.abs() <= TOLERANCE_PERCENT || (row.value - published.value).abs() <= readable;
        let is_fitted = row.note.starts_with(FITTED);
        // What is 0 here has no ratio; it is in the table.
        if row.value > 0.0 {
            let (name, unit) = (name.clone(), row.unit.clone());
            let (paper, ours) = (published.value, row.value);
            numbers.push(Compared { name, unit, paper, ours, is_near, is_fitted });
        }
        if is_fitted {
            fitted = (fitted.0 + 1, fitted.1 + usize::from(is_near));
        }
        if is_near {
            continue;
        }
        off += 1;
        let reason = why(ours, row, percent).unwrap_or_else(|| "not explained".to_owned());
        table.push(vec![
            name,
            format!("{}", published.value),
            format!("{}", row.value),
            row.unit.clone(),
            format!("{percent:+.0} %"),
            reason,
        ]);
    }
    Comparison { compared, off, fitted, largest, table, numbers }
}

/// The paper's row of these keys; if both text and figure have it, the first.
fn published<'a>(paper: &'a PaperTable, keys: &[(&str, &str)], ours: &PaperRow) -> Option<&'a PaperRow> {
    let is_known = |(name, _): &(&str, &str)| paper.keys().iter().any(|key| key == name);
    // A key the paper does not have says what we changed; what is as in the paper is called baseline.
    if keys.iter().any(|key| !is_known(key) && key.1 != "baseline") {
        return None;
    }
    let keys: Vec<(&str, &str)> = keys.iter().copied().filter(is_known).collect();
    paper.select(&keys).into_iter().find(|row| row.unit == ours.unit && row.value > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_both_have_is_compared_and_what_is_off_is_listed() {
        let paper = "threads,value,unit,error,source,note\n1,100,us,,t,\n2,100,us,40,t,\n3,100,us,,t,\n";
        let ours = "threads,value,unit,error,source,note\n1,105,us,,o,fitted\n2,130,us,,o,\n3,50,us,,o,fitted; 7 more\n4,1,us,,o,\n";
        let load = |text| PaperTable::load(text).expect("a sound table");
        let found =
            compare(&load(paper), &load(ours), |_, _, percent| (percent < 0.0).then(|| "slow".to_owned()));
        assert_eq!((found.compared, found.off, found.fitted), (3, 1, (2, 1)));
        assert_eq!(found.count(), "2 of 3 (1 of 2 fitted)");
        let kinds: Vec<(bool, bool)> = found.numbers.iter().map(|one| (one.is_near, one.is_fitted)).collect();
        assert_eq!(kinds, [(true, true), (true, false), (false, true)]);
        assert_eq!(found.table.rows, [["3", "100", "50", "us", "-50 %", "slow"]]);
        assert!(
            found.sentence().contains("3 numbers compared with the paper's, 2 within 10 % (1 of 2 fitted)")
        );
        assert!(found.sentence().contains("-50 % (3)"), "{}", found.sentence());
    }
}
