//! Latency against throughput, in a closed and in an open loop.

use super::super::cell::Cell;
use super::super::explain::depth_curve;
use super::super::open_loop::OpenPoint;
use super::super::record::{CellRecord, Profile};
use ocssd_report::{Axis, ChartSpec, Panel, Point, Role, Series};

/// The picture; none of fewer than three depths.
pub(super) fn chart(profile: &Profile) -> Option<ChartSpec> {
    if depth_curve(profile).len() < 3 {
        return None;
    }
    let mean = panel(
        "Mean",
        closed(profile, |record| Some(record.mean_ns.value)),
        open(profile, |point| Some(point.mean_ns.value)),
    );
    let tail = panel(
        "99 % take less than",
        closed(profile, |record| record.percentile(99.0)),
        open(profile, |point| point.percentile(99.0)),
    );
    let panels: Vec<Panel> = [mean, tail].into_iter().flatten().collect();
    let chart = ChartSpec::new(
        "Latency against throughput",
        Axis::linear("throughput", "IOPS"),
        Axis::log10("latency", "us"),
    );
    let subtitle = if profile.open.is_empty() {
        "4 KiB random reads, a closed loop: each point is a depth, joined from 1 upwards.".to_owned()
    } else {
        let behind = profile.open.iter().filter(|point| point.fell_behind()).count();
        let behind = match behind {
            0 => String::new(),
            1 => " One load was more than could be done, and has no point.".to_owned(),
            count => format!(" {count} loads were more than could be done, and have no point."),
        };
        format!(
            "4 KiB random reads. In the closed loop each point is a depth, and latency counts from when a read was begun. In the \
             open loop each point is a load, reads come at random times (Poisson), and latency counts from when each was due.{behind}"
        )
    };
    (!panels.is_empty()).then(|| panels.into_iter().fold(chart.subtitle(&subtitle), ChartSpec::panel))
}

fn panel(title: &str, closed: Vec<Point>, open: Vec<Point>) -> Option<Panel> {
    let series =
        [("closed loop", closed), ("open loop", open)].into_iter().filter(|(_, points)| points.len() >= 2);
    let panel = series
        .fold(Panel::new(title), |panel, (name, points)| panel.series(Series::new(name, Role::Ours, points)));
    (!panel.series.is_empty()).then_some(panel)
}

fn closed(profile: &Profile, nanos: impl Fn(&CellRecord) -> Option<f64>) -> Vec<Point> {
    let curve = depth_curve(profile);
    let points = curve.iter().filter_map(|point| {
        let record = profile.find(Cell { depth: point.depth, ..Cell::BASE })?;
        let note = format!("depth {}, {} samples", point.depth, record.latency.count());
        Some(Point::new(point.iops, nanos(record)? / 1e3).noted(&note))
    });
    points.collect()
}

fn open(profile: &Profile, nanos: impl Fn(&OpenPoint) -> Option<f64>) -> Vec<Point> {
    let kept = profile.open.iter().filter(|point| !point.fell_behind());
    let points = kept.filter_map(|point| {
        let note = format!(
            "{} % of the most, {} samples, begun {:.1} us late on average",
            point.share_percent,
            point.latency.count(),
            point.late_ns.value / 1e3
        );
        Some(Point::new(point.iops.value, nanos(point)? / 1e3).noted(&note))
    });
    points.collect()
}
