//! Random writes over time: throughput, the tail, and what a virtual drive's translation layer did meanwhile.

use super::super::course::{Beat, Inside};
use super::super::record::{Profile, as_f64};
use ocssd_base::Nanos;
use ocssd_report::{Axis, ChartSpec, Panel, Point, Role, Series, Style};

/// Fewest beats that are a course.
const BEATS_MIN: usize = 8;
/// Most snapshots that have a line each (chosen: more would hide what they stand in).
const MARKS_MAX: usize = 12;

/// The picture; none if nothing was written, or for too short a time.
pub(super) fn chart(profile: &Profile) -> Option<ChartSpec> {
    let beats = profile.course.beats();
    if beats.len() < BEATS_MIN {
        return None;
    }
    let clock = Clock::of(beats);
    let points = |number: &dyn Fn(&Beat) -> Option<f64>| clock.points(beats, number);
    let rate = points(&|beat| Some(beat.bytes_per_second() / 1e6));
    let tail = points(&|beat| beat.p99_ns().map(|nanos| nanos.max(LATENCY_MIN_NS) / 1e3));
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
        profile.sector_bytes.filter(|_| beats.iter().all(|beat| beat.inside.is_some()))
    {
        let per_second = |count: u64, took: Nanos| as_f64(count) / took.as_secs_f64();
        let inside =
            |number: fn(Inside) -> u64| points(&|beat| Some(per_second(number(beat.inside?), beat.took)));
        let mut moved = inside(|inside| inside.collected_sectors);
        moved.iter_mut().for_each(|point| point.y *= as_f64(sector_bytes.into()) / 1e6);
        chart = chart.panel(marked(steps("Moved by garbage collection", moved), beats, &clock));
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
    /// When each beat begins, in seconds.
    begins: Vec<f64>,
    end: f64,
}

impl Clock {
    fn of(beats: &[Beat]) -> Self {
        let mut end = 0.0;
        let mut begins = Vec::new();
        for beat in beats {
            begins.push(end);
            end += beat.took.as_secs_f64();
        }
        Self { begins, end }
    }

    /// A number for each beat that has one, from where it begins; the last one also where it ends.
    fn points(&self, beats: &[Beat], number: &dyn Fn(&Beat) -> Option<f64>) -> Vec<Point> {
        let pairs = self.begins.iter().zip(beats);
        let mut points: Vec<Point> =
            pairs.filter_map(|(&begin, beat)| Some(Point::new(begin, number(beat)?))).collect();
        points.extend(beats.last().and_then(number).map(|last| Point::new(self.end, last)));
        points
    }
}

/// Where what took less stands: a logarithmic axis has no zero.
const LATENCY_MIN_NS: f64 = 100.0;

fn steps(title: &str, points: Vec<Point>) -> Panel {
    Panel::new(title).series(Series::new("since the last look", Role::Ours, points).style(Style::Steps))
}

/// Marks where snapshots of the map were made, or says how many there were.
fn marked(mut panel: Panel, beats: &[Beat], clock: &Clock) -> Panel {
    let made = |beat: &Beat| beat.inside.is_some_and(|inside| inside.snapshots > 0);
    let pairs = beats.iter().zip(&clock.begins);
    let with: Vec<f64> = pairs.filter(|(beat, _)| made(beat)).map(|(_, begin)| *begin).collect();
    if with.len() > MARKS_MAX {
        return panel.note(&format!(
            "Snapshots of the map were made in {} of {} steps.",
            with.len(),
            beats.len()
        ));
    }
    for begin in with {
        panel = panel.mark(begin, "snapshot");
    }
    panel
}
