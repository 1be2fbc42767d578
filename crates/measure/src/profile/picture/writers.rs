//! Throughput against writers, a line for each write buffer.

use super::super::cell::size_word;
use super::super::record::Profile;
use ocssd_report::{Axis, ChartSpec, Panel, Point, Role, Series};

/// The picture; none of a drive whose buffer cannot be chosen.
pub(super) fn chart(profile: &Profile) -> Option<ChartSpec> {
    if profile.writers.is_empty() {
        return None;
    }
    let mut panel = Panel::new("");
    for curve in &profile.writers {
        let points = curve
            .points
            .iter()
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
                    The note of a point says how many buffers were written: below one, its size cannot matter.";
    Some(chart.subtitle(subtitle).panel(panel))
}
