//! Size against depth as heat maps, a panel for each mix.

use super::super::cell::{Cell, Order, size_word};
use super::super::record::{CellRecord, Profile, SAMPLES_BEYOND};
use super::super::schedule::MIXES;
use ocssd_report::{Axis, ChartSpec, Panel, Point, Role, Series, Style};

/// Throughput and the 99th percentile; none unless two sizes and two depths were measured with each other.
pub(super) fn grids(profile: &Profile) -> Vec<ChartSpec> {
    let records: Vec<&CellRecord> =
        profile.cells.iter().filter(|record| record.cell.order == Order::Random).collect();
    let (sizes, depths) = axes(&records);
    if sizes.len() < 2 || depths.len() < 2 {
        return Vec::new();
    }
    let grid = Grid { records, sizes, depths };
    let rate = grid.chart(
        ("Size and depth together: throughput", "Every field is random I/O of one size at one depth."),
        Axis::log10("throughput", "MB/s"),
        |record| Some(record.bytes_per_second.value / 1e6).filter(|rate| *rate > 0.0),
    );
    let tail = format!(
        "A field is blank where fewer than {SAMPLES_BEYOND:.0} samples lie beyond the percentile; the note of each has its count."
    );
    let tail = grid.chart(
        ("Size and depth together: 99 % take less than", &tail),
        Axis::log10("99th percentile of latency", "us"),
        |record| record.percentile(99.0).map(|nanos| nanos / 1e3).filter(|us| *us > 0.0),
    );
    vec![rate, tail]
}

/// Sizes and depths that were measured with at least two of the other, in some mix.
fn axes(records: &[&CellRecord]) -> (Vec<u64>, Vec<u32>) {
    let cells: Vec<Cell> = records.iter().map(|record| record.cell).collect();
    let count = |is_of: &dyn Fn(&Cell) -> bool| cells.iter().filter(|cell| is_of(cell)).count();
    let (mut sizes, mut depths): (Vec<u64>, Vec<u32>) =
        (cells.iter().map(|cell| cell.bytes).collect(), cells.iter().map(|cell| cell.depth).collect());
    sizes.sort_unstable();
    sizes.dedup();
    depths.sort_unstable();
    depths.dedup();
    // A depth that only one size has is the depth sweep's, and the other way round.
    let with = |cell: &Cell, mix: u8| cell.read_percent == mix;
    depths
        .retain(|&depth| MIXES.iter().any(|&mix| count(&|cell| with(cell, mix) && cell.depth == depth) >= 2));
    sizes.retain(|&bytes| {
        MIXES.iter().any(|&mix| {
            count(&|cell| with(cell, mix) && cell.bytes == bytes && depths.contains(&cell.depth)) >= 2
        })
    });
    (sizes, depths)
}

struct Grid<'a> {
    records: Vec<&'a CellRecord>,
    sizes: Vec<u64>,
    depths: Vec<u32>,
}

impl Grid<'_> {
    fn chart(
        &self,
        (title, subtitle): (&str, &str),
        colour: Axis,
        value: impl Fn(&CellRecord) -> Option<f64>,
    ) -> ChartSpec {
        let depths: Vec<String> = self.depths.iter().map(ToString::to_string).collect();
        let depths: Vec<&str> = depths.iter().map(String::as_str).collect();
        let sizes: Vec<String> = self.sizes.iter().map(|&bytes| size_word(bytes)).collect();
        let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
        let x = Axis::categories("I/Os outstanding", &depths);
        let mut chart = ChartSpec::cells(title, x, Axis::categories("size of one I/O", &sizes), colour)
            .subtitle(subtitle);
        for mix in MIXES {
            let points = self.points(mix, &value);
            // A mix that was measured along one line only is no grid.
            if points.iter().filter(|point| point.value.is_some()).count() >= 4 {
                let name = match mix {
                    100 => "Reads".to_owned(),
                    0 => "Writes".to_owned(),
                    percent => format!("{percent}/{} reads and writes", 100 - percent),
                };
                let series = Series::new("cells", Role::Ours, points).style(Style::Cells);
                chart = chart.panel(Panel::new(&name).series(series));
            }
        }
        chart
    }

    fn points(&self, mix: u8, value: impl Fn(&CellRecord) -> Option<f64>) -> Vec<Point> {
        let mut points = Vec::new();
        for (row, &bytes) in (0_u32..).zip(&self.sizes) {
            for (column, &depth) in (0_u32..).zip(&self.depths) {
                let cell = Cell::random(bytes, mix, depth);
                let found = self.records.iter().find(|record| record.cell == cell);
                let note = found.map_or_else(
                    || "not measured".to_owned(),
                    |record| format!("{} samples", record.latency.count()),
                );
                let value = found.and_then(|record| value(record));
                points.push(Point::cell(f64::from(column), f64::from(row), value).noted(&note));
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::statistics::Mean;
    use super::*;
    use ocssd_base::Nanos;
    use ocssd_workload::results::LatencyStats;

    fn record(cell: Cell, samples: u64) -> CellRecord {
        let mut latency = LatencyStats::default();
        latency.record_many(Nanos::from_micros(80), samples);
        let mean = Mean::of(&[1e6, 1e6]);
        CellRecord { cell, iops: mean, bytes_per_second: mean, mean_ns: mean, cpu_ns_per_io: None, latency }
    }

    #[test]
    fn only_what_was_measured_together_is_an_axis_of_the_grid() {
        let mut records: Vec<CellRecord> =
            [1, 2, 4, 8, 256].map(|depth| record(Cell::random(4096, 100, depth), 5_000)).to_vec();
        records.extend([512, 16 << 10, 1 << 20].map(|bytes| record(Cell::random(bytes, 100, 1), 5_000)));
        records.extend([1, 8].map(|depth| record(Cell::random(64 << 10, 100, depth), 5_000)));
        // One line of each factor, and 64 KiB at two of the depths: sizes with one depth only stay outside.
        let all: Vec<&CellRecord> = records.iter().collect();
        assert_eq!(axes(&all), (vec![4096, 64 << 10], vec![1, 8]));
    }

    #[test]
    fn a_field_is_blank_where_samples_do_not_carry_its_percentile() {
        let cells = [(4096, 1, 1_000), (4096, 8, 999), (8192, 1, 50_000)];
        let records: Vec<CellRecord> = cells
            .into_iter()
            .map(|(bytes, depth, samples)| record(Cell::random(bytes, 100, depth), samples))
            .collect();
        let grid = Grid { records: records.iter().collect(), sizes: vec![4096, 8192], depths: vec![1, 8] };
        let points = grid.points(100, |record| record.percentile(99.0));
        let is_blank: Vec<bool> = points.iter().map(|point| point.value.is_none()).collect();
        assert_eq!(is_blank, [false, true, false, true], "999 samples have fewer than ten beyond");
        assert_eq!((points[1].note.as_str(), points[3].note.as_str()), ("999 samples", "not measured"));
    }
}
