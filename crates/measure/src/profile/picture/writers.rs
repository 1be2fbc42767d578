//! Throughput against writers, a line for each write buffer.

use super::super::cell::size_word;
use super::super::record::Profile;
use super::super::writers::WritersCurve;
use ocssd_report::{Axis, ChartSpec, Panel, Point, Role, Series};

/// Write buffers that a point stands on, at least (chosen: less tells how the buffer was filled, not what it does).
const BUFFERS_MIN: f64 = 1.0;

/// The picture; none of a drive whose buffer cannot be chosen.
pub(super) fn chart(profile: &Profile) -> Option<ChartSpec> {
    let stands = |curve: &WritersCurve| curve.points.iter().any(|point| point.buffers_written >= BUFFERS_MIN);
    if !profile.writers.iter().any(stands) {
        return None;
    }
    let mut panel = Panel::new("");
    for curve in profile.writers.iter().filter(|&curve| stands(curve)) {
        let points = curve
            .points
            .iter()
            .filter(|point| point.buffers_written >= BUFFERS_MIN)
            .map(|point| {
                let note = format!("{:.1} buffers were written meanwhile", point.buffers_written);
                Point::new(f64::from(point.writers), point.bytes_per_second / 1e6).noted(&note)
            })
            .collect();
        panel = panel.series(Series::new(&size_word(curve.buffer_bytes), Role::Ours, points));
    }
    let ticks: Vec<f64> = profile.writers[0].points.iter().map(|point| f64::from(point.writers)).collect();
    let chart = ChartSpec::new(
        "Writers and write buffer",
        Axis::log2("writers, each with one write of 4 KiB outstanding", "").ticks(&ticks),
        Axis::linear("throughput", "MB/s"),
    );
    let subtitle = "Random writes on a drive just made, so that nothing is collected; a line for each size of the write buffer. \
                    The note of a point says how many buffers were written; below one there is no point. Writers cost \
                    processor time here, and only here: the KSC 2017 paper's four E7-8870 v3, a core for each writer.";
    Some(chart.subtitle(subtitle).panel(panel))
}
