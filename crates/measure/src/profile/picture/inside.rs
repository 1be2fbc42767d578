//! What a virtual drive shows of itself: how busy its units were, and write amplification.

use super::super::record::{Profile, as_f64};
use super::super::timeline::Timeline;
use ocssd_base::Nanos;
use ocssd_report::{Axis, ChartSpec, Panel, Point, Role, Series, Style};

/// Those that the profile has numbers for.
pub(super) fn all(profile: &Profile) -> Vec<ChartSpec> {
    let Some(timeline) = &profile.timeline else { return Vec::new() };
    [busy(profile, timeline), amplification(profile, timeline)].into_iter().flatten().collect()
}

/// Columns of the heat map (chosen: wide enough to point at).
const COLUMNS: u32 = 60;
/// Most rows: units beyond that share one (chosen: rows as high as their names).
const ROWS_MAX: usize = 32;

fn busy(profile: &Profile, timeline: &Timeline) -> Option<ChartSpec> {
    let end = timeline.moments().last().filter(|_| timeline.moments().len() >= 2)?.at;
    let rows = Rows::new(timeline.units())?;
    let names = rows.names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut points = Vec::new();
    for column in 0..COLUMNS {
        let at = |column: u32| Nanos(end.0 / u64::from(COLUMNS) * u64::from(column));
        let (from, to) = (at(column), at(column + 1));
        if from >= to {
            return None;
        }
        let middle = (from.as_secs_f64() + to.as_secs_f64()) / 2.0;
        for (row, units) in (0_u32..).zip(rows.units()) {
            let count = as_f64(u64::try_from(units.len()).expect("a drive has few units"));
            let sum: f64 = units.map(|unit| timeline.busy_share(unit, from, to)).sum();
            points.push(Point::cell(middle, f64::from(row), Some(100.0 * sum / count)));
        }
    }
    let series = Series::new("busy", Role::Ours, points).style(Style::Cells);
    let mut panel = Panel::new("").series(series);
    for (name, began) in profile.phases.iter().skip(1) {
        panel = panel.note(&format!("From {:.3} s on: {name}.", began.as_secs_f64()));
    }
    let y = Axis::categories("parallel units", &names);
    let colour = Axis::linear("busy", "%").range(0.0, 100.0);
    let chart = ChartSpec::cells("Busy parallel units", Axis::linear("time", "s"), y, colour);
    let first = profile.phases.first().map_or("", |(name, _)| name);
    let subtitle = format!(
        "How much of its time each unit read, programmed or erased. It begins with {first}; {}",
        rows.word()
    );
    Some(chart.subtitle(&subtitle).panel(panel))
}

/// Units, as rows of equal numbers.
struct Rows {
    units: usize,
    each: usize,
}

impl Rows {
    fn new(units: usize) -> Option<Self> {
        (units > 0).then(|| Self { units, each: units.div_ceil(ROWS_MAX) })
    }

    fn units(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        (0..self.units).step_by(self.each).map(|first| first..(first + self.each).min(self.units))
    }

    fn names(&self) -> Vec<String> {
        self.units()
            .map(|units| {
                let (first, last) = (units.start, units.end - 1);
                if first == last { first.to_string() } else { format!("{first}-{last}") }
            })
            .collect()
    }

    fn word(&self) -> String {
        match self.each {
            1 => "every unit has a row.".to_owned(),
            each => format!("a row is the mean of {each} units."),
        }
    }
}

/// Pieces of what was written, each of which has its own amplification (chosen: a curve that is still smooth).
const PIECES: u32 = 40;

fn amplification(profile: &Profile, timeline: &Timeline) -> Option<ChartSpec> {
    let (first, last) = (timeline.moments().first()?, timeline.moments().last()?);
    let (begin, end) = (as_f64(first.host_bytes), as_f64(last.host_bytes));
    let piece = (end - begin) / f64::from(PIECES);
    if piece < 1.0 {
        return None;
    }
    let scale = 1e-6;
    let (mut each, mut all) = (Vec::new(), Vec::new());
    for number in 0..PIECES {
        let at = |number: u32| timeline.media_bytes_at(begin + piece * f64::from(number));
        let place = (begin + piece * f64::from(number + 1)) * scale;
        each.push(Point::new(place, (at(number + 1) - at(number)) / piece));
        all.push(Point::new(place, (at(number + 1) - at(0)) / (piece * f64::from(number + 1))));
    }
    let mut panel = Panel::new("")
        .series(Series::new("of each fortieth", Role::Ours, each))
        .series(Series::new("since the beginning", Role::Ours, all))
        .rule(1.0, "nothing but what users wrote");
    for (name, began) in &profile.phases {
        panel = panel.mark(timeline.host_bytes_at(*began) * scale, name);
    }
    let chart = ChartSpec::new(
        "Write amplification",
        Axis::linear("written by users", "MB"),
        Axis::linear("bytes programmed for each byte that users wrote", ""),
    );
    let subtitle = format!(
        "Everything that was programmed counts: users' data, what was collected, fill, and the map's own. {} bytes were used \
         of the drive.",
        profile.bytes
    );
    Some(chart.subtitle(&subtitle).panel(panel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_units_share_rows_and_none_is_lost() {
        for units in [1, 8, 32, 33, 128, 200] {
            let rows = Rows::new(units).expect("there are units");
            let all: Vec<usize> = rows.units().flatten().collect();
            assert_eq!(all, (0..units).collect::<Vec<_>>());
            assert!(rows.names().len() <= ROWS_MAX && rows.names().len() == rows.units().count());
        }
        assert!(Rows::new(0).is_none());
    }
}
