//! The picture of how far off every number is: ours over the paper's, over what the paper's is.
//!
//! Deliberately not here: which numbers are compared (`compare`).

use super::compare::{Compared, Comparison};
use ocssd_report::{Axis, ChartSpec, Panel, Point, Role, Series, Style};

/// Fewest numbers worth a picture (chosen: a table shows fewer at a glance).
const NUMBERS_MIN: usize = 10;

/// What is told apart by colour.
type Kind = (&'static str, fn(&Compared) -> bool);

const KINDS: [Kind; 3] = [
    ("within 10 %", |one| one.is_near && !one.is_fitted),
    ("farther off", |one| !one.is_near && !one.is_fitted),
    ("a setting is fitted to it", |one| one.is_fitted),
];

/// A panel for each unit; none if there is little to compare.
pub fn chart(comparison: &Comparison) -> Option<ChartSpec> {
    if comparison.numbers.len() < NUMBERS_MIN {
        return None;
    }
    let mut units: Vec<&str> = Vec::new();
    for one in &comparison.numbers {
        if !units.contains(&one.unit.as_str()) {
            units.push(&one.unit);
        }
    }
    let axis = Axis::log10("the paper's number, in the unit of the panel", "");
    let mut chart = ChartSpec::new("Ours over the paper's", axis, Axis::log2("ours / paper", ""))
        .subtitle(&format!("{} numbers within 10 %.", comparison.count()));
    for unit in units {
        let of_unit = || comparison.numbers.iter().filter(|one| one.unit == unit);
        let mut panel = Panel::new(&format!("numbers in {unit}"));
        for (name, is_of_kind) in KINDS {
            let point = |one: &Compared| Point::new(one.paper, one.ours / one.paper).noted(&one.name);
            let points: Vec<Point> = of_unit().filter(|one| is_of_kind(one)).map(point).collect();
            if !points.is_empty() {
                panel = panel.series(Series::new(name, Role::Ours, points).style(Style::Markers));
            }
        }
        let near = of_unit().filter(|one| one.is_near).count();
        panel = panel.rule(1.1, "").rule(0.9, "within 10 %");
        chart = chart.panel(panel.note(&format!("{near} of {} within 10 %", of_unit().count())));
    }
    Some(chart)
}
