//! Random writes over time: throughput, the tail, and what a virtual drive's translation layer did meanwhile.

use super::super::record::{Profile, as_f64};
use super::super::write_history::{Inside, Interval};
use ocssd_base::Nanos;
use ocssd_report::{Axis, ChartSpec, Panel, Point, Role, Series, Style};

/// Fewest intervals that are a history.
const INTERVALS_MIN: usize = 8;
/// Most checkpoints that have a line each (chosen: more would hide what they stand in).
const MARKS_MAX: usize = 12;

/// The picture; none if nothing was written, or for too short a time.
pub(super) fn chart(profile: &Profile) -> Option<ChartSpec> {
    let intervals = profile.history.intervals();
    if intervals.len() < INTERVALS_MIN {
        return None;
    }
    let clock = Clock::of(intervals);
    let points = |number: &dyn Fn(&Interval) -> Option<f64>| clock.points(intervals, number);
    let rate = points(&|interval| Some(interval.bytes_per_second() / 1e6));
    let tail = points(&|interval| interval.p99_ns().map(|nanos| nanos.max(LATENCY_MIN_NS) / 1e3));
    let mut chart = ChartSpec::new(
        "Random writes over time",
        Axis::linear("time spent writing", "s"),
        Axis::linear("throughput", "MB/s"),
    )
    .panel(steps("Users' writes", rate));
    if tail.len() >= 2 {
        let panel =
            Panel { y: Some(Axis::log10("99th percentile", "us")), ..steps("99 % take less than", tail) };
        chart = chart.panel(panel);
    }
    if let Some(sector_bytes) =
        profile.sector_bytes.filter(|_| intervals.iter().all(|interval| interval.inside.is_some()))
    {
        let per_second = |count: u64, took: Nanos| as_f64(count) / took.as_secs_f64();
        let inside = |number: fn(Inside) -> u64| {
            points(&|interval| Some(per_second(number(interval.inside?), interval.took)))
        };
        let mut moved = inside(|inside| inside.collected_sectors);
        moved.iter_mut().for_each(|point| point.y *= as_f64(sector_bytes.into()) / 1e6);
        chart = chart.panel(marked(steps("Moved by garbage collection", moved), intervals, &clock));
        let erased = Axis::linear("lines reset", "each second");
        let panel = Panel { y: Some(erased), ..steps("Lines reset", inside(|inside| inside.lines_erased)) };
        chart = chart.panel(panel);
    }
    let subtitle = "4 KiB random writes, 32 at a time, while the drive comes to rest. Each step is what happened since the last look; \
                    the tail is blank where fewer than ten samples lie beyond it.";
    Some(chart.subtitle(subtitle))
}

/// Time spent writing: what lies between two rounds is left out.
struct Clock {
    /// When each interval begins, in seconds.
    begins: Vec<f64>,
    end: f64,
}

impl Clock {
    fn of(intervals: &[Interval]) -> Self {
        let mut end = 0.0;
        let mut begins = Vec::new();
        for interval in intervals {
            begins.push(end);
            end += interval.took.as_secs_f64();
        }
        Self { begins, end }
    }

    /// A number for each interval that has one, from where it begins; the last one also where it ends.
    fn points(&self, intervals: &[Interval], number: &dyn Fn(&Interval) -> Option<f64>) -> Vec<Point> {
        let pairs = self.begins.iter().zip(intervals);
        let mut points: Vec<Point> =
            pairs.filter_map(|(&begin, interval)| Some(Point::new(begin, number(interval)?))).collect();
        points.extend(intervals.last().and_then(number).map(|last| Point::new(self.end, last)));
        points
    }
}

/// Where what took less stands: a logarithmic axis has no zero.
const LATENCY_MIN_NS: f64 = 100.0;

fn steps(title: &str, points: Vec<Point>) -> Panel {
    Panel::new(title).series(Series::new("since the last look", Role::Ours, points).style(Style::Steps))
}

/// Marks where checkpoints of the map were made, or says how many there were.
fn marked(mut panel: Panel, intervals: &[Interval], clock: &Clock) -> Panel {
    let made = |interval: &Interval| interval.inside.is_some_and(|inside| inside.checkpoints > 0);
    let pairs = intervals.iter().zip(&clock.begins);
    let with: Vec<f64> = pairs.filter(|(interval, _)| made(interval)).map(|(_, begin)| *begin).collect();
    if with.len() > MARKS_MAX {
        return panel.note(&format!(
            "Checkpoints of the map were made in {} of {} steps.",
            with.len(),
            intervals.len()
        ));
    }
    for begin in with {
        panel = panel.mark(begin, "checkpoint");
    }
    panel
}
